"""Means and Reynolds stresses of a slab: sums of samples on the device, moments of these sums.

Sums are kept for each plane, so that the decomposition does not change a bit, and in each plane for

    each row         where x is averaged
    each x           where x is not averaged, but the rows are
    each cell        where neither is averaged, which takes as much memory as the populations

The sums are of deviations from a shift, the mean of the first sample: so the mean flow does not
cost digits of the stresses. Moments of several sums are merged one after another.
[Chan, Golub & LeVeque 1983, Am. Stat. 37, 242]
"""

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.solver.fields.diagnostics import Diagnostics


class Moments(NamedTuple):
    """Number of values n (…, 1), means of rho and u (…, 1 + D), sums of d_a d_b (…, D (D + 1) / 2).

    d = u - mean; the pairs a, b are xx, xy, xz, yy, yz, zz.
    """

    n: np.ndarray
    mean: np.ndarray
    products: np.ndarray

    def fields(self) -> dict[str, np.ndarray]:
        """rho, u and the Reynolds stress <u_a' u_b'>; not a number where there is no fluid."""
        with np.errstate(invalid="ignore", divide="ignore"):
            stress, mean = self.products / self.n, np.where(self.n > 0, self.mean, np.nan)
        return {"rho": mean[..., 0], "u": mean[..., 1:], "reynolds_stress": stress}


def merged(parts: Moments, axis: int, before: Moments | None = None) -> Moments:
    """Moments of `before` and of all values along an axis of the arrays, merged in order."""
    for k in range(parts.n.shape[axis]):
        part = Moments(*(np.take(each, k, axis) for each in parts))
        before = part if before is None else merge(before, part)
    if before is None:
        raise ValueError(f"no values along axis {axis}")
    return before


def merge(a: Moments, b: Moments) -> Moments:
    """Moments of the values of a and b together."""
    n = a.n + b.n
    share = b.n / np.maximum(n, 1)
    d = b.mean - a.mean
    products = a.products + b.products + products_of(d[..., 1:]) * (a.n * share)
    return Moments(n, a.mean + d * share, products)


def products_of(u: np.ndarray) -> np.ndarray:
    """u_a u_b (…, D (D + 1) / 2) of u (…, D)."""
    pairs = combinations_with_replacement(range(u.shape[-1]), 2)
    return np.stack([u[..., a] * u[..., b] for a, b in pairs], axis=-1)


def places(rows: int, nx: int, along_x: bool, along_rows: bool) -> tuple[int, int]:
    """The numbers of rows and of x in a plane for which sums are kept."""
    return rows if along_x or not along_rows else 1, 1 if along_x else nx


def numbers(D: int) -> tuple[int, int]:
    """The number of sums of a place (of rho, u and products u_a u_b), and of its shifts."""
    return 1 + D + D * (D + 1) // 2, 1 + D


def bytes_needed(D: int, planes: int, places: int) -> int:
    """Bytes of the sums and shifts of planes with so many places; the first sample needs 2 sums."""
    columns, shifts = numbers(D)
    return 8 * planes * places * (2 * columns + shifts)


class Statistics:
    """Sums over samples of a slab; `along_x` and `along_rows`: the axes of the average."""

    def __init__(self, diagnostics: Diagnostics, along_x: bool, along_rows: bool):
        self.diagnostics, self.state = diagnostics, diagnostics.state
        self.device, self.samples, D = diagnostics.device, 0, diagnostics.lattice.D
        planes, rows, nx = diagnostics.planes, diagnostics.rows, diagnostics.nx
        self.kernel = "sample_rows" if along_x else "sample_columns"
        self.along = (2,) if along_x else (1,) if along_rows else ()
        self.shape = places(rows, nx, along_x, along_rows)
        self.along_rows, self.planes = along_rows, planes
        self.columns, self.shifts = numbers(D)
        count = planes * self.shape[0] * self.shape[1]
        needed = bytes_needed(D, planes, count // planes)
        self.device.require(needed, "the sums of statistics")
        self.sums = self.device.allocate(count * self.columns, "float64")
        self.shift = self.device.allocate(count * self.shifts, "float64")

    @property
    def values(self) -> int:
        """How many numbers the state of a plane has."""
        return self.shape[0] * self.shape[1] * (self.columns + self.shifts)

    def sample(self) -> None:
        """Add the current flow; the first sample also gives the shift."""
        if self.samples == 0:
            self._add()
            n = self._cells(0, self.planes)
            first = self._part(self.sums, 0, self.planes)[..., : self.shifts]
            self.shift = self.device.upload(first / np.maximum(n, 1))
            self.sums = self.device.allocate(self.sums.size, "float64")
        self._add()
        self.samples += 1

    def _add(self) -> None:
        for begin, end in self.state.blocks():
            rho, u = self.diagnostics.on_device(begin, end)
            arrays = {"rho_out": rho, "u_out": u, "sums": self._planes(self.sums, begin, end)}
            arrays |= {"shift": self._planes(self.shift, begin, end), "kept_rows": self.shape[0]}
            self.state.over_block(self.kernel, begin, end, **arrays)

    def _planes(self, array: Array, begin: int, end: int) -> Array:
        """The part of an array for planes begin..end."""
        count = array.size // self.planes
        return array[begin * count : end * count]

    def _part(self, array: Array, begin: int, end: int) -> np.ndarray:
        """A copy of this part on the host, (planes, rows or 1, 1 or nx, numbers)."""
        found = self.device.download(self._planes(array, begin, end))
        return found.reshape(end - begin, *self.shape, -1)

    def _cells(self, begin: int, end: int) -> np.ndarray:
        """Number of fluid cells in each sum, (planes, rows or 1, 1 or nx, 1)."""
        fluid = ~self.state.solid(begin, end)
        return fluid.sum(axis=self.along, keepdims=True, dtype=np.float64)[..., None]

    def moments(self, begin: int, end: int) -> Moments:
        """Moments of planes begin..end, (planes, rows or 1, 1 or nx, …), averaged rows merged."""
        n = self._cells(begin, end) * self.samples
        sums = self._part(self.sums, begin, end)
        first = sums[..., : self.shifts] / np.maximum(n, 1)
        mean = self._part(self.shift, begin, end) + first
        found = Moments(n, mean, sums[..., self.shifts :] - n * products_of(first[..., 1:]))
        if self.along_rows and self.shape[0] > 1:
            found = Moments(*(each[:, None] for each in merged(found, 1)))
        return found

    def read(self, begin: int, end: int) -> np.ndarray:
        """The state of planes begin..end, (end - begin, values)."""
        parts = (self._part(array, begin, end) for array in (self.sums, self.shift))
        return np.concatenate([part.reshape(end - begin, -1) for part in parts], axis=1)

    def write(self, state: np.ndarray, samples: int) -> None:
        """The inverse of `read`, of all planes."""
        cut = self.sums.size // self.planes
        self.sums = self.device.upload(state[:, :cut])
        self.shift, self.samples = self.device.upload(state[:, cut:]), samples
