"""The spectra of kinetic energy and enstrophy over time, as one table of a run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.core.units import Dimension
from mpilbm.model.findings import NOTE, Finding
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.core.tables import Series, TableWriter
from mpilbm.outputs.spectra import Shells, spectra, velocity, with_transfer
from mpilbm.outputs.spectra.velocity import VelocityWaves
from mpilbm.parallel import on_root
from mpilbm.storage.csv_log import Rows

if TYPE_CHECKING:
    import h5py

# Columns with their dimension and unit in SI and in lattice units
COLUMNS: dict[str, tuple[Dimension, str, str]] = {
    "energy": ((3, -2, 0), "m^3/s^2", "cells^3/step^2"),
    "enstrophy": ((1, -2, 0), "m/s^2", "cells/step^2"),
    "dissipation": ((3, -3, 0), "m^3/s^3", "cells^3/step^3"),
    "transfer": ((3, -3, 0), "m^3/s^3", "cells^3/step^3"),
    "total_energy": ((2, -2, 0), "m^2/s^2", "cells^2/step^2"),
    "total_enstrophy": ((0, -2, 0), "1/s^2", "1/step^2"),
    "total_dissipation": ((2, -3, 0), "m^2/s^3", "cells^2/step^3"),
}
WAVE_NUMBER: Dimension = (-1, 0, 0)
VISCOSITY: Dimension = (2, -1, 0)
CSV_BYTES = 160  # of a row


@register("outputs", "spectrum")
class Spectrum(Scheduled):
    """Spectra of a periodic box over time, as `spectrum_<label>.h5` or `.csv`.

        energy(k) = sum |u(k')|^2 / (2 dk),    enstrophy(k) = sum |k' x u(k')|^2 / (2 dk)
        dissipation(k) = 2 nu sum |k'|^2 |u(k')|^2 / (2 dk)
        transfer(k) = sum Re(conj(v(k')).(v x omega)(k')) / dk

    over the shell |k - |k'|| < dk/2, where u(k') is the Fourier transform of u divided by the
    number of cells, and dk = 2 pi / (longest side). k = 0 is the mean flow. Sums over all waves are
    `total_energy` = <u.u> / 2, `total_enstrophy` = <omega.omega> / 2 with exact derivatives, and
    `total_dissipation`, which is 2 nu total_enstrophy for a flow without divergence. nu is the
    viscosity of the case; the dissipation is left out where it differs from cell to cell: for
    coupled fluids, with a closure, a formula of the viscosity or a sponge. With `transfer`,
    transfer(k) is the rate at which the nonlinear term adds energy to the shell: v is the part
    of u without divergence of the waves with less than 1/3 period per cell along each axis (2/3
    rule), omega = curl v, and the sum over all shells is 0 up to rounding.

    The table can be read during the run. The .h5 has `k` (shells,), `step` and `time` (rows,), the
    spectra (rows, shells), and the totals (rows,); rows that are not written yet have the step -1.
    The .csv has a row for each step and k, without totals. In SI with [units], else in lattice
    units. The transform is in double precision on the host, from copies of u: along x and y in
    threads while the steps continue, along z when the next row is due or at the end.
    """

    transfer: bool = Field(False, description="also the transfer of energy between shells")
    format: Literal["h5", "csv"] = Field("h5", description="format of the table")

    files: ClassVar[tuple[str, ...]] = ("spectrum_<label>.h5", "spectrum_<label>.csv")
    free: ClassVar[tuple[str, ...]] = ("format",)

    def problems(self, case: Case) -> list[str]:
        """Boxes in which the flow is not a sum of waves at all nodes."""
        return super().problems(case) + velocity.box_problems(case)

    def warnings(self, case: Case) -> list[Finding]:
        """No dissipation, because the viscosity is not that of the case everywhere."""
        found = super().warnings(case)
        if case.common_viscosity is None:
            several = len(case.fluids) > 1
            why = "coupled fluids have several viscosities"
            if not several:
                why = "with a closure, a formula or a sponge each cell has another viscosity"
            sentence = f"the table has no column 'dissipation': {why}"
            found.append(Finding(NOTE, "name", sentence))
        return found

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernel of rho and u."""
        return ("fields",)

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        shells = Shells(case.shape).count
        if self.format == "csv":
            return 512 + CSV_BYTES * shells * times
        return (1 << 16) + 8 * ((times + 1) * (4 * shells + 5))

    def stages(self, case: Case) -> bool:
        """True: the host gets copies of u."""
        return True

    def host_bytes(self, case: Case, planes: int) -> int:
        """The transforms."""
        return velocity.host_bytes(case, planes, self.transfer)

    def columns(self, case: Case) -> list[str]:
        """The columns of the table besides step and time."""
        left_out = [] if self.transfer else ["transfer"]
        if case.common_viscosity is None:
            left_out += ["dissipation", "total_dissipation"]
        totals = self.format == "h5"
        return [name for name in COLUMNS if name not in left_out and (totals or not total(name))]

    def open(self, context: Context) -> "SpectrumWriter":
        """Creates the file; after a restart keeps its rows up to the first step. Collective."""
        return SpectrumWriter(self, context)


def total(name: str) -> bool:
    """Whether a column is a sum over all shells."""
    return name.startswith("total")


class SpectrumWriter(TableWriter):
    """All ranks transform their planes; rank 0 writes the rows."""

    def __init__(self, output: Spectrum, context: Context):
        super().__init__(context)
        self.output, self.columns = output, output.columns(self.case)
        self.velocity = VelocityWaves(context, output.transfer)
        self.shells = self.velocity.shells
        on_root(context.comm, self._open)

    def _open(self) -> None:
        name = f"spectrum_{self.output.label_in(self.case)}.{self.output.format}"
        path, first = self.context.directory / name, self.context.first_step
        if self.output.format == "csv":
            self.keep(Rows(path, self._header(), first, self.shells.count))
            return
        shape = (self.shells.count,)
        shapes = {name: () if total(name) else shape for name in self.columns}
        rows = self.output.times(first, max(first, self.case.run.steps))
        self.keep(Series(path, shapes, first, rows, self._describe))

    def _header(self) -> list[str]:
        """The columns of the .csv."""
        si = self.case.units is not None
        named = [f"{name} ({COLUMNS[name][1 if si else 2]})" for name in self.columns]
        first = ("time (s)", "k (1/m)") if si else ("time (steps)", "k (1/cell)")
        return ["step", *first, *named]

    def _describe(self, file: "h5py.File") -> None:
        """The wave numbers and attributes."""
        units = self.case.units
        file["k"] = self.shells.k * self._unit(WAVE_NUMBER)
        file["k"].attrs["unit"] = "1/m" if units else "1/cell"
        for name in self.columns:
            file[name].attrs["unit"] = COLUMNS[name][1 if units else 2]
        file.attrs["dk"] = self.shells.dk * self._unit(WAVE_NUMBER)
        if (nu := self.case.common_viscosity) is not None:
            file.attrs["viscosity"] = nu * self._unit(VISCOSITY)
        self.describe_table(file)

    def _unit(self, dimension: Dimension) -> float:
        """The unit in SI of a quantity of this dimension; 1 without [units]."""
        return self.case.units.unit(dimension) if self.case.units else 1.0

    def start(self, step: int) -> Callable[[], np.ndarray | None]:
        """Enqueue copies of u and their transform along x and y."""
        self.velocity.start()
        compute = with_transfer if self.output.transfer else spectra
        return lambda: compute(self.comm, self.shells, self.velocity.take())

    def add_rows(self, step: int, found: np.ndarray) -> None:
        """Add the rows of a step from the sums of `spectra` or `with_transfer`."""
        values, (table,) = self._values(found), self.open_tables
        if isinstance(table, Series):
            table.add(step, {"time": self.time(step), **values})
        else:
            k = self.shells.k * self._unit(WAVE_NUMBER)
            columns = np.full_like(k, self.time(step)), k, *values.values()
            table.add_all(step, np.stack(columns, axis=1))

    def _values(self, found: np.ndarray) -> dict[str, np.ndarray]:
        """The columns in their units."""
        energy, gradient, enstrophy, *transfer = found
        sums = {"energy": energy, "enstrophy": enstrophy}
        if (nu := self.case.common_viscosity) is not None:
            sums["dissipation"] = 2 * nu * gradient
        if transfer:
            sums["transfer"] = transfer[0]
        values = {name: each / self.shells.dk for name, each in sums.items()}
        values |= {f"total_{name}": each.sum() for name, each in sums.items()}
        return {name: values[name] * self._unit(COLUMNS[name][0]) for name in self.columns}

    def close(self) -> None:
        """Close the file, and end the threads of the transform."""
        self.velocity.close()
        super().close()
