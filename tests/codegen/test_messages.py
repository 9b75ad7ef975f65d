"""Messages between the threads of a tile hold every population that changes threads, once."""

import pytest

from mpilbm.codegen.sweep.messages import SHAPES, Messages, outgoing
from mpilbm.core.registry import make

LATTICES = ("D2Q9", "D3Q19", "D3Q27")
THREADS = (4, 3)  # columns and rows of threads of a tile


def place(messages, text) -> int:
    """The number that the C text of a place means."""
    columns, rows = THREADS
    senders = columns + 1
    mirror = -(-(messages.levels * rows + messages.more) * senders // 4) * 4
    return eval(text, {"THREAD_ROWS": rows, "SENDERS": senders, "MIRROR": mirror})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("lattice", LATTICES)
def test_each_moving_population_is_kept_or_sent_once(lattice, shape):
    messages = Messages(make("lattices", lattice), *shape)
    kept = [(i, cell) for i, cell, _ in messages.kept()]
    sent = [value for piece in messages.pieces for value in piece.values]
    every = [(i, cell) for i in messages.moving for cell in range(messages.count)]
    assert sorted(kept + sent) == every
    for piece in messages.pieces:
        assert {messages.target(*value)[0] for value in piece.values} == {piece.step}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("lattice", LATTICES)
def test_no_move_within_a_thread_overwrites_what_a_later_one_reads(lattice, shape):
    messages, written = Messages(make("lattices", lattice), *shape), set()
    for i, cell, target in messages.kept():
        assert (i, cell) not in written
        written.add((i, target))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("lattice", LATTICES)
def test_receivers_read_what_senders_store_and_pieces_do_not_overlap(lattice, shape):
    messages, taken = Messages(make("lattices", lattice), *shape), set()
    columns, rows = THREADS
    for piece in messages.pieces:
        down, right = piece.step
        for row in range(-1, rows + 1):
            for column in range(-1, columns + 1):
                if not (0 <= row + down < rows and 0 <= column + right < columns):
                    continue
                at = row * (columns + 1) + column
                found = place(messages, piece.place(str(at), sender=True))
                to = at + down * (columns + 1) + right
                assert found == place(messages, piece.place(f"({to})", sender=False))
                assert found % piece.width == 0
                assert not taken & set(range(found, found + piece.width))
                taken |= set(range(found, found + piece.width))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("lattice", LATTICES)
def test_the_outgoing_population_of_each_cell_is_found_where_it_was_put(lattice, shape):
    messages = Messages(make("lattices", lattice), *shape)
    for i in messages.moving:
        *cases, last = outgoing(messages, i)[1:-1].split(" : ")
        cells, texts = zip(*(case.split(" ? ") for case in [*cases, f" ? {last}"]), strict=True)
        assert cells == (*(f"c == {cell}" for cell in range(messages.count - 1)), "")
        for cell, text in enumerate(texts):
            thread, target = messages.target(i, cell)
            if thread == (0, 0):
                assert text == f"f[{target}][{i}]"
            else:
                piece, k = messages.piece(i, cell)
                assert text == f"messages[{piece.place('at', sender=True)} + {k}]"
