"""Numbers of each plane to which samples of rho and u are added on the host."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

Fields = dict[str, np.ndarray]


class PlaneSums(Protocol):
    """The numbers of a plane, float64 (values,), 0 before the first sample.

    A plane is always evaluated alone and by the same operations, and samples and planes are added
    in their order: so the results do not depend on the ranks in a single bit.
    """

    @property
    def values(self) -> int:
        """How many numbers a plane has."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The datasets of `results`, and their shapes for one plane."""

    def add(self, sums: np.ndarray, plane: np.ndarray, solid: np.ndarray | None) -> None:
        """Add a sample (1 + D, rows, nx) of rho - 1 and u; `solid` (rows, nx), None without it."""

    def merge(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The numbers of two planes together."""

    def results(self, sums: np.ndarray) -> Fields:
        """The datasets for one plane, or for planes together."""


def moment_components(D: int) -> dict[str, tuple[int, ...]]:
    """The datasets of HigherMoments, and their shape at a place."""
    found: dict[str, tuple[int, ...]] = {"rho": (), "u": (D,)}
    for name in ("variance", "skewness", "flatness", "min", "max"):
        found |= {f"rho_{name}": (), f"u_{name}": (D,)}
    return found


@dataclass(frozen=True)
class HigherMoments:
    """Central moments up to the fourth, and extrema, of rho and u at each place of a plane.

    Two passes over the cells of a plane give the sums S_p of (q - mean)^p, and these are merged
    with those of earlier samples. With d the difference of the means and n = n_a + n_b,

        S_2 = A_2 + B_2 + d^2 n_a n_b / n
        S_3 = A_3 + B_3 + d^3 n_a n_b (n_a - n_b) / n^2 + 3 d (n_a B_2 - n_b A_2) / n
        S_4 = A_4 + B_4 + d^4 n_a n_b (n_a^2 - n_a n_b + n_b^2) / n^3
            + 6 d^2 (n_a^2 B_2 + n_b^2 A_2) / n^2 + 4 d (n_a B_3 - n_b A_3) / n

    rows, nx, D    cells of a plane, dimensions
    along          whether the rows of a plane, and x, are averaged
    [Pebay 2008, Sandia report SAND2008-6212]
    """

    rows: int
    nx: int
    D: int
    along: tuple[bool, bool]

    @property
    def _places(self) -> tuple[int, int]:
        rows, x = self.along
        return 1 if rows else self.rows, 1 if x else self.nx

    @property
    def values(self) -> int:
        """n, and mean, S_2, S_3, S_4, minimum and maximum of 1 + D quantities, at each place."""
        return (1 + 6 * (1 + self.D)) * prod(self._places)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See PlaneSums; averaged directions are left out."""
        size = tuple(n for n, all in zip(self._places, self.along, strict=True) if not all)
        return {name: (*size, *parts) for name, parts in moment_components(self.D).items()}

    def add(self, sums: np.ndarray, plane: np.ndarray, solid: np.ndarray | None) -> None:
        """See PlaneSums."""
        axes = tuple(1 + k for k, all in enumerate(self.along) if all)
        fluid = np.ones(plane.shape[1:]) if solid is None else (~solid).astype(float)
        n = fluid[None].sum(axis=axes, keepdims=True)
        mean = (plane if solid is None else plane * fluid).sum(axis=axes, keepdims=True)
        mean = mean / np.maximum(n, 1)
        d = plane - mean
        low = high = plane
        if solid is not None:
            d *= fluid
            low, high = np.where(solid, np.inf, plane), np.where(solid, -np.inf, plane)
        square = d * d
        powers = [part.sum(axis=axes, keepdims=True) for part in (square, square * d, square**2)]
        ends = (low.min(axis=axes, keepdims=True), high.max(axis=axes, keepdims=True))
        found = [mean, *powers, *(np.where(n > 0, end, 0) for end in ends)]
        numbers = np.concatenate([n, *found]).reshape(-1)
        sums[:] = self.merge(sums, numbers)

    def _parts(self, sums: np.ndarray) -> list[np.ndarray]:
        """n (1, rows or 1, nx or 1), and six arrays (1 + D, rows or 1, nx or 1)."""
        numbers = sums.reshape(-1, *self._places)
        return [numbers[:1], *np.split(numbers[1:], 6)]

    def merge(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """See PlaneSums and the formulas above."""
        a, mean_a, a2, a3, a4, low_a, high_a = self._parts(one)
        b, mean_b, b2, b3, b4, low_b, high_b = self._parts(other)
        n = np.maximum(a + b, 1)
        d, p, q = mean_b - mean_a, a / n, b / n
        s2 = a2 + b2 + d**2 * (p * b)
        s3 = a3 + b3 + d**3 * (p * q) * (a - b) + 3 * d * (p * b2 - q * a2)
        s4 = a4 + b4 + d**4 * (p * b) * (p * p - p * q + q * q)
        s4 = s4 + 6 * d**2 * (p * p * b2 + q * q * a2) + 4 * d * (p * b3 - q * a3)
        low = np.where(a == 0, low_b, np.where(b == 0, low_a, np.minimum(low_a, low_b)))
        high = np.where(a == 0, high_b, np.where(b == 0, high_a, np.maximum(high_a, high_b)))
        return np.concatenate([a + b, mean_a + d * q, s2, s3, s4, low, high]).reshape(-1)

    def results(self, sums: np.ndarray) -> Fields:
        """Not a number where there is no fluid; skewness and flatness also without variance."""
        n, mean, s2, s3, s4, low, high = self._parts(sums)
        rest = np.zeros_like(mean)
        rest[0] = 1  # of rho
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = s2 / n
            found = {
                "": np.where(n > 0, mean + rest, np.nan),
                "_variance": variance,
                "_skewness": s3 / n / variance**1.5,
                "_flatness": s4 / n / variance**2,
                "_min": np.where(n > 0, low + rest, np.nan),
                "_max": np.where(n > 0, high + rest, np.nan),
            }
        fields = {}
        for name, shape in self.shapes.items():
            quantity, _, _ = name.partition("_")
            data = found[name.removeprefix(quantity)]
            data = data[0] if quantity == "rho" else np.moveaxis(data[1:], 0, -1)
            fields[name] = data.reshape(shape)
        return fields


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
        """See PlaneSums; homogeneous directions are left out."""
        found: dict[str, tuple[int, ...]] = {}
        for axis in self.directions:
            cells, _, places = self._lines(axis)
            homogeneous = self.along[0 if axis == "x" else 1]
            shape = (*(() if homogeneous else (places,)), cells // 2 + 1)
            for name in ("spectrum", "correlation"):
                found |= {f"{name}_{axis}_rho": shape, f"{name}_{axis}_u": (*shape, self.D)}
        return found

    def add(self, sums: np.ndarray, plane: np.ndarray, solid: np.ndarray | None) -> None:
        """See PlaneSums; there are no solids."""
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
        """See PlaneSums."""
        return one + other

    def results(self, sums: np.ndarray) -> Fields:
        """See PlaneSums."""
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


def with_planes(results: Callable[[np.ndarray], Fields], state: np.ndarray) -> Fields:
    """The datasets of planes (planes, …) from their numbers (planes, values)."""
    found: Fields = {}
    for plane, sums in enumerate(state):
        for name, data in results(sums).items():
            if name not in found:
                found[name] = np.empty((len(state), *data.shape))
            found[name][plane] = data
    return found
