"""Means and Reynolds stresses of a slab: sums of samples on the device, moments of these sums.

Sums are kept for each plane, so that the decomposition does not change a bit, and in each plane for

    each row         where x is averaged
    each x           where x is not averaged, but the rows are
    each cell        where neither is averaged, which takes as much memory as the populations

A sample is one kernel behind the steps: it computes rho and u from the populations and adds them
(see codegen/statistics.py), or keeps those of cells, see KeptSamples. The sums are of deviations
from a shift, the mean of the first sample: so the mean flow does not cost digits of the stresses.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.physics.sampled import Sampled
from mpilbm.solver.fields.diagnostics import Diagnostics
from mpilbm.solver.flow_state import StateLaunch


class Moments(NamedTuple):
    """Number of values n (…, 1), means of rho and q (…, 1 + m), sums of d_a d_b (…, m (m + 1) / 2).

    q: the m components of u and scalars, see physics/sampled.py. d = q - mean; the pairs a, b are
    xx, xy, xz, yy, yz, zz. [Chan, Golub & LeVeque 1983, Am. Stat. 37, 242]
    """

    n: np.ndarray
    mean: np.ndarray
    products: np.ndarray

    def fields(self, labels: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
        """The fields of `Sampled.fields`; not a number without fluid. `labels`: those of the
        scalars.
        """
        sampled = Sampled(self.mean.shape[-1] - 1 - len(labels), labels)
        with np.errstate(invalid="ignore", divide="ignore"):
            covariance, mean = self.products / self.n, np.where(self.n > 0, self.mean, np.nan)
        values, shapes = np.concatenate([mean, covariance], axis=-1), sampled.components
        return {
            name: values[..., numbers] if shapes[name] else values[..., numbers[0]]
            for name, numbers in sampled.fields.items()
        }


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


def shifted(sums: np.ndarray, by: np.ndarray, n: np.ndarray | float) -> np.ndarray:
    """The sums of n values d + by, from the sums of d (…, 1 + D + D (D + 1) / 2)."""
    D = by.shape[-1] - 1
    first, products = sums[..., : 1 + D], sums[..., 1 + D :]
    moved, u = first + n * by, first[..., 1:]
    cross = products_of(u + by[..., 1:]) - products_of(u) + (n - 1) * products_of(by[..., 1:])
    return np.concatenate([moved, products + cross], axis=-1)


SHARE = 8  # of the free memory of the device, for samples that are kept
MOST = 8  # samples that are kept


@dataclass(frozen=True)
class Places:
    """The places of a plane for which sums are kept, `rows` x `nx`, and the kernel of a sample."""

    rows: int
    nx: int
    kernel: str

    @classmethod
    def of(cls, rows: int, nx: int, along_x: bool, along_rows: bool) -> "Places":
        """The places of planes of this size; x or the rows are averaged, or both."""
        if along_x:
            return cls(rows, 1, "sample_rows")
        if along_rows and rows > 1:
            return cls(1, nx, "sample_columns")
        return cls(rows, nx, "keep_cells")

    @property
    def count(self) -> int:
        """The number of places in a plane."""
        return self.rows * self.nx

    @property
    def step(self) -> int:
        """How far apart numbers of a place are in the arrays of the device."""
        return 1 if self.kernel == "sample_rows" else self.count

    @property
    def of_cells(self) -> bool:
        """Whether each place is a single cell."""
        return self.kernel == "keep_cells"


def numbers(m: int) -> tuple[int, int]:
    """The number of sums of a place (of rho, q and products q_a q_b), and of its shifts.

    m: the number of components of q, Sampled.values.
    """
    return 1 + m + m * (m + 1) // 2, 1 + m


def bytes_needed(m: int, planes: int, places: Places, value: int) -> int:
    """Bytes of the sums and shifts of planes; `value`: bytes of rho in the computation; m as above.

    Of cells at least one sample is kept; the first sample of others needs the cells of each place.
    """
    columns, shifts = numbers(m)
    a_place = 8 * columns + (2 * value * shifts if places.of_cells else 8 * shifts + 4)
    return planes * places.count * a_place


class KeptSamples:
    """rho and u of the last samples, at most `most`, until they are added to the sums of cells.

    ```
    bulk stream   | steps | keep 1 | steps | keep 2 | … | steps | keep 8 | add 1, 2, … 8 | steps …
    ```

    To read and to write the sums of a cell takes twice as many bytes as its populations in float32.
    With eight samples at a time each sample takes half as long. The samples are added in their
    order, so that their number does not change the sums. Per cell, in float32 and 3D,

        keep   76 B of populations (D3Q19), 16 B of rho and u
        add    16 B for each sample, 16 B of shifts, 160 B of sums
    """

    def __init__(self, diagnostics: Diagnostics, sums: Array, shift: Array, most: int):
        self._context, self._shift = diagnostics.context, shift
        self._planes, self._step = diagnostics.planes, shift.size
        self._most, self._count = min(max(1, most), MOST), 0
        self._kept = self._context.device.allocate(self._most * self._step, shift.dtype)
        self._keep = StateLaunch(diagnostics.state, "keep_cells", kept=self._kept)
        given = {"kept": self._kept, "kept_step": self._step, "sums": sums, "shift": shift}
        given |= diagnostics.grid.arguments()
        self._add = StateLaunch(diagnostics.state, "add_kept", **given)

    def keep(self, first: bool) -> None:
        """Enqueue keeping the current flow; the values of the first sample are the shift."""
        self._keep(0, self._planes, kept_first=self._count * self._step)
        if first:
            values = self._kept[: self._step]
            self._context.device.copy(self._shift, values, self._context.bulk)
        self._count += 1
        if self._count == self._most:
            self.settle()

    def settle(self) -> None:
        """Enqueue adding all samples that are kept."""
        if self._count:
            self._add(0, self._planes, samples=self._count)
            self._count = 0


class Statistics:
    """Sums over samples of a slab; `along_x` and `along_rows`: the axes of the average."""

    def __init__(self, diagnostics: Diagnostics, along_x: bool, along_rows: bool):
        self.diagnostics, self.state = diagnostics, diagnostics.state
        self.context, self.device = diagnostics.context, diagnostics.device
        self.planes, rows, nx = diagnostics.planes, diagnostics.rows, diagnostics.nx
        self.places = Places.of(rows, nx, along_x, along_rows)
        self.along = 1 if along_x else 0  # the axis of a plane, unless places are cells
        self.samples, self.along_rows = 0, along_rows
        self.sampled = self.context.case.in_samples
        m, dtype = self.sampled.values, diagnostics.dtype
        self.columns, self.shifts = numbers(m)
        needed = bytes_needed(m, self.planes, self.places, dtype.itemsize)
        self.device.require(needed, "the sums of statistics")
        count = self.planes * self.places.count
        self._sums = self.device.allocate(count * self.columns, "float64")
        kind = dtype if self.places.of_cells else "float64"  # the mean of one has its precision
        self.shift = self.device.allocate(count * self.shifts, kind)
        self._kept: KeptSamples | None = None  # of cells, from the first sample on

    @property
    def values(self) -> int:
        """How many numbers the state of a plane has."""
        return self.places.count * (self.columns + self.shifts)

    @property
    def sums(self) -> Array:
        """The sums of all samples, on the device."""
        if self._kept:
            self._kept.settle()
        return self._sums

    def sample(self) -> None:
        """Enqueue the addition of the current flow; the first sample also gives the shift, and is
        collective.
        """
        self.diagnostics.prepare(("rho", "u"))
        if self.places.of_cells:
            if self._kept is None:
                most = self.diagnostics.spare_bytes // SHARE // self.shift.nbytes
                self._kept = KeptSamples(self.diagnostics, self._sums, self.shift, most)
            self._kept.keep(first=self.samples == 0)
        else:
            self._add(0, self.planes)
            if self.samples == 0:  # the mean becomes the shift, and the sums 0
                given = {"step": self.places.step, "cells": self.device.upload(self._cells)}
                arrays = {"sums": self._sums, "shift": self.shift}
                launch = self.context.bind("first_mean", **given, **arrays)
                launch(self.context.bulk, 0, self.planes * self.places.count)
                self._add(0, self.planes)
        self.samples += 1

    @cached_property
    def _add(self) -> StateLaunch:
        return StateLaunch(self.state, self.places.kernel, sums=self._sums, shift=self.shift)

    def planes_of(self, array: Array, begin: int, end: int) -> Array:
        """The part of an array for planes begin..end."""
        count = array.size // self.planes
        return array[begin * count : end * count]

    def _by_place(self, flat: np.ndarray, planes: int) -> np.ndarray:
        """The numbers of planes as (planes, numbers of a plane), those of a place in sequence."""
        step, count = self.places.step, self.places.count
        return flat.reshape(planes, count // step, -1, step).swapaxes(2, 3).reshape(planes, -1)

    def _on_host(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Copies of the sums and shifts of planes begin..end."""
        sums, shift = (self.planes_of(each, begin, end) for each in (self.sums, self.shift))
        return self.device.download(sums), self.device.download(shift)

    @cached_property
    def _cells(self) -> np.ndarray:
        """Number of fluid cells of each row or column, int32 (planes, rows or 1, 1 or nx)."""
        diagnostics, places = self.diagnostics, self.places
        whole = diagnostics.rows * diagnostics.nx
        found = np.full((self.planes, places.rows, places.nx), whole // places.count, np.int32)
        for plane in np.flatnonzero(self.context.geometry.fluid_cells < whole).tolist():
            (solid,) = self.state.solid(plane, plane + 1)
            found[plane] = np.count_nonzero(~solid, axis=self.along, keepdims=True)
        return found

    def moments(self, begin: int, end: int) -> Moments:
        """Moments of planes begin..end, (planes, rows or 1, 1 or nx, …), averaged rows merged."""
        shape = end - begin, self.places.rows, self.places.nx, -1
        flat = self._on_host(begin, end)
        sums, shift = (self._by_place(each, end - begin).reshape(shape) for each in flat)
        # a cell is fluid if the shift of its rho is not 0
        cells = shift[..., 0] != 0 if self.places.of_cells else self._cells[begin:end]
        n = cells[..., None].astype(np.float64) * self.samples
        first = sums[..., : self.shifts] / np.maximum(n, 1)
        products = sums[..., self.shifts :] - n * products_of(first[..., 1:])
        found = Moments(n, shift + first, products)
        if self.along_rows and self.places.rows > 1:
            found = Moments(*(each[:, None] for each in merged(found, 1)))
        return found

    def over_planes(self, before: Moments | None) -> Moments:
        """Moments of `before` and of all planes, merged plane by plane, (rows or 1, 1 or nx, …)."""
        if self.places.of_cells:
            return self._cells_over_planes(before)
        for plane in range(self.planes):
            before = merged(self.moments(plane, plane + 1), 0, before)
        assert before is not None, "a slab has planes"
        return before

    def _cells_over_planes(self, before: Moments | None) -> Moments:
        """The moments merged over all planes on the device; moments of no values are 0."""
        places, device, values = self.places, self.device, 1 + self.columns
        device.require(8 * values * places.count, "the merged sums of statistics")
        given = np.zeros((places.count, values))
        if before is not None:
            given = np.concatenate(before, axis=-1).reshape(given.shape)
        found = device.upload(np.ascontiguousarray(given.T).reshape(-1))
        arrays = {"shift": self.shift, "sums": self.sums, "moments": found}
        numbers = {"step": places.step, "samples": self.samples}
        launch = self.context.bind("merge_cells", **numbers, **arrays)
        for plane in range(self.planes):
            launch(self.context.bulk, plane * places.count, (plane + 1) * places.count)
        moments = device.download(found).reshape(values, places.rows, places.nx)
        return Moments(*np.split(np.moveaxis(moments, 0, -1), [1, 1 + self.shifts], axis=-1))

    def read(self, begin: int, end: int) -> np.ndarray:
        """The state of planes begin..end, see `state_of`."""
        return self.state_of(*self._on_host(begin, end), end - begin)

    def state_of(self, sums: np.ndarray, shift: np.ndarray, planes: int) -> np.ndarray:
        """The state of planes, (planes, values), from host copies of their sums and shifts.

        The numbers of a place follow one another: all sums, then all shifts.
        """
        return np.concatenate([self._by_place(flat, planes) for flat in (sums, shift)], axis=1)

    def write(self, state: np.ndarray, samples: int) -> None:
        """The inverse of `read`, of all planes."""
        cut = self.places.count * self.columns
        for plane, values in enumerate(state):
            sums, given = values[:cut].reshape(-1, self.columns), values[cut:]
            shift = given.astype(self.shift.dtype)
            if not np.array_equal(shift, given):  # written by a run of another precision
                by = (given - shift).reshape(-1, self.shifts)
                sums = shifted(sums, by, samples)
            for array, part in ((self.sums, sums), (self.shift, shift)):
                self._store(self.planes_of(array, plane, plane + 1), part)
        self.samples = samples

    def _store(self, target: Array, numbers: np.ndarray) -> None:
        """Copy the numbers of a plane, by place, to the device."""
        step, count = self.places.step, self.places.count
        ordered = numbers.reshape(count // step, step, -1).swapaxes(1, 2)
        self.device.copy(target, np.ascontiguousarray(ordered).reshape(-1))
        self.device.synchronize()
