"""Solid cells of a volume, plane by plane, with a cache of the planes that were read."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from mpilbm.solids import Flags
from mpilbm.solids.volumes import Volume
from mpilbm.solids.volumes.voxel_values import VoxelValues, condition, voxel_values

BLOCK = 1 << 24  # bytes that are read at a time
CACHE = 1 << 27  # bytes of planes that are kept, a bit per cell

Span = tuple[int, int]


class SolidPlanes:
    """The solid cells of a volume after cropping and coarsening.

    shape  cells (planes, rows, nx), in 2D (ny, nx); a plane is one along the first axis

    A geometry is built several times. Planes are therefore kept as bits, the least recently used
    ones are removed above CACHE bytes, and the file is read again only for these.
    """

    def __init__(
        self,
        volume: Volume,
        dimensions: int,
        solid: str | Sequence[int] | None = None,
        crop: Sequence[Span] | None = None,
        coarsen: int = 1,
    ):
        """crop: (first, last + 1) voxel of x, y[, z]; coarsen: voxels per cell along each axis.

        A cell is solid if at least half of its voxels are; with equal numbers it is solid.
        Raises ValueError, whose text follows the name of the file.
        """
        self.volume, self.coarsen = volume.of_dimensions(dimensions), coarsen
        array = self.volume.array
        self.spans = _spans(array.shape, crop)
        self.shape = tuple(
            _divided("xyz"[dimensions - 1 - k], span, coarsen) for k, span in enumerate(self.spans)
        )
        self.solid = condition(solid, array.dtype)
        self._bits: OrderedDict[int, NDArray[np.uint8]] = OrderedDict()
        self._together = -(-volume.chunk // coarsen)  # planes that are read together
        self._most = max(3 * self._together, 8 * CACHE // prod(self.shape[1:]))

    @cached_property
    def values(self) -> VoxelValues:
        """The values of the voxels after cropping; reads them, of large volumes some planes."""
        return voxel_values(self.volume, self.spans)

    @property
    def solid_share(self) -> float:
        """The share of the voxels that are solid, from `values`."""
        return self.values.share(self.solid(self.values.numbers))

    @property
    def contents(self) -> tuple[str, str]:
        """The values of the voxels and their shares, and the share that is solid, as texts."""
        solid = f"{self.solid_share:.1%} of the voxels are solid {self.values.sampled}"
        return self.values.text, solid.strip()

    def plane(self, k: int, ahead: Sequence[int] = ()) -> Flags:
        """The solid cells of plane k, bool (rows, nx), in 2D (nx,).

        ahead: the planes that follow; they are read together with it as far as the cache permits.
        """
        if k not in self._bits:
            self._need({k, *ahead[: self._most - 2 * self._together]})
        self._bits.move_to_end(k)
        shape = self.shape[1:]
        return np.unpackbits(self._bits[k], count=prod(shape)).view(bool).reshape(shape)

    def _need(self, planes: set[int]) -> None:
        """Read the planes that are not in the cache, consecutive ones together."""
        missing = sorted(planes - self._bits.keys())
        while missing:
            first, count = missing[0], 1
            while count < len(missing) and missing[count] == first + count:
                count += 1
            self._load(first, first + count)
            missing = [k for k in missing[count:] if k not in self._bits]

    def _load(self, first: int, last: int) -> None:
        """Read planes first … last - 1, and those that are stored together with them."""
        n, begin, array = self.coarsen, self.spans[0][0], self.volume.array
        together = self._together
        first = max(0, self.volume.start(begin + first * n) - begin) // n // together * together
        last = min(-(-last // together) * together, self.shape[0])
        bytes_each = n * prod(array.shape[1:]) * array.dtype.itemsize
        step = max(1, BLOCK // bytes_each // together) * together
        inner = tuple(slice(*span) for span in self.spans[1:])
        for k in range(first, last, step):
            end = min(k + step, last)
            a, b = begin + k * n, begin + end * n
            values = array[(slice(a, b), *inner)]
            if values.dtype.kind == "f" and np.isnan(values).any():
                what = "which is neither solid nor fluid; replace it"
                raise ValueError(f"has nan in planes {a} to {b - 1}, {what}")
            self._keep(k, self._coarse(self.solid(values)))

    def _coarse(self, solid: Flags) -> Flags:
        """The cells of voxels, whose numbers are multiples of `coarsen`."""
        n, D = self.coarsen, solid.ndim
        if n == 1:
            return solid
        blocks = solid.reshape([part for count in solid.shape for part in (count // n, n)])
        counts = blocks.sum(axis=tuple(range(1, 2 * D, 2)), dtype=np.uint32)
        return 2 * counts >= n**D

    def _keep(self, first: int, solid: Flags) -> None:
        for k, plane in enumerate(solid, first):
            self._bits[k] = np.packbits(plane)
            self._bits.move_to_end(k)
            while len(self._bits) > self._most:
                self._bits.popitem(last=False)


def _spans(shape: Sequence[int], crop: Sequence[Span] | None) -> list[Span]:
    """The voxels that are used, slowest axis first."""
    whole = [(0, int(count)) for count in shape]
    if crop is None:
        return whole
    for axis, (first, last), (_, count) in zip("xyz", crop, reversed(whole), strict=False):
        if not 0 <= first < last <= count:
            raise ValueError(
                f"has {count} voxels along {axis}, crop is [{first}, {last}] there; allowed: "
                f"0 <= first < last <= {count}"
            )
    return [(first, last) for first, last in reversed(crop)]


def _divided(axis: str, span: Span, n: int) -> int:
    """The number of cells of a span of voxels along an axis."""
    count = span[1] - span[0]
    if count % n:
        raise ValueError(
            f"has {count} voxels along {axis}, which is not a multiple of coarsen = {n}; give "
            f"crop with {count // n * n} voxels there"
        )
    return count // n
