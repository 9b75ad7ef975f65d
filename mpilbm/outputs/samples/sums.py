"""Sums over samples of the planes of a rank, on the device or on the host."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from mpilbm.outputs import Context, PlaneCopies
from mpilbm.parallel.agree import together
from mpilbm.solver.fields.flow_statistics import Moments

Fields = dict[str, np.ndarray]


class Sums(Protocol):
    """Sums over samples of the planes of this rank, on the device or on the host."""

    @property
    def samples(self) -> int:
        """How many samples are added."""

    @property
    def values(self) -> int:
        """How many numbers a plane has."""

    def sample(self) -> None:
        """Enqueue the addition of the current flow; collective."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """The numbers of local planes for a checkpoint, float64 (end - begin, values)."""

    def write(self, state: np.ndarray, samples: int) -> None:
        """The inverse of `read`, of all planes."""

    def copies(self) -> PlaneCopies:
        """Copies of these numbers, named "sums", on their way to a checkpoint; collective."""

    def over_planes(self, before: Any) -> Any:
        """`before` (None: nothing) merged with the planes of this rank, one after another."""

    def results(self, merged: Any) -> Fields:
        """The fields of merged planes."""

    def of_planes(self) -> PlaneCopies:
        """The fields of local planes on their way to files; collective."""

    def settle(self) -> None:
        """Wait until all samples are added; raises the error of a thread."""

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""


class HostPlanes:
    """Arrays of all local planes on the host, as PlaneCopies."""

    def __init__(self, arrays: Fields):
        self._arrays = arrays

    def blocks(self, planes: int) -> list[tuple[int, int]]:
        """Ranges (begin, end) of planes that are written at a time."""
        return [(0, planes)]

    @contextmanager
    def start(self, begin: int, end: int) -> Iterator[Fields]:
        """The values of these planes by name."""
        yield {name: array[begin:end] for name, array in self._arrays.items()}


class DeviceSums:
    """Sums of rho, u, scalars and their products, which the device computes.

    `along`: whether the rows of a plane, and x, are averaged.
    """

    def __init__(self, context: Context, along: tuple[bool, bool]):
        rows, x = along
        self.context, self.statistics = context, context.solver.statistics(x, rows)
        self.values, self._ready = self.statistics.values, False

    @property
    def samples(self) -> int:
        """How many samples are added."""
        return self.statistics.samples

    def sample(self) -> None:
        """Enqueue a sample; the first one of a run allocates memory, which may fail on one rank."""
        if self._ready:
            self.statistics.sample()
        else:
            together(self.context.comm, self.statistics.sample)
            self._ready = True

    def read(self, begin: int, end: int) -> np.ndarray:
        """The sums and shifts of local planes; waits for the device."""
        return self.statistics.read(begin, end)

    def write(self, state: np.ndarray, samples: int) -> None:
        """Continue with these sums and shifts."""
        self.statistics.write(state, samples)

    def copies(self) -> PlaneCopies:
        """Copies of the sums and shifts."""
        return self.context.copies.sums(self.statistics)

    def over_planes(self, before: Moments | None) -> Moments:
        """The moments of the planes, added one after another."""
        return self.statistics.over_planes(before)

    def results(self, merged: Moments) -> Fields:
        """The fields of `Sampled.fields`."""
        return merged.fields(self.context.case.labels)

    def of_planes(self) -> PlaneCopies:
        """Means and products; the device computes those of cells, the host those of lines."""
        if self.statistics.places.of_cells:
            return self.context.copies.means(self.statistics)
        return HostPlanes(self.results(self.statistics.moments(0, self.context.slab.planes)))

    def settle(self) -> None:
        """Nothing to wait for: reading the sums waits for the device."""

    def close(self) -> None:
        """Nothing is open between two samples."""
