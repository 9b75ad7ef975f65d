"""Variance, skewness, flatness and extrema of rho and u."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.outputs.samples import Head, SampleFile, image
from mpilbm.outputs.samples.host import HostSampled, unit_of
from mpilbm.outputs.samples.writer import Fields


@register("outputs", "higher_moments")
class HigherMomentsOutput(HostSampled):
    """Variance, skewness, flatness and extrema of rho and u: `higher_moments_<label>_<step>.h5`.

    Over the samples, the fluid cells and the directions of `average`, for q of rho and u:

        variance = <q'^2>, skewness = <q'^3> / <q'^2>^(3/2), flatness = <q'^4> / <q'^2>^2

    A normal distribution has the skewness 0 and the flatness 3, a sine 0 and 1.5. Threads of the
    host compute them from copies of rho and u; without x or y in `average` the host needs 200 bytes
    per cell in 3D. In lattice units; with [units] datasets have the attributes unit and lattice
    unit, and the VTKHDF file is in SI.
    [Pébay 2008, Sandia report SAND2008-6212]
    """

    free: ClassVar[tuple[str, ...]] = ("format",)

    format: Literal["h5", "vtkhdf", "both"] = Field(
        "h5", description="plain HDF5, VTKHDF for ParaView and PyVista, or both"
    )

    files: ClassVar[tuple[str, ...]] = (
        "higher_moments_<label>_<step>.h5",
        "higher_moments_<label>_<step>.vtkhdf",
    )

    def sums(self, case: Case) -> "HigherMoments":
        """Central moments and extrema at each place of a plane."""
        _, rows, nx = case.shape
        return HigherMoments(rows, nx, case.dimensions, self.along(case))

    def kinds(self, head: Head) -> list[SampleFile]:
        """Plain HDF5, VTKHDF, or both."""
        plain = super().kinds(head)
        vtkhdf = image(head, moment_components(head.case.dimensions), unit_of)
        return {"h5": plain, "vtkhdf": [vtkhdf], "both": [*plain, vtkhdf]}[self.format]

    def disk_bytes(self, case: Case, times: int) -> int:
        """The datasets of all files; an image has vectors of three components."""
        size, D = super().disk_bytes(case, times), case.dimensions
        image = -(-size * 4 // (1 + D))
        return {"h5": size, "vtkhdf": image, "both": size + image}[self.format]

    def problems(self, case: Case) -> list[str]:
        """Also rows of a staggered lattice that are not averaged."""
        return super().problems(case) + self.row_problems(case, "moments")


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
        """The datasets and their shapes for one plane, without averaged directions."""
        size = tuple(n for n, all in zip(self._places, self.along, strict=True) if not all)
        return {name: (*size, *parts) for name, parts in moment_components(self.D).items()}

    def add(self, sums: np.ndarray, plane: np.ndarray, solid: np.ndarray | None) -> None:
        """Add a sample (1 + D, rows, nx) of rho - 1 and u over the cells that are not solid."""
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
        """The numbers of two planes together, by the formulas above."""
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
