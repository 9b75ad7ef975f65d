"""The spectra of kinetic energy and enstrophy over time, as one table of a run."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.images.description import in_si
from mpilbm.outputs.points.series import Series
from mpilbm.outputs.spectra import distributed
from mpilbm.outputs.spectra.shells import Shells
from mpilbm.parallel.agree import on_root
from mpilbm.registry import register
from mpilbm.storage.planes import blocks
from mpilbm.units import TIME, Dimension

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case

# Columns with their dimension and unit in SI and in lattice units
COLUMNS: dict[str, tuple[Dimension, str, str]] = {
    "energy": ((3, -2, 0), "m^3/s^2", "cells^3/step^2"),
    "enstrophy": ((1, -2, 0), "m/s^2", "cells/step^2"),
    "total_energy": ((2, -2, 0), "m^2/s^2", "cells^2/step^2"),
    "total_enstrophy": ((0, -2, 0), "1/s^2", "1/step^2"),
}
WAVE_NUMBER: Dimension = (-1, 0, 0)


@register("outputs", "spectrum")
class Spectrum(Scheduled):
    """Spectra of a periodic box over time, as `spectrum_<label>.h5`, readable during the run.

        energy(k) = sum |u(k')|^2 / (2 dk),    enstrophy(k) = sum |k' x u(k')|^2 / (2 dk)

    over the shell |k - |k'|| < dk/2, where u(k') is the Fourier transform of u divided by the
    number of cells, and dk = 2 pi / (longest side). k = 0 is the mean flow. Sums over all waves are
    `total_energy` = <u.u> / 2 and `total_enstrophy` = <omega.omega> / 2 with exact derivatives, so
    that 2 nu total_enstrophy is the dissipation of a flow without divergence. The file has `k`
    (shells,), `step` and `time` (rows,), `energy` and `enstrophy` (rows, shells), and the totals
    (rows,); rows that are not written yet have the step -1. In SI with [units], else in lattice
    units. The transform is in double precision on the host; the steps wait for it.
    """

    files: ClassVar[tuple[str, ...]] = ("spectrum_<label>.h5",)

    def problems(self, case: "Case") -> list[str]:
        """Boxes in which the flow is not a sum of waves at all nodes."""
        found, domain = super().problems(case), case.domain
        if not all(domain.periodic):
            found.append(
                f"requires a box that is periodic in all directions, found "
                f"domain.periodic = {str(list(domain.periodic)).lower()}"
            )
        if case.bodies:
            found.append("requires a box without bodies; remove the output or the bodies")
        if case.lattice.staggered:
            found.append(
                "requires a lattice that stores all nodes: interpolated ones would weaken short "
                "waves; choose D3Q19 or D3Q27"
            )
        if min(domain.size) < 2:
            found.append(f"requires at least 2 cells along each axis, found {list(domain.size)}")
        return found

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """The kernel of rho and u."""
        return ("fields",)

    def disk_bytes(self, case: "Case", times: int) -> int:
        """A row each time."""
        return (1 << 16) + 8 * ((times + 1) * (2 * Shells(case.shape).count + 4))

    def device_bytes(self, case: "Case", planes: int) -> int:
        """The transforms, which are in the memory of the host: none on a GPU."""
        if case.backend.name == "cuda":
            return 0
        _, rows, nx = case.shape
        return case.dimensions * 16 * planes * rows * (nx // 2 + 1)

    def open(self, context: Context) -> "SpectrumWriter":
        """Creates the file; after a restart keeps its rows up to the first step. Collective."""
        return SpectrumWriter(self, context)


class SpectrumWriter:
    """All ranks transform their planes; rank 0 writes the rows."""

    def __init__(self, output: Spectrum, context: Context):
        self.output, self.context, self.case = output, context, context.case
        if "u" not in context.solver.field_names:
            raise CaseError("this flow has no velocity 'u'", "output.name", self.case.path)
        self.shells = Shells(self.case.shape)
        self.table: Series | None = None  # on rank 0
        on_root(context.comm, self._open)

    def _open(self) -> None:
        shape = (self.shells.count,)
        shapes = {name: () if name.startswith("total") else shape for name in COLUMNS}
        first = self.context.first_step
        rows = self.output.times(first, max(first, self.case.run.steps))
        path = self.context.directory / f"spectrum_{self.output.label_in(self.case)}.h5"
        self.table = Series(path, shapes, first, rows, self._describe)
        self.context.rows.append(self.table)

    def _describe(self, file: "h5py.File") -> None:
        """The wave numbers and attributes."""
        units = self.case.units
        file["k"] = self.shells.k * self._unit(WAVE_NUMBER)
        file["k"].attrs["unit"] = "1/m" if units else "1/cell"
        file["time"].attrs["unit"] = "s" if units else "steps"
        for name, (_, si, lattice) in COLUMNS.items():
            file[name].attrs["unit"] = si if units else lattice
        file.attrs["dk"] = self.shells.dk * self._unit(WAVE_NUMBER)
        file.attrs["case"], file.attrs["units"] = self.case.toml, "SI" if units else "lattice"
        for key, value in in_si(self.case, 0).items():
            if key != "time (s)":
                file.attrs[key] = value

    def _unit(self, dimension: Dimension) -> float:
        """The unit in SI of a quantity of this dimension; 1 without [units]."""
        return self.case.units.unit(dimension) if self.case.units else 1.0

    def write(self, step: int) -> None:
        """Compute and write the row of this step; waits for the device. Collective."""
        found = distributed.spectra(self.context.comm, self.shells, self._waves())
        on_root(self.context.comm, self._write, step, found)

    def _waves(self) -> list[np.ndarray]:
        """The transforms of each component in the planes of this rank."""
        solver, planes, D = self.context.solver, self.context.slab.planes, self.case.dimensions
        solver.prepare(("u",))
        waves = [np.empty((planes, self.shells.columns), np.complex128) for _ in range(D)]
        _, rows, nx = self.case.shape
        for begin, end in blocks(planes, 8 * D * rows * nx):
            u = solver.fields(("u",), begin, end)["u"]
            for axis in range(D):
                values = u[..., axis].astype(np.float64)
                waves[axis][begin:end] = self.shells.in_planes(values)
        return waves

    def _write(self, step: int, found: np.ndarray) -> None:
        dk, units = self.shells.dk, self.case.units
        energy, enstrophy = found
        values = {
            "energy": energy / dk, "enstrophy": enstrophy / dk,
            "total_energy": energy.sum(), "total_enstrophy": enstrophy.sum(),
        }  # fmt: skip
        row = {name: value * self._unit(COLUMNS[name][0]) for name, value in values.items()}
        if self.table is not None:
            time = units.to_si(step, TIME) if units else float(step)
            self.table.add(step, {"time": time, **row})

    def close(self) -> None:
        """Close the file."""
        if self.table is not None:
            self.table.close()
            self.table = None
