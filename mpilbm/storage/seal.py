"""The digest of a file of planes, computed from the bytes in memory that were to be written."""

import zlib

import numpy as np

from mpilbm.core.files.file_digest import Extent, piece_sums, trailer
from mpilbm.parallel.communicator import Communicator
from mpilbm.storage.places import Place


class Seal:
    """Collects the crc32 of the planes that this rank writes to the datasets in `places`.

    A dataset written plane by plane has a crc32 for each plane, a dataset written at once has one.
    The rest of the file, which HDF5 wrote, is read to compute its crc32.
    """

    def __init__(self, places: dict[str, Place], planes: int):
        self.places, self.planes = places, planes
        self.sums: dict[str, np.ndarray] = {}

    def note(self, name: str, plane: int, view: memoryview) -> None:
        """`view` holds the bytes of whole planes from `plane` on; in any thread."""
        sums = self.sums.setdefault(name, np.zeros(self.planes, np.uint32))
        size = self.places[name].bytes // self.planes
        for k, begin in enumerate(range(0, len(view), size) if size else ()):
            sums[plane + k] = zlib.crc32(view[begin : begin + size])

    def note_whole(self, name: str, view: memoryview) -> None:
        """`view` holds the bytes of the whole dataset."""
        self.sums[name] = np.array([zlib.crc32(view)], np.uint32)

    def gather(self, comm: Communicator, begin: int, end: int) -> None:
        """Collect the sums of all planes on rank 0; each rank has those of planes begin..end."""
        own = {name: self.sums[name][begin:end] for name in self.by_planes}
        parts = comm.gather(own)
        if parts is None:
            return
        for name in {name for part in parts for name in part}:
            self.sums[name] = np.concatenate([part[name] for part in parts if name in part])

    @property
    def by_planes(self) -> list[str]:
        """The datasets of which this rank has written planes, or all if it has collected them."""
        return [name for name, sums in self.sums.items() if len(sums) == self.planes]

    def trailer(self, number: int, size: int) -> bytes:
        """The bytes to append to the file of `size` bytes with this descriptor; on rank 0."""
        extents: list[Extent] = []
        sums: list[np.ndarray] = []
        end = 0

        def rest(until: int) -> None:
            if end < until:
                extents.append(Extent(end, 1, until - end))
                sums.append(piece_sums(number, extents[-1], range(1)))

        for name in sorted(self.sums, key=lambda name: self.places[name].offset):
            place, pieces = self.places[name], len(self.sums[name])
            if place.bytes:
                rest(place.offset)
                extents.append(Extent(place.offset, pieces, place.bytes // pieces))
                sums.append(self.sums[name])
                end = extents[-1].end
        rest(size)
        return trailer(extents, np.concatenate(sums))
