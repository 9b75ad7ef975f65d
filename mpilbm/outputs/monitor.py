"""Quantities of the whole box over time, as rows of a CSV file."""

from collections.abc import Callable, Iterable
from math import prod
from typing import ClassVar

from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.core.units import VELOCITY, Dimension
from mpilbm.outputs import Context, Output
from mpilbm.outputs.core.tables import TableWriter
from mpilbm.outputs.spectra import spectra, velocity
from mpilbm.outputs.spectra.velocity import VelocityWaves
from mpilbm.parallel import on_root
from mpilbm.physics import sloped
from mpilbm.storage.csv_log import Rows

NAME = "monitor.csv"
ROW_BYTES = 512
SPECTRAL = "enstrophy_spectral"


@register("outputs", "monitor")
class Monitor(Output):
    """Mass, momentum, energy, enstrophy, largest speed and GLUPS as rows of `monitor.csv`.

    In lattice units; with [units] the time and these quantities in SI follow. For coupled fluids
    also the mass of each and the length of their interfaces, in 3D the area (see
    physics/sloped.py). For each scalar also mean_<label>, variance_<label> and
    dissipation_<label> = D <|grad phi|^2> over the fluid cells, from the differences to both
    neighbours, next to walls to one; a scalar is in its own unit.

    `enstrophy` uses central differences, which damp short waves. With `spectral = true` the column
    `enstrophy_spectral` follows: the same sum of omega.omega / 2 with exact derivatives, by a
    Fourier transform on the host; see the output `spectrum`.
    """

    spectral: bool = Field(
        False, description="also the enstrophy with exact derivatives, in a periodic box"
    )

    files: ClassVar[tuple[str, ...]] = (NAME,)
    several: ClassVar[bool] = False

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernel of the enstrophy, and that of the fields, which reports the cell of a NaN."""
        return ("enstrophy", "fields")

    def problems(self, case: Case) -> list[str]:
        """Boxes in which the flow is not a sum of waves, with `spectral`."""
        found = velocity.box_problems(case) if self.spectral else []
        return [f"spectral: {problem}" for problem in found]

    def stages(self, case: Case) -> bool:
        """Whether the host gets copies of u."""
        return self.spectral

    def host_bytes(self, case: Case, planes: int) -> int:
        """The transforms."""
        return velocity.host_bytes(case, planes) if self.spectral else 0

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        return times * ROW_BYTES * len(case.fluids)

    def open(self, context: Context) -> "MonitorWriter":
        """Creates the file; after a restart keeps its rows up to the first step."""
        return MonitorWriter(context, self.spectral)


# SI unit and dimension of the sums over a box in 3D; in 2D most are per metre
SI = {
    "mass": ("kg", (0, 0, 1)),
    "momentum": ("kg_m_per_s", (1, -1, 1)),
    "kinetic_energy": ("J", (2, -2, 1)),
    "enstrophy": ("m3_per_s2", (3, -2, 0)),
    "max_speed": ("m_per_s", VELOCITY),
    sloped.LENGTH: ("m2", (2, 0, 0)),
    "dissipation_": ("per_s", (0, -1, 0)),  # of scalars, whose own units stay
}
MEANS = ("max_speed", "dissipation_")  # which do not depend on the number of dimensions


def dimensions_of(columns: Iterable[str], D: int) -> dict[str, tuple[str, Dimension]]:
    """SI unit and dimension of each of the columns that have one."""
    found: dict[str, tuple[str, Dimension]] = {}
    for name in columns:
        key = next((key for key in SI if name.startswith(key)), None)
        if key is not None:
            unit, (metres, *rest) = SI[key]
            flat = D == 2 and key not in MEANS
            found[name] = unit + "_per_m" * flat, (metres - flat, *rest)
    return found


def si_columns(columns: Iterable[str], D: int) -> dict[str, tuple[str, Dimension]]:
    """Name and dimension of the column in SI for each of the columns that have one."""
    found = dimensions_of(columns, D).items()
    return {name: (f"{name}_{unit}", dimension) for name, (unit, dimension) in found}


class MonitorWriter(TableWriter):
    """Rank 0 writes the file; all ranks compute the sums."""

    def __init__(self, context: Context, spectral: bool = False):
        super().__init__(context)
        self.velocity = VelocityWaves(context) if spectral else None
        names = context.solver.sum_names
        self.columns = [n for n in sloped.columns(names) if n != "nonfinite"]
        if spectral:
            self.columns.insert(self.columns.index("enstrophy") + 1, SPECTRAL)
        self.in_si = si_columns(self.columns, self.case.dimensions) if self.case.units else {}
        self.previous = (context.first_step, 0.0)  # step and seconds of stepping
        on_root(context.comm, self._open)

    def _open(self) -> None:
        in_si = [column for column, _ in self.in_si.values()]
        header = ["step", "time", *self.columns, "glups", *(["time_s", *in_si] if in_si else [])]
        self.rows = self.keep(Rows(self.context.directory / NAME, header, self.context.first_step))

    def start(self, step: int) -> Callable[[], tuple[dict[str, float], float]]:
        """Enqueue the sums of this step, and the transform of the velocity for `spectral`."""
        if self.velocity:
            self.velocity.start()
        sums, reading = self.context.totals.start(step), self.context.clock.reading()
        return lambda: (sums() | self._spectral(), reading.seconds)

    def _spectral(self) -> dict[str, float]:
        """The sum over the cells of omega.omega / 2 with exact derivatives, on rank 0."""
        if self.velocity is None:
            return {}
        found = spectra(self.comm, self.velocity.shells, self.velocity.take())
        return {} if found is None else {SPECTRAL: float(found[2].sum()) * prod(self.case.shape)}

    def add_rows(self, step: int, found: tuple[dict[str, float], float]) -> None:
        """Add the row of a step from its sums and the seconds of stepping."""
        totals, stepping = found
        units, in_si = self.case.units, [self.time(step)] if self.case.units else []
        if units:
            in_si += [units.to_si(totals[name], of) for name, (_, of) in self.in_si.items()]
        values = [totals[name] for name in self.columns]
        self.rows.add(step, (step, *values, self._glups(step, stepping), *in_si))

    def _glups(self, step: int, stepping: float) -> float:
        """10^9 cells per second of stepping since the previous row; 0 if no step was made."""
        before, then = self.previous
        self.previous = step, stepping
        updates = (step - before) * prod(self.case.shape)
        return updates / (stepping - then) / 1e9 if updates and stepping > then else 0.0

    def close(self) -> None:
        """Close the file, and end the threads of the transform."""
        if self.velocity:
            self.velocity.close()
        super().close()
