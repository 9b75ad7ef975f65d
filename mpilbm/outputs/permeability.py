"""Permeability of a porous medium over time, as rows of a CSV file."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from mpilbm.case.driving import NotDriven, driving
from mpilbm.case.tables import Scale
from mpilbm.core.quantity import in_si
from mpilbm.core.registry import register
from mpilbm.core.units import LENGTH
from mpilbm.model.findings import WARNING, Finding
from mpilbm.outputs import Context, Output
from mpilbm.outputs.core.permeability_rows import FILE, DarcyFlow, PermeabilityWriter

if TYPE_CHECKING:
    from mpilbm.case.case import Case

ROW_BYTES = 512


@register("outputs", "permeability")
class Permeability(Output):
    """Permeability, superficial velocity and tortuosity as rows of `permeability.csv`.

        k = nu <rho u> / G,   tortuosity = <|u|> / <u_a>

    G: the force per volume that drives the flow along the axis a: the body force, cs2 rho_jump / n
    of a pressure jump, or cs2 (rho_in - rho_out) / L between two faces with given densities. The
    mean <> is over all cells of the box, solid cells included, where u = 0; the velocity contains
    half of the force of a step. k of the axis a is written, the other ones are nan, as is what is
    not defined, like the tortuosity of a fluid at rest.

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

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """The one of the sums of the velocity."""
        return ("flux",)

    def problems(self, case: "Case") -> list[str]:
        """A flow without a known constant force along one axis, closures, a wrong side of cells."""
        found = []
        try:
            driving(case)
        except NotDriven as error:
            found.append(f"the permeability is not defined: {error}")
        closure = case.fluids[0].collision.closure
        if closure:
            found.append(f"the permeability requires a constant viscosity; found the closure "
                         f"'{closure.name}'; remove it or this output")  # fmt: skip
        try:
            self.cell(case)
        except ValueError as error:
            found.append(f"voxel: {error}")
        return found

    def warnings(self, case: "Case") -> list[Finding]:
        """Those of the base class, and a collision or walls for which k depends on viscosity."""
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
            found.append(Finding(
                WARNING, "",
                f"k depends on the viscosity with {' and '.join(causes)}, which moves the "
                f"effective walls; set {' and '.join(fix)}",
            ))  # fmt: skip
        return found

    def cell(self, case: "Case") -> float | None:
        """The side of a cell in m, None if it is not known; ValueError for a wrong `voxel`."""
        if self.voxel is None:
            return case.units.cell if case.units else None
        if case.units and abs(self.voxel / case.units.cell - 1) > 1e-9:
            raise ValueError(
                f"found {self.voxel:g} m, but units.cell is {case.units.cell:g} m; remove one"
            )
        return self.voxel

    def definition(self, case: "Case") -> dict[str, Any]:
        """The side of a cell, also if it is that of [units]."""
        cell = self.cell(case)
        return {} if cell is None else {"voxel": cell}

    def disk_bytes(self, case: "Case", times: int) -> int:
        """A row each time."""
        return times * ROW_BYTES

    def watched(self, context: Context) -> Callable[[], float]:
        """k of the current step."""
        flow = DarcyFlow(context)
        return lambda: flow.measured(flow.start()()).k

    def open(self, context: Context) -> PermeabilityWriter:
        """Creates the file; after a restart keeps its rows up to the first step."""
        return PermeabilityWriter(context, self.cell(context.case))
