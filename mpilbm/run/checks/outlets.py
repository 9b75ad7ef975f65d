"""Detects fluid that enters through an outlet.

An outlet is a face at which the flow determines the velocity, in a case with an inlet: a face with
a given velocity, or with a larger density. The velocity and the stress of fluid that enters there
depend on what the boundary assumes beyond the face. It is reported if it is found repeatedly.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from math import prod
from typing import NamedTuple

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.starts import ramp_for
from mpilbm.case.velocity_bounds import at_face, outward_speed
from mpilbm.model.findings import WARNING, Finding, either
from mpilbm.outputs import Context
from mpilbm.parallel import together
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import FaceFlow
from mpilbm.run.checks import Alarm, Repeated, face_nodes, on_slab
from mpilbm.solver.fields.point_fields import PointFields

ON_FACE = {2: 4096, 3: 128}  # sampled cells along each side of a face, at most, by dimension
ENTERING = 0.02  # least velocity into the box that counts, relative to the largest speed
QUIET = "characteristic"  # the condition at outlets that lets sound leave
SHARES = (0.01, 0.2)  # of an outlet through which fluid enters: levels of the warning


def inlets(case: Case) -> list[tuple[str, Boundary]]:
    """The faces through which a given velocity leads, with their boundaries."""
    return [
        (face, each)
        for face, each in faces_of(case)
        if each.face_flow is FaceFlow.GIVEN and getattr(each, "velocity", ())["xyz".index(face[0])]
    ]


def outlets(case: Case) -> list[tuple[str, Boundary]]:
    """The faces through which fluid is expected to leave only, with their boundaries.

    None if a given velocity leads out of the box, or if the densities given at faces vary.
    """
    given = inlets(case)
    free = [(face, each) for face, each in faces_of(case) if each.face_flow is FaceFlow.FREE]
    out = any(outward_speed(case, each, face)[0] > 0 for face, each in given)
    if out or not case.single_fluid:
        return []
    ranges = {face: found for face, each in free if (found := _densities(case, face, each))}
    least = min((low for low, _ in ranges.values()), default=0.0)
    largest = max((high for _, high in ranges.values()), default=0.0)
    if not given and (largest == least or any(fluid.force for fluid in case.fluids)):
        return []
    return [
        (face, each)
        for face, each in free
        if (ranges[face][1] <= least if face in ranges else bool(given))
    ]


def still(case: Case, name: str) -> tuple[str, ...]:
    """Changes with which less sound is in the box; `name`: the condition at an outlet, or ""."""
    fluid = case.fluids[0]
    sudden = any(not getattr(each, "ramp", 0) for _, each in inlets(case))
    rest = fluid.initial.uniform and not any(fluid.initial.u) and sudden
    ramp = f"let the velocity of the inlet rise (ramp = {ramp_for(case)})"
    return (
        f"give the fluid the velocity of the inlet at the start (initial.u), or {ramp}"
        if rest
        else "",
        f"use '{QUIET}' there, which lets sound leave" if name not in ("", QUIET) else "",
    )


def faces_of(case: Case) -> Iterator[tuple[str, Boundary]]:
    """Each face of the box that is not periodic and no mirror, with its boundary."""
    for boundary in case.boundaries:
        for face in () if boundary.joins_faces or boundary.mirrors else boundary.where:
            yield face, boundary


def _densities(case: Case, face: str, boundary: Boundary) -> tuple[float, float] | None:
    """The smallest and the largest density that a face gives during the run, if it gives one."""
    given = getattr(boundary, "rho", None)
    if given is None:
        return None
    _, rho = at_face(case, boundary, face, given)
    return float(rho.min()), float(rho.max())


class Through(NamedTuple):
    """The flow at the sampled cells of a face, the same on all ranks."""

    speed: float  # the largest one, -1 without fluid cells
    node: tuple[int, ...]  # its cell
    inward: float  # the largest velocity into the box
    entering: int  # cells with a velocity into the box above a limit
    fluid: int  # cells

    @property
    def share(self) -> float:
        """The share of the fluid cells through which fluid enters."""
        return self.entering / self.fluid if self.fluid else 0.0


class FaceCells:
    """Cells at faces: all of them or, at large faces, evenly spaced ones. Created on all ranks."""

    def __init__(self, context: Context, faces: Sequence[str]):
        self._context, self._case = context, context.case
        most = ON_FACE[self._case.dimensions]
        self._all = {face: face_nodes(self._case, face, most) for face in faces}
        self._nodes = {face: on_slab(all_of, context.slab) for face, all_of in self._all.items()}

    @cached_property
    def _points(self) -> PointFields:
        context = self._context
        nodes = np.concatenate([*self._nodes.values()]) - [context.slab.begin, 0, 0]
        return together(context.comm, PointFields, context.solver.diagnostics, ("rho", "u"), nodes)

    @cached_property
    def fluid(self) -> dict[str, float]:
        """The share of fluid cells of each face; the first use is collective."""
        here = {face: int((~solid).sum()) for face, solid in self._split(self._points.solid)}
        parts = self._context.comm.allgather(here)
        return {face: sum(p[face] for p in parts) / len(n) for face, n in self._all.items()}

    def area(self, face: str) -> float:
        """The number of fluid cells at a face, from the share of the sampled ones; collective."""
        sides = [
            n for n, axis in zip(self._case.domain.size, "xyz", strict=False) if axis != face[0]
        ]
        return prod(sides) * self.fluid[face]

    def _split(self, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        begin = 0
        for face, nodes in self._nodes.items():
            yield face, values[begin : begin + len(nodes)]
            begin += len(nodes)

    def sample(self, limit: float) -> dict[str, Through]:
        """The present flow at each face; collective. `limit`: see Through.entering."""
        if not self._nodes:
            return {}
        self._points.prepare()
        flow = self._points.start()()["u"].astype(np.float64)  # finite: Totals.check comes before
        here, solid = {}, dict(self._split(self._points.solid))
        for face, values in self._split(flow):
            u, nodes = values[~solid[face]], self._nodes[face][~solid[face]]
            here[face] = Through(-1.0, (), 0.0, 0, 0)
            if len(u):
                inward = u[:, "xyz".index(face[0])] * (1 if face[1] == "-" else -1)
                squares = np.square(u).sum(axis=1)
                first, entering = int(squares.argmax()), int((inward > limit).sum())
                speed, node = float(np.sqrt(squares[first])), tuple(nodes[first].tolist())
                here[face] = Through(speed, node, float(inward.max()), entering, len(u))
        parts = self._context.comm.allgather(here)
        return {face: _joined([part[face] for part in parts]) for face in here}


def _joined(parts: Sequence[Through]) -> Through:
    _, _, inward, entering, fluid = zip(*parts, strict=True)
    speed, node, *_ = max(parts, key=lambda part: part.speed)
    return Through(speed, node, max(inward), sum(entering), sum(fluid))


class Outlets:
    """Samples the cells at outlets, and reports fluid that enters through them.

    `every`: see Repeated."""

    def __init__(self, context: Context, every: int):
        self._context, self._every = context, every
        self.names = {face: each.name for face, each in outlets(context.case)}
        self.faces = tuple(self.names)
        self.cells = FaceCells(context, self.faces)
        self._alarms = {face: Alarm(context, SHARES) for face in self.names}
        self.forget()

    def forget(self) -> None:
        """Begin again, because the state was replaced."""
        self._repeated = {face: Repeated(self._every) for face in self.names}

    def check(self, step: int, speed: float) -> dict[str, Through]:
        """The present flow at the outlets; `speed`: the largest, given or so far. Collective."""
        found = self.cells.sample(ENTERING * speed)
        for face, flow in found.items():
            if self._repeated[face].update(step, flow.share > SHARES[0]):
                self._alarms[face].update(flow.share, partial(self._finding, step, face, flow))
        return found

    def _finding(self, step: int, face: str, flow: Through) -> Finding:
        case, name, first = self._context.case, self.names[face], self._repeated[face].first
        key = next(f"boundary.{k}" for k, each in enumerate(case.boundaries) if face in each.where)
        return Finding(
            WARNING,
            key,
            f"by step {step}, and first at step {first}, fluid enters through the outlet {face} "
            f"('{name}'): through {flow.share:.0%} of it, with up to {flow.inward:.2g} cells/step; "
            "the flow there depends on what the boundary assumes beyond the face, or sound stays "
            f"in the box; {either('move the outlet further downstream', *still(case, name))}",
        )
