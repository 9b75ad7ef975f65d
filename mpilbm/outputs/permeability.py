"""Permeability of a porous medium over time, as rows of a CSV file."""

from collections.abc import Callable
from math import nan, prod, sqrt
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.driving import NotDriven, driving
from mpilbm.case.tables import Scale
from mpilbm.core.quantity import in_si
from mpilbm.core.registry import register
from mpilbm.core.units import LENGTH, VELOCITY
from mpilbm.model.findings import WARNING, Finding
from mpilbm.outputs import Context, Output, Watched
from mpilbm.outputs.core.tables import TableWriter
from mpilbm.parallel import on_root
from mpilbm.physics.lattices import AXES
from mpilbm.physics.motions import moving
from mpilbm.storage.csv_log import Rows

FILE = "permeability.csv"
MILLIDARCY = 9.869233e-16  # m^2
ROW_BYTES = 512


@register("outputs", "permeability")
class Permeability(Output):
    """Permeability, superficial velocity and tortuosity as rows of `permeability.csv`.

        k = nu <rho u> / G,   tortuosity = <|u|> / <u_a>

    G: the force per volume that drives the flow along the axis a: the body force, cs2 rho_jump / n
    of a pressure jump, or cs2 (rho_in - rho_out) / L between two faces with given densities. G is
    the full value, also during a ramp: rows of the ramp are not steady values. The mean <> is over
    all cells of the box, solid cells included, where u = 0; the velocity contains half of the force
    of a step. k of the axis a is written, the other ones are nan, as is what is not defined, like
    the tortuosity of a fluid at rest.

    Columns: step, time, k (cells^2) and superficial velocity <u> along each axis, tortuosity,
    Reynolds number <u_a> sqrt(k) / nu, relative change of k since the previous row, and porosity.
    With [units] or `voxel` also k in m^2 and mD (1 mD = 9.869233e-16 m^2); with [units] the time in
    s and the velocity in m/s. Darcy's law requires a Reynolds number far below 1. `run.steady.of`
    may name it. [Darcy 1856; Koponen, Kataja & Timonen 1997, Phys. Rev. E 56, 3319]
    """

    voxel: Annotated[Scale | None, in_si("m", "5.345 um", LENGTH)] = Field(
        None, description="side of a cell, in place of [units]", examples=["5.345 um"]
    )

    files: ClassVar[tuple[str, ...]] = (FILE,)
    several: ClassVar[bool] = False
    watchable: ClassVar[bool] = True

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The one of the sums of the velocity."""
        return ("flux",)

    def problems(self, case: Case) -> list[str]:
        """A flow without a known constant force along one axis, several viscosities, wrong cell."""
        found = []
        try:
            driving(case)
        except NotDriven as error:
            found.append(f"the permeability is not defined: {error}")
        if len(case.fluids) == 1 and case.common_viscosity is None:
            closure = case.fluids[0].collision.closure
            what = f"the closure '{closure.name}'" if closure else "a formula of it or a sponge"
            needs = "the permeability requires a constant viscosity"
            found.append(f"{needs}; found {what}; remove it or this output")
        moved = [case.bodies[number].label for number in moving(case)]
        if moved:
            what = f"body '{moved[0]}' moves, and drives the flow"
            found.append(f"{what}; remove its motion or this output")
        try:
            self.cell(case)
        except ValueError as error:
            found.append(f"voxel: {error}")
        return found

    def warnings(self, case: Case) -> list[Finding]:
        """Also a collision or walls for which the permeability depends on viscosity."""
        causes, fix = [], []
        collision = case.fluids[0].collision
        if not collision.keeps_walls:
            causes.append(f"the collision '{collision.name}'")
            fix.append('collision.name = "trt"')
        for body in case.bodies:
            surface = body.shape is not None and body.shape.has_surface
            if surface and body.boundary.capabilities.wall_depends_on_viscosity:
                causes.append(f"'{body.boundary.name}' at body '{body.label}'")
                fix.append(f'body.{body.label}.boundary.name = "central_linear"')
        found = super().warnings(case)
        if causes:
            why = f"with {' and '.join(causes)}, which moves the effective walls"
            sentence = f"k depends on the viscosity {why}; set {' and '.join(fix)}"
            found.append(Finding(WARNING, "", sentence))
        return found

    def cell(self, case: Case) -> float | None:
        """The side of a cell in m, None if it is not known; ValueError for a wrong `voxel`."""
        if self.voxel is None:
            return case.units.cell if case.units else None
        if case.units and abs(self.voxel / case.units.cell - 1) > 1e-9:
            raise ValueError(
                f"found {self.voxel:g} m, but units.cell is {case.units.cell:g} m; remove one"
            )
        return self.voxel

    def definition(self, case: Case) -> dict[str, Any]:
        """The side of a cell, also if it is that of [units]."""
        cell = self.cell(case)
        return {} if cell is None else {"voxel": cell}

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        return times * ROW_BYTES

    def watched(self, context: Context) -> Watched:
        """k of the current step."""
        flow = DarcyFlow(context)
        return Watched(("k",), lambda: [flow.measured(flow.start()()).k])

    def open(self, context: Context) -> "PermeabilityWriter":
        """Creates the file; after a restart keeps its rows up to the first step."""
        return PermeabilityWriter(context, self.cell(context.case))


class Measured(NamedTuple):
    """k along the driven axis, <u> (D,), tortuosity, and the Reynolds number <u_a> sqrt(k) / nu."""

    k: float
    velocity: np.ndarray
    tortuosity: float
    reynolds: float


class DarcyFlow:
    """k = nu <rho u> / G from sums over the box; see Permeability."""

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


class PermeabilityWriter(TableWriter):
    """Rank 0 writes the file; the device of each rank sums over its planes.

    `cell`: the side of a cell in m, None if it is not known.
    """

    def __init__(self, context: Context, cell: float | None):
        super().__init__(context)
        self.cell, self.flow = cell, DarcyFlow(context)
        self.axes = AXES[: self.case.dimensions]
        fluid = context.comm.gather(int(context.solver.geometry.fluid_cells.sum()))
        self.porosity = sum(fluid or ()) / self.flow.cells
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
        rows = Rows(self.context.directory / FILE, self.header(), self.context.first_step)
        self.rows = self.keep(rows)
        if rows.kept:
            self.previous = float(rows.kept[-1].split(",")[2 + self.flow.axis])

    def start(self, step: int) -> Callable[[], np.ndarray]:
        """Enqueue the sums of this step."""
        return self.flow.start()

    def add_rows(self, step: int, found: np.ndarray) -> None:
        """Add the row of a step from its sums."""
        flow = self.flow.measured(found)
        k = np.where(np.arange(len(self.axes)) == self.flow.axis, flow.k, nan)
        change = abs(flow.k - self.previous) / abs(flow.k) if flow.k else nan
        self.previous = flow.k
        row = [step, *k, *flow.velocity, flow.tortuosity, flow.reynolds, change, self.porosity]
        if self.cell is not None:
            row += [*(k * self.cell**2), *(k * self.cell**2 / MILLIDARCY)]
        if self.case.units:
            row += [self.time(step), *self.case.units.to_si(flow.velocity, VELOCITY)]
        self.rows.add(step, row)
