"""Sides of voxels: voxels that are no cubes are refused, resampled to cubes, or taken as cubes."""

from collections.abc import Sequence
from dataclasses import replace
from math import hypot, isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids import Ints
from mpilbm.solids.volumes import Volume

EQUAL = 1e-3  # relative difference of sides that are equal
MOST = 100  # ratio of sides
ALIGNED = 0.99  # component of a unit vector that lies along an axis

Vector = tuple[float, ...]


def side(value: float) -> float:
    """The side of a voxel from a number in a file; nan if the number is no length."""
    return abs(value) if isfinite(value) and value else nan


def of_directions(vectors: Sequence[Vector], key: str) -> tuple[Vector, tuple[str, ...]]:
    """Sides of a voxel, and a note if the axes of an array are not x, y, z of the space of a file.

    vectors: the step from a voxel to the next one along each axis, the fastest first; () if it is
    unknown; key: their key in the header.
    """
    sides = tuple(side(hypot(*vector)) for vector in vectors)
    names = [_axis(vector, length) for vector, length in zip(vectors, sides, strict=True)]
    stored = "xyz"[: len(vectors)]
    if all(name in ("?", axis) for name, axis in zip(names, stored, strict=True)):
        return sides, ()
    note = (
        f"{key} of its header places the stored axes {', '.join(stored)} along {', '.join(names)} "
        "of the scanner; the stored axes are used; transpose or flip the file for those of the "
        "scanner"
    )
    return sides, (note,)


def _axis(vector: Vector, length: float) -> str:
    """The axis that is nearest to a vector, with its sign."""
    if not isfinite(length):
        return "?"
    k = max(range(len(vector)), key=lambda each: abs(vector[each]))
    about = "" if abs(vector[k]) >= ALIGNED * length else "about "
    return f"{about}{'-' if vector[k] < 0 else ''}{'xyz'[k]}"


def cubic(volume: Volume, dimensions: int, resample: bool | None) -> Volume:
    """The volume with cubes as voxels.

    resample: replace the voxels by cubes of the shortest side, each with the value of the voxel at
    its centre; False: use each voxel as a cube. Raises ValueError, whose text follows the name of
    the file, for voxels that are no cubes if it is None, and for sides that differ too much.
    """
    volume = volume.of_dimensions(dimensions)
    sides = (*volume.spacing, nan, nan, nan)[:dimensions]
    known = [each for each in sides if isfinite(each)]
    if not known or max(known) <= (1 + EQUAL) * min(known):
        return volume
    least = min(known)
    text = " x ".join(f"{each / least:.4g}" if isfinite(each) else "?" for each in sides)
    if resample is False:
        note = f"the voxels have the sides {text} and are used as cubes (resample = false)"
        return replace(volume, notes=(*volume.notes, note))
    if max(known) > MOST * least:
        fix = "correct the spacing in the file, or set resample = false to use them as cubes"
        allowed = f"allowed: a ratio of {MOST} at most; {fix}"
        raise ValueError(f"has voxels with the sides {text} (the shortest is 1); {allowed}")
    array = Resampled(volume.array, [side / least if isfinite(side) else 1.0 for side in sides])
    size = " x ".join(map(str, reversed(array.shape)))
    if resample is None:
        raise ValueError(
            f"has voxels with the sides {text} along {', '.join('xyz'[: len(sides)])} (the "
            f"shortest is 1), and a cell is a cube; set resample = true to resample it to {size} "
            "cubes by the nearest voxel, or resample = false to use each voxel as a cube"
        )
    old = " x ".join(map(str, reversed(volume.array.shape)))
    note = f"resampled from {old} voxels with the sides {text} to {size} cubes"
    chunk = round(volume.chunk * array.shape[0] / volume.array.shape[0])
    return Volume(array, max(1, chunk), notes=(*volume.notes, note))


class Resampled:
    """An array in which each voxel is replaced by cubes, by the nearest voxel.

    The last plane that was read is kept, so that a compressed file is decompressed once if the
    planes are read in order.
    """

    def __init__(self, array: Any, sides: Sequence[float]):
        """sides: of a voxel along x, y[, z], in sides of a cube."""
        self.array, self.dtype = array, array.dtype
        each = zip(array.shape, reversed(sides), strict=True)
        self._index = [_nearest(n, s) for n, s in each]
        self.shape: tuple[int, ...] = tuple(map(len, self._index))
        self._number, self._plane = -1, np.zeros(0)
        if hasattr(array, "following"):  # see Stream
            self.following = 0

    def __getitem__(self, index: Any) -> NDArray[Any]:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if not isinstance(first, slice):
            return self[(slice(first, first + 1), *rest)][0]
        planes = self._index[0][first]
        old = np.unique(planes)
        values = self._planes(old)[np.searchsorted(old, planes)]
        for axis in range(1, len(self.shape)):
            chosen = self._index[axis][rest[axis - 1] if axis <= len(rest) else slice(None)]
            values = np.take(values, chosen, axis)
        if hasattr(self, "following"):
            self.following = range(self.shape[0])[first][-1] + 1
        return values

    def _planes(self, numbers: Ints) -> NDArray[Any]:
        """Consecutive planes of the array."""
        first, last = int(numbers[0]), int(numbers[-1])
        kept = [self._plane[None]] if first == self._number else []
        parts = kept
        if first + len(kept) <= last:
            parts = [*kept, np.asarray(self.array[first + len(kept) : last + 1])]
        values = np.concatenate(parts) if len(parts) > 1 else parts[0]
        self._number, self._plane = last, values[-1]
        return values


def _nearest(count: int, ratio: float) -> Ints:
    """The voxel at the centre of each cube along an axis; ratio: voxel side over cube side."""
    cubes = max(1, round(count * ratio))
    return np.minimum(((np.arange(cubes) + 0.5) / ratio).astype(np.int64), count - 1)
