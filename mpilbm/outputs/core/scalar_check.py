"""The check that scalars are finite and within their bounds."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.findings import either
from mpilbm.outputs.core.invalid import Bad, place_text
from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.slabs import Slab
from mpilbm.solver.scalar_bounds import carrying

if TYPE_CHECKING:
    from mpilbm.solver.solver import Solver

FAILED = 1.0  # a scalar that is further beyond its bounds, relative to their difference, is wrong
FAR = 10  # bounds of so many times their difference call for a shift of all values

Floats = NDArray[np.float64]


class ScalarCheck:
    """Compares the sums and largest distances of scalars (Solver.scalars) with their bounds.

    `beyond`: how far each scalar with bounds was beyond them at the last check, relative to their
    difference, by label; the same on all ranks.
    """

    def __init__(self, solver: "Solver", slab: Slab, comm: Communicator):
        self.solver, self.slab, self.comm = solver, slab, comm
        self.labels = solver.case.labels
        self.beyond: dict[str, float] = {}
        self._farthest: Floats = np.zeros((0, len(self.labels)))  # of planes, at the last check

    def first_bad(self, scalars: Sequence[Floats], of_now: bool) -> Bad | None:
        """What is wrong with a scalar, on all ranks; None if all are valid. Collective.

        `scalars`: their sums and largest distances in the local planes, see Solver.scalars.
        `of_now`: whether they are those of the present step, whose fields are known.
        """
        sums, farthest = scalars
        self._farthest, infinite = farthest, ~np.isfinite(sums)
        parts = self.comm.allgather((infinite.any(axis=0), farthest.max(axis=0, initial=0)))
        bad, most = (np.array(part) for part in zip(*parts, strict=True))
        for k in np.flatnonzero(bad.any(axis=0)):
            label = self.labels[k]
            _, place = self._first(label, infinite[:, k], lambda phi: ~np.isfinite(phi), of_now)
            what = f"the scalar '{label}' is infinite or not a number, first at {place}"
            return Bad(what, "finite", self.advice(label))
        bounds, largest = self.solver.bounds, dict(zip(self.labels, most.max(axis=0), strict=True))
        self.beyond = {label: each.beyond(float(largest[label])) for label, each in bounds.items()}
        worst = max(self.beyond, key=lambda label: self.beyond[label], default="")
        if not worst or self.beyond[worst] <= FAILED:
            return None
        return Bad(self.text(worst, of_now), "nearer to it", self.advice(worst))

    def text(self, label: str, of_now: bool = True) -> str:
        """By how much, and where most, a scalar was beyond its bounds at the last check.

        `of_now`: whether this was at the present step, whose fields are known. Collective.
        """
        bounds, own = self.solver.bounds[label], self._farthest[:, self.labels.index(label)]
        most = max(self.comm.allgather(float(own.max(initial=0))))
        value, place = self._first(label, own == most, lambda p: abs(p - bounds.middle), of_now)
        found = f"up to {most:.6g} from {bounds.middle:g}" if value is None else f"{value:.6g}"
        of = "range" if bounds.scale == bounds.high - bounds.low else "value"
        return (
            f"the scalar '{label}' is {found} at {place}; the range of its initial and boundary "
            f"values is {bounds.low:g} to {bounds.high:g}, beyond which neither the flow nor "
            f"diffusion takes it: it is outside by {self.beyond[label]:.1%} of this {of}"
        )

    def _first(
        self, label: str, planes: NDArray[np.bool_], score: Callable[[Floats], Floats], of_now: bool
    ) -> tuple[float | None, str]:
        """Value and place of the cell with the largest score in the first of these local planes.

        On all ranks. Of an earlier step than that of the solver the plane alone is known.
        """
        found = None
        for plane in np.flatnonzero(planes)[:1]:
            value, cell = None, None
            if of_now:
                phi = self.solver.fields((label,), plane, plane + 1)[label][0].astype(np.float64)
                scalar = self.solver.case.scalars[self.labels.index(label)]
                scores = np.nan_to_num(score(phi).astype(np.float64))
                scores[~carrying(scalar, self.solver.geometry.solid[plane])] = -1
                row, x = np.unravel_index(int(scores.argmax()), phi.shape)
                value, cell = float(phi[row, x]), (int(row), int(x))
            found = value, place_text(self.solver.case, self.slab, int(plane), cell)
        return next(each for each in self.comm.allgather(found) if each is not None)

    def advice(self, label: str) -> str:
        """Changes of the case that may prevent a wrong scalar."""
        scalar = self.solver.case.scalars[self.labels.index(label)]
        bounds = self.solver.bounds.get(label)
        shift = ""
        if bounds and max(abs(bounds.low), abs(bounds.high)) > FAR * bounds.scale:
            shift = (
                f"subtract {bounds.low:g} from all of its values, since changes of the density "
                "change it in proportion to its value"
            )
        diffuse = f"raise {scalar.key}.diffusivity (found {scalar.diffusivity:g})"
        half = self.solver.case.precision.storage == "float16"
        wider = 'set precision.storage = "float32"' if half else ""
        return either(shift, wider, diffuse, "use a finer box")
