"""Sums over the whole box, and the guard against flows that are no longer finite."""

from pathlib import Path

import numpy as np

from mpilbm import interfaces
from mpilbm.errors import NonFiniteError


class Totals:
    """What `solver.sums()` gives per plane, put together over all planes and ranks.

    The planes are added one after another in double precision, so the result does not depend on
    the number of ranks.
    """

    def __init__(self, solver, slab, comm, directory):
        self.solver, self.slab, self.comm = solver, slab, comm
        self.directory = Path(directory)
        self.step = None
        self.checked = 0

    def at(self, step: int) -> dict[str, float]:
        """Name -> sum (maximum for max_speed) on rank 0, {} elsewhere; computed once a step.

        Raises NonFiniteError on all ranks if any cell is infinite or not a number.
        """
        if self.step == step:
            return self.values
        names, planes = self.solver.sums()
        self._refuse_non_finite(step, names, planes)
        parts = self.comm.gather(planes)
        self.values = {} if parts is None else add_planes(names, np.concatenate(parts))
        self.step = self.checked = step
        return self.values

    def _refuse_non_finite(self, step, names, planes):
        columns = [k for k, name in enumerate(names) if name == "nonfinite"]
        bad = np.flatnonzero(planes[:, columns].sum(axis=1))
        place = self._describe(int(bad[0])) if len(bad) else None
        places = [found for found in self.comm.allgather(place) if found]
        if places:
            raise NonFiniteError(
                f"step {step}: the flow is infinite or not a number, first at {places[0]} (it was "
                f"finite at step {self.checked}); lower the velocity or raise the viscosity"
                f"{', or weaken the coupling' if self.solver.case.coupling else ''}; "
                f"{self._last_checkpoint()}"
            )

    def _describe(self, plane: int) -> str:
        """Cell, rank and slab of the first value in a local plane that is not finite."""
        slab = self.slab
        fields = self.solver.fields(("rho", "u"), plane, plane + 1).values()
        bad = [~np.isfinite(data[0].reshape(*data.shape[1:3], -1)).all(axis=2) for data in fields]
        row, x = next(iter(np.argwhere(np.any(bad, axis=0))), ("?", "?"))
        place = slab.begin + plane
        x = x if x == "?" else self.solver.case.lattice.x(place, row, x)
        two_dimensional = self.solver.case.dimensions == 2
        cell = (x, place) if two_dimensional else (x, row, place)
        letter = "y" if two_dimensional else "z"
        return (
            f"cell ({', '.join(map(str, cell))}) on rank {slab.rank}, which owns "
            f"{letter} = {slab.begin} to {slab.end - 1}"
        )

    def _last_checkpoint(self) -> str:
        kept = sorted(self.directory.glob("checkpoint_*.h5"))
        return f"{kept[-1]} is kept" if kept else "there is no checkpoint"


def add_planes(names, planes) -> dict[str, float]:
    """Sums over axis 0 of (planes, names) in plane order; the maximum where a name says so.

    What makes the length of interfaces is put together.
    """
    totals = np.cumsum(planes, axis=0, dtype=np.float64)[-1]
    largest = planes.max(axis=0)
    return interfaces.with_length({
        name: float(largest[k] if interfaces.is_maximum(name) else totals[k])
        for k, name in enumerate(names)
    })  # fmt: skip
