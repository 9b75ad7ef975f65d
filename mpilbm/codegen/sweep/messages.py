"""Messages between the threads of a tile in the moment sweep: which populations, and their places.

A thread owns rows x cells neighbouring cells, c = row * cells + x. Populations that move from one
of them to another stay in its registers. The others go to one of eight neighbouring threads through
shared memory: a message for each neighbour, in pieces of four, two or one values, which a thread
stores at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mpilbm.physics.lattices import Lattice

SHAPES = ((1, 1), (1, 2), (2, 2))  # (rows, cells) of a thread
WIDTHS = (4, 2, 1)  # values of a piece
# Messages to these neighbours (row, x), and then their mirror images.
FORWARD = ((0, 1), (1, 1), (-1, 1), (1, 0))


@dataclass(frozen=True)
class Piece:
    """Values (population, cell of the sender) of the message to the neighbour `step` = (row, x).

    `levels`, `more`: the sum of the widths of the pieces in front of it in shared memory, and of
    those among them that cross rows of threads. A piece that does has one more row of senders.
    """

    step: tuple[int, int]
    values: tuple[tuple[int, int], ...]
    levels: int
    more: int
    mirrored: bool

    @property
    def width(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def start(self) -> str:
        """C text of its first place, in values."""
        start = f"({self.levels} * THREAD_ROWS + {self.more}) * SENDERS"
        return f"MIRROR + {start}" if self.mirrored else start

    def place(self, at: str, sender: bool) -> str:
        """C text of the place of thread `at`, as the sender or as the receiver."""
        row, x = self.step
        if sender:
            shift = f"{int(row > 0)} * SENDERS + {int(x > 0)}"
        else:
            shift = f"{int(row < 0)} * SENDERS + {int(x < 0)}"
        return f"{self.start} + ({at} + {shift}) * {self.width}"


class Messages:
    """The messages of threads of rows x cells cells."""

    def __init__(self, lattice: Lattice, rows: int, cells: int):
        self.lattice, self.rows, self.cells = lattice, rows, cells
        self.count = rows * cells
        self.moving = [i for i in range(lattice.Q) if lattice.offset(i)[1:] != (0, 0)]
        half = self._forward()
        self.pieces = [*half, *(self._mirrored(piece) for piece in half)]
        self.levels = sum(piece.width for piece in half)
        self.more = sum(piece.width for piece in half if piece.step[0])

    def target(self, i: int, cell: int) -> tuple[tuple[int, int], int]:
        """The thread (row, x), relative to the own one, and the cell to which f_i moves."""
        _, row, x = self.lattice.offset(i)
        threads, rows = divmod(cell // self.cells + row, self.rows)
        beside, x = divmod(cell % self.cells + x, self.cells)
        return (threads, beside), rows * self.cells + x

    def piece(self, i: int, cell: int) -> tuple[Piece, int]:
        """The piece that holds a population of a sender's cell, and its position there."""
        for piece in self.pieces:
            if (i, cell) in piece.values:
                return piece, piece.values.index((i, cell))
        raise ValueError(f"population {i} of cell {cell} stays in its thread")

    def kept(self) -> Iterator[tuple[int, int, int]]:
        """(population, cell, target) of moves within a thread; none overwrites a later source."""
        for i in self.moving:
            _, row, x = self.lattice.offset(i)
            cells = range(self.count) if row * self.cells + x < 0 else range(self.count)[::-1]
            for target in cells:
                for cell in range(self.count):
                    if self.target(i, cell) == ((0, 0), target):
                        yield i, cell, target

    def _forward(self) -> list[Piece]:
        parts = []
        for step in FORWARD:
            values = [(i, cell) for i in self.moving for cell in range(self.count)
                      if self.target(i, cell)[0] == step]  # fmt: skip
            values.sort(key=self._order)
            for width in WIDTHS:
                while len(values) >= width:
                    parts.append((step, tuple(values[:width])))
                    values = values[width:]
        pieces: list[Piece] = []
        levels = more = 0
        for step, part in sorted(parts, key=lambda one: -len(one[1])):
            pieces.append(Piece(step, part, levels, more, mirrored=False))
            levels, more = levels + len(part), more + len(part) * abs(step[0])
        return pieces

    def _order(self, value: tuple[int, int]) -> tuple[int, bool]:
        """Values that are sent together lie together, and those that stay in their plane."""
        i, cell = value
        return cell // self.cells, self.lattice.offset(i)[0] != 0

    def _mirrored(self, piece: Piece) -> Piece:
        """The piece of the opposite populations of the opposite cells."""
        row, x = piece.step
        last = self.count - 1
        values = tuple((self.lattice.opp[i], last - cell) for i, cell in piece.values)
        return Piece((-row, -x), values, piece.levels, piece.more, mirrored=True)


def crossing(lattice: Lattice) -> tuple[tuple[int, int, int, int], ...]:
    """(rows, cells, levels, more) of each shape: the sums of the widths of half of its pieces."""
    found = []
    for rows, cells in SHAPES:
        messages = Messages(lattice, rows, cells)
        found.append((rows, cells, messages.levels, messages.more))
    return tuple(found)


def by_shape(lattice: Lattice, text: Callable[[Messages], str]) -> str:
    """C text that depends on the shape of a thread: `text(messages)` of each shape."""
    blocks: list[str] = []
    for rows, cells in SHAPES:
        condition = f"#{'elif' if blocks else 'if'} ROWS == {rows} && CELLS == {cells}"
        blocks += [condition, text(Messages(lattice, rows, cells))]
    return "\n".join([*blocks, "#endif"])
