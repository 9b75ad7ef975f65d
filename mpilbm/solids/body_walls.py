"""Half-way walls of bodies at rest, for bulk kernels that apply them without boundary lists.

A population that would come from a solid cell is the cell's own outgoing one of the opposite
direction. So a kernel needs a word for each cell, whose bit i says that population i would come
from a solid cell, and bit 0 that the cell is solid. Few cells are next to a body: words are kept in
blocks of 32 cells of a row, and rows without bodies have none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpilbm.layouts.grid import Grid
from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import reflecting
from mpilbm.solids import Ints
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.missing_links import owned_links
from mpilbm.solids.owners import owners_of
from mpilbm.solids.solid_cells import padded_ids, solids
from mpilbm.solids.windows import Window

BLOCK = 32  # cells of a row whose words lie together
EMPTY, SOLID = 0, 1  # blocks that are not repeated: no bit is set; all cells are solid

Words = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class BodyWalls:
    """The words of the cells of a slab, see above.

    blocks  int32 (planes, rows, segments), planes with ghost planes: the block of each BLOCK cells
            of a row
    words   uint32 (blocks, BLOCK); the first block is EMPTY, the second one SOLID
    owners  the places of the owners of these walls
    """

    blocks: NDArray[np.int32]
    words: Words
    owners: frozenset[int]

    @classmethod
    def of(cls, case: BoundedLattice, slab: Slab, geometry: Geometry, grid: Grid) -> "BodyWalls":
        """Find the walls of a slab.

        A pass of two steps also updates the ghost planes beside the slab once, so these have words
        if the slab has further ghost planes.
        """
        numbers = reflecting(case)
        places = frozenset(owner.place for owner in owners_of(case) if owner.body in numbers)
        packed = _Packed((grid.planes + 2 * grid.ghost, grid.rows, grid.nx))
        for local, words in _planes(slab, geometry, numbers) if places else ():
            packed.add(grid.ghost + local, words)
        for local in (-1, slab.planes) if places and grid.ghost > 1 else ():
            plane = slab.global_plane(local)
            if plane is not None:
                packed.add(grid.ghost + local, _words_of_plane(case, slab, plane, numbers))
        return cls(packed.blocks, np.concatenate(packed.words), places)

    def of_window(self, window: Window, grid: Grid) -> "BodyWalls":
        """The words of the cells of a window of the slab; `grid`: of the window.

        Across the planes a window has no neighbours, so its ghost planes have no words.
        """
        planes = np.arange(grid.planes + 2 * grid.ghost)
        places = [planes, np.arange(grid.rows), np.arange(grid.nx)]
        places[window.axis] = np.array(window.ends)
        if window.axis == 0:
            planes = planes[grid.ghost : -grid.ghost]
            places[0] += grid.ghost
        xs = places[2]
        found = self.words[self.blocks[np.ix_(*places[:2], xs // BLOCK)], xs % BLOCK]
        packed = _Packed((grid.planes + 2 * grid.ghost, grid.rows, grid.nx))
        for plane, words in zip(planes, found, strict=True):
            packed.add(int(plane), words)
        return BodyWalls(packed.blocks, np.concatenate(packed.words), self.owners)

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.blocks.nbytes + self.words.nbytes


class _Packed:
    """The blocks of an array of (planes, rows, nx) cells, under construction."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.segments = -(-shape[2] // BLOCK)
        self.blocks = np.full((*shape[:2], self.segments), EMPTY, np.int32)
        self.words = [np.array([[0], [1]], np.uint32).repeat(BLOCK, 1)]
        self._count = 2

    def add(self, plane: int, words: Words) -> None:
        """Add the words (rows, nx) of a plane."""
        rows, nx = words.shape
        blocks = np.zeros((rows, self.segments * BLOCK), np.uint32)
        blocks[:, :nx] = words
        blocks[:, nx:] = words[:, -1:] & np.uint32(1)  # no cells; so that blocks may be SOLID
        blocks = blocks.reshape(-1, BLOCK)
        numbers = np.where((blocks == 1).all(axis=1), SOLID, EMPTY)
        own = np.flatnonzero(blocks.any(axis=1) & (numbers != SOLID))
        numbers[own] = self._count + np.arange(own.size)
        self.blocks[plane] = numbers.reshape(rows, -1)
        self.words.append(blocks[own])
        self._count += own.size


def _planes(slab: Slab, geometry: Geometry, numbers: Sequence[int]) -> Iterator[tuple[int, Words]]:
    """The local planes of a slab with solid cells or links of some bodies, and their words."""
    size = slab.shape[1] * slab.shape[2]
    found = [_links(each, numbers) for each in geometry.lists]
    bodies = np.add(numbers, 1).astype(geometry.solid.dtype)
    for local, solid in enumerate(geometry.solid):
        words = np.isin(solid, bodies).astype(np.uint32) if solid.any() else None
        for cells, links in found:
            begin, end = np.searchsorted(cells, [local * size, (local + 1) * size])
            if begin < end:
                words = np.zeros(solid.shape, np.uint32) if words is None else words
                np.bitwise_or.at(
                    words.reshape(-1), cells[begin:end] - local * size, links.bits[begin:end]
                )
        if words is not None:
            yield local, words


def _links(entries: EntryList, numbers: Sequence[int]) -> tuple[Ints, LinkSet]:
    """The cells of a list next to some bodies, ascending, and the links from these bodies."""
    mine = np.flatnonzero(entries.of_bodies(numbers))
    return entries.cells[mine], entries.links[mine].moving()


def _words_of_plane(case: BoundedLattice, slab: Slab, plane: int, numbers: Sequence[int]) -> Words:
    """The words (rows, nx) of a plane of the box, of links and cells of some bodies."""
    alone = Slab(slab.shape, plane, slab.shape[0], plane, plane + 1, slab.periodic)
    ids = solids(case, padded_ids(case, alone))
    words = np.isin(ids[1], np.add(numbers, 1)).astype(np.uint32)
    owned = owned_links(case, alone, ids)
    mine = np.flatnonzero(owned.owned_by(lambda owner: owner.body in numbers))
    np.bitwise_or.at(words.reshape(-1), owned.cells[mine], owned.missing[mine].bits)
    return words
