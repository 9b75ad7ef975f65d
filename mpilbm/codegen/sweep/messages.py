"""Messages between the threads of a tile in the moment sweep: which populations, and their places.

A thread owns rows x cells neighbouring cells, c = row * cells + x. Populations that move between
them stay in its registers; the others go to one of eight neighbouring threads through shared
memory: a message for each, in pieces of four, two or one values, which a thread stores at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mpilbm.codegen.model import Model
from mpilbm.codegen.sweep.cell import function, population_lines
from mpilbm.physics.lattices import Lattice

SHAPES = ((1, 1), (1, 2), (2, 2))  # (rows, cells) of a thread
WIDTHS = (4, 2, 1)  # values of a piece
# Messages to these neighbours (row, x), and then their mirror images.
FORWARD = ((0, 1), (1, 1), (-1, 1), (1, 0))


@dataclass(frozen=True)
class Piece:
    """Values (population, cell of the sender) of the message to the neighbour `step` = (row, x).

    `levels`, `more`: the sum of the widths of the pieces in front of it in shared memory, and of
    those among them that cross rows of threads, which have one more row of senders.
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
            every = ((i, cell) for i in self.moving for cell in range(self.count))
            values = [each for each in every if self.target(*each)[0] == step]
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


# A thread beside the tile computes the opposite populations of one on the opposite side.
SIGN = "sign"


def messages_text(model: Model) -> str:
    """The constants and functions of each shape of a thread."""

    def text(messages: Messages) -> str:
        sizes = f"#define LEVELS {messages.levels}\n#define MORE {messages.more}"
        own = _send(messages), _receive(messages)
        beside = _send_row(model, messages), _send_column(model, messages)
        return "\n".join([sizes, *own, *beside])

    return by_shape(model.lattice, text)


def outgoing(messages: Messages, i: int) -> str:
    """C text of the outgoing population of cell c along c_i, after its thread has received."""
    if i not in messages.moving:
        return f"f[c][{i}]"
    texts = []
    for cell in range(messages.count):
        thread, target = messages.target(i, cell)
        if thread == (0, 0):
            texts.append(f"f[{target}][{i}]")
        else:
            piece, k = messages.piece(i, cell)
            texts.append(f"messages[{piece.place('at', True)} + {k}]")
    tests = "".join(f"c == {cell} ? {text} : " for cell, text in enumerate(texts[:-1]))
    return f"({tests}{texts[-1]})"


def _put(piece: Piece, at: str, values: list[str]) -> str:
    place = f"messages + ({piece.place(at, True)})"
    return f"put<{piece.width}>({place}, {{{', '.join(values)}}});"


def _send(messages: Messages) -> str:
    """C function: send outgoing populations of a thread when those of row r are known."""
    lines = []
    for r in range(messages.rows):
        rows = [max(cell // messages.cells for _, cell in p.values) for p in messages.pieces]
        own = [piece for piece, row in zip(messages.pieces, rows, strict=True) if row == r]
        puts = [_put(p, "at", [f"f[{cell}][{i}]" for i, cell in p.values]) for p in own]
        lines += [f"if (r == {r}) {{", *(f"  {put}" for put in puts), "}"]
    return function("send_messages(real* messages, int at, int r, const real (*f)[Q])", lines)


def _receive(messages: Messages) -> str:
    """C functions: replace the outgoing by the incoming populations of the cells of a thread.

    First those that come from the plane above, which `finish` needs, with those that a thread reads
    at once; then the others.
    """
    offset, pieces = messages.lattice.offset, messages.pieces
    first = [p for p in pieces if any(offset(i)[0] < 0 for i, _ in p.values)]
    kept = [f"f[{target}][{i}] = f[{cell}][{i}];" for i, cell, target in messages.kept()]
    others = [piece for piece in pieces if piece not in first]
    above = _receive_pieces("receive_from_above", messages, first, kept)
    return f"{above}\n{_receive_pieces('receive_others', messages, others, [])}"


def _receive_pieces(name: str, messages: Messages, pieces: list[Piece], lines: list[str]) -> str:
    for k, piece in enumerate(pieces):
        place = f"messages + ({piece.place('at', False)})"
        lines.append(f"const Group<{piece.width}> part_{k} = taken<{piece.width}>({place});")
        for n, (i, cell) in enumerate(piece.values):
            _, target = messages.target(i, cell)
            lines.append(f"f[{target}][{i}] = part_{k}.value[{n}];")
    return function(f"{name}(const real* messages, int at, real (*f)[Q])", lines)


def _send_row(model: Model, messages: Messages) -> str:
    """C function: cells below or above the tile send what moves into it."""
    lattice = model.lattice
    wanted = [i for i in messages.moving if lattice.offset(i)[1] > 0]
    head = "send_row(real* messages, const Halo& halo, const real (*values)[VALUES])"
    if not wanted:
        return function(head, [])
    block = population_lines(model, "values[c][{}]", wanted, SIGN)
    block += [f"f[c][{i}] = f_{i};" for i in wanted]
    lines = [f"const real {SIGN} = halo.is(Halo::ABOVE) ? R(-1) : R(1);", "real f[CELLS][Q];"]
    lines += ["#pragma unroll", "for (int c = 0; c < CELLS; c++) {"]
    lines += [*(f"  {line}" for line in block), "}"]
    for way, row in enumerate((1, -1)):
        puts = []
        for piece in messages.pieces:
            if piece.step[0] == row:
                own = [
                    f"f[{cell % messages.cells}][{lattice.opp[i] if way else i}]"
                    for i, cell in piece.values
                ]
                puts.append(_put(piece, "halo.at", own))
        condition = "else" if way else "if (halo.is(Halo::BELOW))"
        lines += [f"{condition} {{", *(f"  {put}" for put in puts), "}"]
    return function(head, lines)


def _send_column(model: Model, messages: Messages) -> str:
    """C function: cells before or after a row of the tile send what moves into it, nothing else."""
    lattice = model.lattice
    wanted = [i for i in messages.moving if lattice.offset(i)[2] > 0]
    lines = [f"const real {SIGN} = halo.is(Halo::RIGHT) ? R(-1) : R(1);"]
    lines += population_lines(model, "value_of<{}>(stage, halo)", wanted, SIGN)
    for i in wanted:
        _, row, _ = lattice.offset(i)
        places = []
        for part in range(messages.rows):
            piece, k = messages.piece(i, (part + 1) * messages.cells - 1)
            places.append(_beside(piece, k))
        second = "".join(f"halo.is(Halo::SECOND) ? {other} : " for other in places[1:])
        place = second + places[0]
        lines.append(f"if (halo.reaches({row})) messages[{place}] = f_{i};")
    head = "send_column(real* messages, const unsigned char* stage, const Halo& halo)"
    return function(head, lines)


def _beside(piece: Piece, k: int) -> str:
    """C text of the place of value k of a cell before the tile, or of its mirror image after it."""
    right, row = "halo.is(Halo::RIGHT)", piece.step[0]
    half = f"({right} ? 0 : MIRROR)" if piece.mirrored else f"({right} ? MIRROR : 0)"
    start = f"({piece.levels} * THREAD_ROWS + {piece.more}) * SENDERS + {k}"
    down = {0: "0", 1: f"({right} ? 0 : SENDERS)", -1: f"({right} ? SENDERS : 0)"}[row]
    return f"{half} + {start} + (halo.at + {down}) * {piece.width}"
