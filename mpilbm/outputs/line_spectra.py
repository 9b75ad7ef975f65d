"""One-dimensional spectra and two-point correlations of rho and u along periodic directions."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.core.units import LATTICE_UNIT
from mpilbm.outputs.host_samples.output import HostSampled
from mpilbm.outputs.host_samples.plane_sums import LineSpectra
from mpilbm.physics.lattices import AXES

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case


@register("outputs", "line_spectra")
class LineSpectraOutput(HostSampled):
    """Spectra and correlations of rho and u along x or y: `line_spectra_<label>_<step>.h5`.

    For a line of n cells along the homogeneous direction a, with the Fourier coefficients
    q_k = (1/n) sum_j q_j exp(-2 pi i j k / n), averaged over samples and homogeneous directions:

        spectrum_a(k) = w_k <|q_k|^2>, less <q>^2 at k = 0        w_k = 1 at k = 0, n/2; else 2
        correlation_a(r) = <q'(x) q'(x + r)> = sum_k spectrum_a(k) cos(2 pi k r / n)

    The spectrum is the energy of a mode: its sum is the variance. Divide it by the distance of wave
    numbers, 2 pi / n, for a density. Lines along the last direction (z, in 2D y) are distributed
    over the ranks and are refused. Threads of the host compute the spectra from copies.
    """

    lines: tuple[str, ...] | None = Field(
        None,
        description="directions of the lines, of those in average; without it: x and y of these",
        examples=[["x"]],
    )

    files: ClassVar[tuple[str, ...]] = ("line_spectra_<label>_<step>.h5",)

    def directions(self, case: "Case") -> tuple[str, ...]:
        """The directions of the lines."""
        within = AXES[: case.dimensions - 1]
        chosen = self.average if self.lines is None else self.lines
        return tuple(axis for axis in within if axis in chosen)

    def sums(self, case: "Case") -> LineSpectra:
        """See HostSampled."""
        _, rows, nx = case.shape
        return LineSpectra(rows, nx, case.dimensions, self.along(case), self.directions(case))

    def problems(self, case: "Case") -> list[str]:
        """Lines that are not homogeneous, not periodic, or distributed; bodies."""
        found, D = super().problems(case), case.dimensions
        within, last = AXES[: D - 1], AXES[D - 1]
        known = " and ".join(within)
        for axis in self.lines or ():
            if axis == last:
                found.append(
                    f"lines: found '{axis}', along which the box is divided among the ranks; "
                    f"allowed: {known}; turn the case, so that '{axis}' has walls or no lines"
                )
            elif axis not in within:
                found.append(f"lines: found '{axis}'; allowed: {known}")
            elif axis not in self.average:
                found.append(
                    f"lines: found '{axis}', which is not homogeneous; add it to average, now "
                    f"{list(self.average)}"
                )
        if len(set(self.lines or ())) < len(self.lines or ()):
            found.append(f"lines: found {list(self.lines or ())}; allowed: each direction once")
        if not self.directions(case) and not found:
            found.append(f"average: found {list(self.average)}; needed: at least one of {known}")
        for axis in self.directions(case):
            if not case.domain.periodic[AXES.index(axis)]:
                found.append(
                    f"lines: '{axis}' is not periodic, so its lines have no spectrum; set "
                    f"domain.periodic, or leave '{axis}' out"
                )
        if case.lattice.staggered:
            found.append(
                f"{case.lattice.name} stores every other node, so lines of cells have gaps; "
                "choose another lattice"
            )
        if case.bodies:
            found.append("lines through bodies have no spectrum; remove the bodies or this output")
        return found

    def describe(self, case: "Case", file: "h5py.File") -> None:
        """Also distances and wavenumbers."""
        super().describe(case, file)
        for axis in self.directions(case):
            n = case.domain.size[AXES.index(axis)]
            modes = np.arange(n // 2 + 1)
            file[f"r_{axis}"], file[f"k_{axis}"] = modes.astype(float), 2 * np.pi * modes / n
            if case.units:
                for name, unit, text in (("r", case.units.cell, "m"),
                                         ("k", 1 / case.units.cell, "1/m")):  # fmt: skip
                    made = file[f"{name}_{axis}"]
                    made.attrs["unit"], made.attrs[LATTICE_UNIT] = text, unit
