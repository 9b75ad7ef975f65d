"""Sums over the box, and the check that the state is finite, slower than sound, in bounds."""

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.core.errors import NonFiniteError
from mpilbm.model.findings import either
from mpilbm.parallel import Communicator
from mpilbm.parallel.slabs import Slab
from mpilbm.physics import sloped
from mpilbm.solver.scalar_bounds import carrying
from mpilbm.solver.solver import Solver


class Bad(NamedTuple):
    """What is wrong with a state, how it was before, and changes of the case against it."""

    what: str
    before: str
    advice: str


def place_text(case: Case, slab: Slab, plane: int, cell: tuple[int, int] | None) -> str:
    """A local plane of a slab, or the cell (row, x) in it, and the rank that owns it."""
    letter, place = "y" if case.dimensions == 2 else "z", slab.begin + plane
    owner = f"rank {slab.rank}, which owns {letter} = {slab.begin} to {slab.end - 1}"
    if cell is None:
        return f"{letter} = {place} on {owner}"
    row, x = cell[0], case.lattice.x(place, *cell)
    found = (x, place) if case.dimensions == 2 else (x, row, place)
    return f"cell ({', '.join(map(str, found))}) on {owner}"


FAILED = 1.0  # a scalar that is further beyond its bounds, relative to their difference, is wrong
FAR = 10  # bounds of so many times their difference call for a shift of all values

Floats = NDArray[np.float64]


class ScalarCheck:
    """Compares the sums and largest distances of scalars (Solver.scalars) with their bounds.

    `beyond`: how far each scalar with bounds was beyond them at the last check, relative to their
    difference, by label; the same on all ranks.
    """

    def __init__(self, solver: Solver, slab: Slab, comm: Communicator):
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


