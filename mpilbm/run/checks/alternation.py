"""Detects density and velocity that alternate between even and odd steps.

A part of the solution that changes its sign in every step is no flow: lattice Boltzmann schemes
have such modes, mostly as a checkerboard in space, and some pairs of conditions at faces amplify
them. Of five consecutive steps the fourth difference

    d = (w(t) - 4 w(t-1) + 6 w(t-2) - 4 w(t-3) + w(t-4)) / 16,   w = rho, u

is the amplitude of such a part, and sin(omega/2)^4 times that of a wave exp(i omega t): 0.0001 for
a period of 30 steps, 0.01 for one of 10. The amplitude sqrt(|d_u|^2 + cs2 d_rho^2), in the
dimension of a velocity, is compared with the largest speed of all checks. Conserved modes of this
kind, which sound and sudden starts excite, keep their amplitude; so only an amplitude that has
grown is reported. The cells are those of all faces that are not periodic, and evenly spaced cells
of the box; in large boxes evenly spaced cells of the faces.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.model.findings import SERIOUS, WARNING, Finding, either
from mpilbm.outputs import Context
from mpilbm.parallel import together
from mpilbm.run.checks import (
    OTHER,
    RAISE,
    Alarm,
    Nodes,
    box_nodes,
    closed_faces,
    face_nodes,
    on_slab,
    place,
)
from mpilbm.solver.fields.point_fields import PointFields

WEIGHTS = np.array([1, -4, 6, -4, 1]) / 16
LEVELS = (0.02, 0.1)  # of the amplitude, relative to the largest speed
GROWN = 3.0  # times the least amplitude of earlier checks: the growth that is reported
ROUNDING = 1000  # rounding errors: the least speed with which amplitudes are compared
ON_FACE = {2: 4096, 3: 64}  # sampled cells along each side of a face, at most, by dimension
INSIDE = {2: 64, 3: 16}  # and along each side of the box

Sample = Callable[[], dict[str, NDArray[np.floating]]]


def sampled_nodes(case: Case) -> Nodes:
    """The nodes (plane, row, x) of the box that are sampled, (n, 3), in this order."""
    D = case.dimensions
    groups = [face_nodes(case, face, ON_FACE[D]) for face in closed_faces(case)]
    return np.unique(np.concatenate([box_nodes(case, INSIDE[D]), *groups]), axis=0)


class Alternation:
    """Samples the flow in the last steps before each multiple of `every`, and reports a finding.

    `ratio`: the amplitude at the last such multiple, relative to the largest speed; None before it.
    """

    def __init__(self, context: Context, every: int):
        self._context, self._every = context, every
        self._alarm = Alarm(context, LEVELS)
        self._points: PointFields | None = None
        self._nodes = np.empty((0, 3), np.int64)  # of this slab, in the box
        precision = context.case.precision
        kinds = {precision.compute, precision.storage} - {"float16", "mixed"}
        self._least = ROUNDING * max(float(np.finfo(kind).eps) for kind in kinds)
        self.forget()

    def forget(self) -> None:
        """Discard what was sampled, because the state was replaced."""
        self._samples: list[tuple[int, Sample]] = []
        self._least_ratio: tuple[float, int] | None = None  # of the checks so far, and its step
        self.ratio: float | None = None

    def next_due(self, step: int, last: int) -> int:
        """The next step that is sampled, at most `last`."""
        begin = (step // self._every + 1) * self._every - len(WEIGHTS) + 1
        return min(max(step + 1, begin), last)

    def visit(self, step: int) -> None:
        """Sample the flow if this step is to be sampled; collective."""
        if step <= 0 or -step % self._every >= len(WEIGHTS):  # no steps come before step 0
            return
        if self._points is None:
            self._points = self._open()
        self._points.prepare()
        self._samples = [*self._samples, (step, self._points.start())][-len(WEIGHTS) :]

    def _open(self) -> PointFields:
        context, slab = self._context, self._context.slab
        self._nodes = on_slab(sampled_nodes(context.case), slab)
        local = self._nodes - [slab.begin, 0, 0]
        diagnostics = context.solver.diagnostics
        return together(context.comm, PointFields, diagnostics, ("rho", "u"), local)

    def judge(self, step: int, speed: float) -> None:
        """Report an amplitude that is large and has grown; `speed`: that of all checks. Collective.

        Waits for the device. It does nothing unless the last steps up to this one were sampled.
        """
        wanted = list(range(step - len(WEIGHTS) + 1, step + 1))
        if step % self._every or [number for number, _ in self._samples] != wanted:
            return
        parts = self._context.comm.allgather(self._largest())
        amplitude, node = max(parts, key=lambda each: each[0])
        ratio, self._samples = amplitude / max(speed, self._least), []
        least, since = min(self._least_ratio or (ratio, step), (ratio, step))
        self.ratio, self._least_ratio = ratio, (least, since)
        if ratio > GROWN * least:
            self._alarm.update(ratio, lambda: self._finding(step, node, ratio, since))

    def _largest(self) -> tuple[float, tuple[int, ...]]:
        samples = [sample() for _, sample in self._samples]
        if not len(self._nodes):
            return -1.0, ()
        d_rho, d_u = (
            sum(w * each[name].astype(np.float64) for w, each in zip(WEIGHTS, samples, strict=True))
            for name in ("rho", "u")
        )
        cs2 = float(self._context.case.lattice.cs2)
        squares = np.nan_to_num(np.square(d_u).sum(axis=-1) + cs2 * np.square(d_rho))
        first = int(squares.argmax())
        return sqrt(squares[first]), tuple(self._nodes[first].tolist())

    def _finding(self, step: int, node: tuple[int, ...], ratio: float, since: int) -> Finding:
        here = place(self._context.case, node)
        fix = either(here.fix, RAISE, OTHER)
        return Finding(
            SERIOUS if ratio > LEVELS[-1] else WARNING,
            here.key,
            f"by step {step} density and velocity alternate between even and odd steps, with an "
            f"amplitude of {ratio:.1%} of the largest speed in {here.text}, which has grown since "
            f"step {since}: an instability of the scheme that falsifies the flow; {fix}",
        )
