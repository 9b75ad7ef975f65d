"""Darcy's law: the permeability of a flow, and the rows of permeability.csv."""

from collections.abc import Callable
from math import nan, prod, sqrt
from typing import NamedTuple

import numpy as np

from mpilbm.case.driving import driving
from mpilbm.core.units import TIME, VELOCITY
from mpilbm.outputs import Context
from mpilbm.parallel.agree import on_root
from mpilbm.physics.lattices import AXES
from mpilbm.storage.csv_log import Rows

FILE = "permeability.csv"
MILLIDARCY = 9.869233e-16  # m^2


class Measured(NamedTuple):
    """k along the driven axis, <u> (D,), tortuosity, and the Reynolds number <u_a> sqrt(k) / nu."""

    k: float
    velocity: np.ndarray
    tortuosity: float
    reynolds: float


class DarcyFlow:
    """k = nu <rho u> / G from sums over the box; see outputs.permeability.Permeability."""

    def __init__(self, context: Context):
        case = self.case = context.case
        self.comm, self.diagnostics = context.comm, context.solver.diagnostics
        self.axis, self.force = driving(case)
        self.viscosity, self.cells = case.fluids[0].viscosity, prod(case.shape)

    def start(self) -> Callable[[], np.ndarray]:
        """Enqueue the sums; the result returns those of all planes, (planes, 2 D + 1), on rank 0.

        On the other ranks it returns nan. Both are collective.
        """
        sums = self.diagnostics.start_flux()

        def complete() -> np.ndarray:
            parts = self.comm.gather(sums())
            missing = np.full((1, 2 * self.case.dimensions + 1), nan)
            return missing if parts is None else np.concatenate(parts)

        return complete

    def measured(self, sums: np.ndarray) -> Measured:
        """The quantities of these sums; planes are added one after another, for any ranks."""
        total, D, a = np.cumsum(sums, axis=0)[-1] / self.cells, self.case.dimensions, self.axis
        velocity, speed = total[D : 2 * D], total[2 * D]
        k = float(self.viscosity * total[a] / self.force)
        reynolds = abs(velocity[a]) * sqrt(abs(k)) / self.viscosity
        tortuosity = float(speed / abs(velocity[a])) if velocity[a] else nan
        return Measured(k, velocity, tortuosity, float(reynolds))


class PermeabilityWriter:
    """Rank 0 writes the file; the device of each rank sums over its planes.

    `cell`: the side of a cell in m, None if it is not known.
    """

    def __init__(self, context: Context, cell: float | None):
        self.context, self.case, self.cell = context, context.case, cell
        self.flow, self.axes = DarcyFlow(context), AXES[: context.case.dimensions]
        fluid = context.comm.gather(int(context.solver.geometry.fluid_cells.sum()))
        self.porosity = sum(fluid or ()) / self.flow.cells
        self.rows: Rows | None = None  # on rank 0
        self.previous = nan  # k of the previous row
        on_root(context.comm, self._open)

    def header(self) -> list[str]:
        """Names of the columns, with the units of those in SI."""
        k, u = [f"k_{axis}" for axis in self.axes], [f"u_{axis}" for axis in self.axes]
        names = ["step", "time", *k, *u, "tortuosity", "reynolds", "change", "porosity"]
        if self.cell is not None:
            names += [f"{name}_{unit}" for unit in ("m2", "mD") for name in k]
        return names + (["time_s", *(f"{name}_m/s" for name in u)] if self.case.units else [])

    def _open(self) -> None:
        path = self.context.directory / FILE
        self.rows = Rows(path, self.header(), self.context.first_step)
        self.context.rows.append(self.rows)
        if self.rows.last:
            self.previous = float(self.rows.last.split(",")[2 + self.flow.axis])

    def write(self, step: int) -> None:
        """Enqueue the sums of this step; the row is written when they are known. Collective."""
        sums = self.flow.start()

        def complete() -> None:
            on_root(self.context.comm, self._write, step, sums())

        self.context.samples.add(complete)

    def _write(self, step: int, sums: np.ndarray) -> None:
        found = self.flow.measured(sums)
        k = np.where(np.arange(len(self.axes)) == self.flow.axis, found.k, nan)
        change = abs(found.k - self.previous) / abs(found.k) if found.k else nan
        self.previous = found.k
        row = [step, *k, *found.velocity, found.tortuosity, found.reynolds, change, self.porosity]
        if self.rows is not None:
            self.rows.add(step, [*row, *self._in_si(step, k, found.velocity)])

    def _in_si(self, step: int, k: np.ndarray, velocity: np.ndarray) -> list[float]:
        """The values of the columns in SI."""
        found: list[float] = []
        if self.cell is not None:
            found += [*(k * self.cell**2), *(k * self.cell**2 / MILLIDARCY)]
        if self.case.units:
            to_si = self.case.units.to_si
            found += [to_si(step, TIME), *to_si(velocity, VELOCITY)]
        return found

    def close(self) -> None:
        """Close the file."""
        if self.rows is not None:
            self.rows.close()
            self.rows = None
