"""One-dimensional spectra and two-point correlations of rho and u along periodic directions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.core.units import LATTICE_UNIT
from mpilbm.outputs.samples.host import HostSampled
from mpilbm.outputs.samples.writer import Fields
from mpilbm.physics.lattices import AXES

if TYPE_CHECKING:
    import h5py


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

    def directions(self, case: Case) -> tuple[str, ...]:
        """The directions of the lines."""
        within = AXES[: case.dimensions - 1]
        chosen = self.average if self.lines is None else self.lines
        return tuple(axis for axis in within if axis in chosen)

    def sums(self, case: Case) -> "LineSpectra":
        """Spectra and means of the lines of a plane."""
        _, rows, nx = case.shape
        return LineSpectra(rows, nx, case.dimensions, self.along(case), self.directions(case))

    def problems(self, case: Case) -> list[str]:
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

    def describe(self, case: Case, file: "h5py.File") -> None:
        """Add distances and wavenumbers."""
        for axis in self.directions(case):
            n = case.domain.size[AXES.index(axis)]
            modes = np.arange(n // 2 + 1)
            file[f"r_{axis}"], file[f"k_{axis}"] = modes.astype(float), 2 * np.pi * modes / n
            if case.units:
                cell = case.units.cell
                for name, unit, text in (("r", cell, "m"), ("k", 1 / cell, "1/m")):
                    made = file[f"{name}_{axis}"]
                    made.attrs["unit"], made.attrs[LATTICE_UNIT] = text, unit


@dataclass(frozen=True)
class LineSpectra:
    """Spectra of rho and u along lines of cells in planes, and correlations along these lines.

    For a line of n cells along a, with q'_k = (1/n) sum_j q_j exp(-2 pi i j k / n), the mean over
    the samples and over the lines of homogeneous directions is

        E(k) = w_k <|q'_k|^2>, less the square of <q> at k = 0,    R(r) = <q'(x) q'(x + r)>

    with w_k = 1 at k = 0 and k = n/2 and else 2. So the sum over E is R(0), the variance, and R is
    the cosine transform of E.

    directions     those of the lines, of x and y
    along          whether the rows of a plane, and x, are homogeneous
    """

    rows: int
    nx: int
    D: int
    along: tuple[bool, bool]
    directions: tuple[str, ...]

    def _lines(self, axis: str) -> tuple[int, int, int]:
        """Cells of a line, lines of a plane, and for how many places of a plane there are sums."""
        cells, lines = (self.nx, self.rows) if axis == "x" else (self.rows, self.nx)
        homogeneous = self.along[0 if axis == "x" else 1]
        return cells, lines, 1 if homogeneous else lines

    def _sizes(self, axis: str) -> tuple[int, int]:
        """How many numbers a direction has: spectra, and sums of the lines' means."""
        cells, _, places = self._lines(axis)
        return (1 + self.D) * places * (cells // 2 + 1), (1 + self.D) * places

    @property
    def values(self) -> int:
        """The number of lines, and spectra and means along each direction."""
        return 1 + sum(sum(self._sizes(axis)) for axis in self.directions)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The datasets and their shapes for one plane, without homogeneous directions."""
        found: dict[str, tuple[int, ...]] = {}
        for axis in self.directions:
            cells, _, places = self._lines(axis)
            homogeneous = self.along[0 if axis == "x" else 1]
            shape = (*(() if homogeneous else (places,)), cells // 2 + 1)
            for name in ("spectrum", "correlation"):
                found |= {f"{name}_{axis}_rho": shape, f"{name}_{axis}_u": (*shape, self.D)}
        return found

    def add(self, sums: np.ndarray, plane: np.ndarray, solid: np.ndarray | None) -> None:
        """Add a sample (1 + D, rows, nx) of rho - 1 and u; there are no solids."""
        found = [np.ones(1)]
        for axis in self.directions:
            cells, _, places = self._lines(axis)
            data = plane if axis == "x" else plane.swapaxes(1, 2)
            modes = np.fft.rfft(data, axis=2) / cells
            energy = modes.real**2 + modes.imag**2
            energy[..., 1 : (cells + 1) // 2] *= 2
            means = modes[..., 0].real
            if places == 1:
                energy, means = energy.sum(axis=1), means.sum(axis=1)
            found += [energy.reshape(-1), means.reshape(-1)]
        sums += np.concatenate(found)

    def merge(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The numbers of two planes together."""
        return one + other

    def results(self, sums: np.ndarray) -> Fields:
        """The datasets for one plane, or for planes together."""
        fields, first = {}, 1
        for axis in self.directions:
            cells, lines, places = self._lines(axis)
            of_spectra, of_means = self._sizes(axis)
            second, third = first + of_spectra, first + of_spectra + of_means
            n = sums[0] * (lines // places)
            energy = sums[first:second].reshape(1 + self.D, places, -1) / n
            means = sums[second:third].reshape(1 + self.D, places) / n
            energy[..., 0] -= means**2
            whole = energy.copy()
            whole[..., 1 : (cells + 1) // 2] /= 2
            correlation = np.fft.irfft(whole * cells, cells, axis=2)[..., : cells // 2 + 1]
            for name, data in (("spectrum", energy), ("correlation", correlation)):
                rho, u = f"{name}_{axis}_rho", f"{name}_{axis}_u"
                fields[rho] = data[0].reshape(self.shapes[rho])
                fields[u] = np.moveaxis(data[1:], 0, -1).reshape(self.shapes[u])
            first = third
        return fields