class Totals:
    """The sums of `solver.sums()` over all planes and ranks.

    The planes are added one after another in double precision, so that the result does not depend
    on the number of ranks. `checked` is the last step at which the state was valid, see
    `first_bad`, None before the first check. `fastest` is the largest speed of all checks;
    `scalars` has the results for scalars.
    """

    def __init__(
        self,
        solver: Solver,
        slab: Slab,
        comm: Communicator,
        directory: Path | str | None,
    ):
        self.solver, self.slab, self.comm = solver, slab, comm
        self.directory = None if directory is None else Path(directory)
        self.names = solver.sum_names
        self.checked: int | None = None
        self.fastest = 0.0
        self.scalars = ScalarCheck(solver, slab, comm)

    @property
    def speed_of_sound(self) -> float:
        """c_s of the lattice."""
        return sqrt(self.solver.case.lattice.cs2)

    def start(self, step: int) -> Callable[[], dict[str, float]]:
        """Enqueue the sums of this step behind the steps; the result completes them.

        The result returns {name: sum, or maximum for max_speed} on rank 0 and {} on the others. It
        raises NonFiniteError as `check` does. Both are collective.
        """
        return partial(self._complete, step, self.solver.start_sums())

    def _complete(self, step: int, sums: Callable[[], np.ndarray]) -> dict[str, float]:
        names, planes = self.names, sums()
        speeds, nonfinite = (planes[:, names.index(name)] for name in ("max_speed", "nonfinite"))
        scalars = (
            planes[:, [names.index(part + label) for label in self.scalars.labels]]
            for part in (sloped.SUM, sloped.FARTHEST)
        )
        self._require(step, (speeds, nonfinite, *scalars), of_now=step == self.solver.steps)
        parts = self.comm.gather(planes)
        return {} if parts is None else add_planes(names, np.concatenate(parts))

    def check(self, step: int) -> None:
        """Raise NonFiniteError on all ranks if the state is not valid, see `first_bad`.

        Waits for the device; collective. Computed once a step.
        """
        if self.checked != step:
            self._require(step, self.now())

    def now(self) -> tuple[np.ndarray, ...]:
        """The values of the local planes that are checked, of the present step; collective."""
        scalars = self.solver.scalars() if self.scalars.labels else ()
        return (*self.solver.speeds(), *scalars)

    def _require(self, step: int, planes: Sequence[np.ndarray], of_now: bool = True) -> None:
        """Check these values of the local planes, see `now`."""
        found = self.first_bad(planes, of_now)
        if found:
            last = self.checked
            good = "" if last is None else f" (it was {found.before} at step {last})"
            raise NonFiniteError(
                f"step {step}: {found.what}{good}; {found.advice}; {self._last_checkpoint()}",
                step=step,
            )
        self.checked = step

    def first_bad(self, planes: Sequence[np.ndarray], of_now: bool = True) -> Bad | None:
        """What is wrong with the state, and where first, on all ranks; None if it is valid.

        A flow that is not finite or faster than sound, or a scalar that is not finite or too far
        beyond its bounds. `planes`: see `now`. Of an earlier step than that of the solver (not
        `of_now`) the first plane is known, but not the cell.
        """
        speeds, nonfinite, *scalars = planes
        bad = np.flatnonzero((nonfinite > 0) | (speeds > self.speed_of_sound))
        place = None
        if len(bad):
            plane = int(bad[0])
            cell = self._cell(plane) if of_now else None
            place = place_text(self.solver.case, self.slab, plane, cell)
        parts = self.comm.allgather((bool((nonfinite > 0).any()), float(speeds.max()), place))
        infinite, fastest, places = zip(*parts, strict=True)
        first = next(filter(None, places), "")
        if not first:
            self.fastest = max(self.fastest, *fastest)
            return self.scalars.first_bad(scalars, of_now) if self.scalars.labels else None
        what = "infinite or not a number"
        if not any(infinite):
            what = f"faster than sound (Mach {max(fastest) / self.speed_of_sound:.3g})"
        return Bad(f"the flow is {what}, first at {first}", "finite", self._advice)

    @property
    def _advice(self) -> str:
        """Changes of the case that may prevent a wrong flow."""
        weaker = ", weaken the coupling" if self.solver.case.coupling else ""
        return (
            f"lower the velocity, raise the viscosity{weaker}, or use a collision that "
            "`mpilbm check` reports as stable"
        )

    def _cell(self, plane: int) -> tuple[int, int] | None:
        """Row and x of the first cell of a local plane whose flow is bad; None if none is."""
        fields = self.solver.fields(("rho", "u"), plane, plane + 1)
        rho, u = (fields[name][0].astype(np.float64) for name in ("rho", "u"))
        with np.errstate(over="ignore", invalid="ignore"):
            good = np.isfinite(rho) & ((u**2).sum(axis=-1) <= self.speed_of_sound**2)
        return next(((int(row), int(x)) for row, x in np.argwhere(~good)), None)

    def _last_checkpoint(self) -> str:
        if self.directory is None:
            return "there is no output folder with checkpoints"
        kept = sorted(self.directory.glob("checkpoint_*.h5"))
        return f"{kept[-1]} is kept" if kept else f"there is no checkpoint in {self.directory}"


def add_planes(names: Sequence[str], planes: np.ndarray) -> dict[str, float]:
    """Sums over axis 0 of (planes, names) in plane order; maxima for some names.

    Lengths of interfaces and means of scalars are computed from their parts, see physics/sloped.py.
    """
    totals = np.cumsum(planes, axis=0, dtype=np.float64)[-1]
    largest = planes.max(axis=0)
    of = {name: (largest if sloped.is_maximum(name) else totals)[k] for k, name in enumerate(names)}
    return sloped.combined({name: float(value) for name, value in of.items()})


def over_bodies(case: Case, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Sums of each body that is weighed, (bodies, columns), from those of its planes on each rank.

    `parts`: of each rank the bodies of its groups and their sums, see MomentumExchange. They are
    added one plane after another, so that the result does not depend on the number of ranks.
    """
    totals = np.zeros((len(case.needs.weighed), parts[0][1].shape[1]))
    for bodies, sums in parts:
        np.add.at(totals, bodies, sums)
    return totals
