"""What grids need from each other, from the geometry of a slab and from boundary lists."""

from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpilbm.physics.boundaries import Condition

Offset = tuple[int, int, int]  # of a cell: (plane, row, x)


class Planes(Protocol):
    """The planes of a field in memory, whatever its cells are."""

    @property
    def name(self) -> str:
        """The name of the array."""

    @property
    def planes(self) -> int:
        """Number of owned planes."""

    @property
    def interior(self) -> tuple[int, int]:
        """First owned plane, and one past the last, as numbers in the array."""

    @property
    def wraps(self) -> bool | None:
        """Whether planes wrap around; None: addresses do not depend on it."""


class Nodes(Planes, Protocol):
    """The fluid cells of a slab in memory, for which tables of neighbours are computed.

    Its members are described in NodeGrid.
    """

    @property
    def rows(self) -> int:
        """Rows of a plane."""

    @property
    def nx(self) -> int:
        """Cells of a row."""

    @property
    def ghost(self) -> int:
        """Number of ghost planes on each side."""

    @property
    def offsets(self) -> tuple[Offset, ...]:
        """Offsets of the neighbours, a table each."""

    @property
    def turned(self) -> tuple[tuple[int, int], ...]:
        """For each offset, the slot that is read there, and the one that replaces it."""

    @property
    def count_of(self) -> NDArray[np.int64]:
        """Number of nodes of each plane of the array."""

    @property
    def start(self) -> NDArray[np.int64]:
        """Number of locations of a slot in all lower planes, for each plane."""

    @property
    def stride(self) -> NDArray[np.int64]:
        """Number of locations of a slot in each plane."""

    def piece(self, plane: int, slot: int, count: int, /) -> tuple[int, int]:
        """Start and length in the array of `count` slots of a plane."""

    def together(self, plane: int, target: int, /) -> bool:
        """Whether the owner of a plane also owns this neighbouring plane."""


class FluidCells(Protocol):
    """The fluid cells of a slab and of the planes next to it."""

    @property
    def wraps(self) -> tuple[bool, bool]:
        """Whether rows are periodic, and whether x is."""

    def fluid(self, local: int, /) -> NDArray[np.bool_]:
        """The fluid cells (rows, nx) of a local plane."""


class Entry(Protocol):
    """The part of a boundary list that a layout needs to leave links out, see EntryList."""

    @property
    def cells(self) -> NDArray[np.int64]:
        """The cell of each entry, (plane * rows + row) * nx + x."""

    @property
    def boundary(self) -> Condition:
        """The boundary."""

    def limited(self, planes: int, elsewhere: dict[int, Any], plane: NDArray[np.int64], /) -> Self:
        """The list with only some of its links, by the plane of the cell."""


EntryLike = TypeVar("EntryLike", bound=Entry)
