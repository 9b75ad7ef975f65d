"""Kinds of blocks in a pass of two steps: no block meets what its kernel is compiled without."""

from itertools import product

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.slabs import Cluster
from support.two_steps import FILLED, moments, small_tiles, tile

from mpilbm.backends.cuda.blocks import BITS, Kind, Surroundings, with_shares
from mpilbm.backends.cuda.passes import PassLaunch, SweepLaunch, parts_of
from mpilbm.codegen.program import SHARE, Kernel
from mpilbm.solids.body_walls import BLOCK
from mpilbm.solids.box_walls import FAR

MASK = 2**BITS - 1
TILE = tile(12, 8, 2, planes=5)  # a block owns 8 x 4 cells
KERNEL = Kernel("collide_stream_0", "cells", ())


def some(shape: tuple[int, int, int], *places: tuple[int, int, int]) -> np.ndarray:
    """A table of the segments of rows, true at these cells (plane, row, x)."""
    planes, rows, nx = shape
    table = np.zeros((planes, rows, -(-nx // BLOCK)), bool)
    for plane, row, x in places:
        table[plane, row, x // BLOCK] = True
    return table


SHAPE = 25, 21, 145  # planes with two ghost planes at both ends, rows, cells in a row
INNER = {"nx": 145, "rows": 21, "owned": (2, 21), "wraps": False, "columns": (0, 145)}
OPEN = INNER | {"faces": 0, "walls": (-FAR, FAR)}
CASES = {
    "walls": Surroundings(**INNER, faces=15, walls=(2, 22)),
    "lower walls": Surroundings(**INNER, faces=1 | 4, walls=(2, FAR)),
    "upper walls": Surroundings(**INNER, faces=2 | 8, walls=(-FAR, 22)),
    "columns": Surroundings(**(INNER | {"columns": (2, 143)}), faces=12, walls=(-FAR, FAR)),
    "a body": Surroundings(**OPEN, bodies=some(SHAPE, (12, 10, 70), (13, 10, 70))),
    "a body at a corner": Surroundings(**OPEN, bodies=some(SHAPE, (2, 0, 0), (22, 20, 144))),
    "a body in ghost planes": Surroundings(**OPEN, bodies=some(SHAPE, (1, 10, 5), (23, 3, 5))),
    "shares": Surroundings(**OPEN, shares=some(SHAPE, (7, 4, 31), (7, 4, 32))),
    "shares and a body": Surroundings(
        **OPEN, bodies=some(SHAPE, (12, 10, 70)), shares=some(SHAPE, (12, 14, 64), (20, 3, 3))
    ),
    "all": Surroundings(
        **INNER,
        faces=15,
        walls=(2, 22),
        bodies=some(SHAPE, (12, 10, 70)),
        shares=some(SHAPE, (5, 0, 3)),
    ),
    "wrapped planes": Surroundings(
        **(OPEN | {"owned": (1, 23), "wraps": True}), bodies=some(SHAPE, (1, 8, 70), (23, 2, 2))
    ),
    "shares that move": Surroundings(**(OPEN | {"faces": 3}), moves=True),
    "few cells": Surroundings(
        nx=6, rows=3, owned=(2, 2), wraps=False, columns=(0, 6), faces=15, walls=(2, 3)
    ),
}


def met(around: Surroundings, first: int, end: int, row: int, x: int) -> Kind:
    """What a block meets, cell by cell, where it computes the first step."""
    faces, planes, bodies, shares = 0, False, False, around.moves
    lowest, highest = around.walls
    xs, rows = range(x - 1, x + TILE.own[0] + 1), range(row - 1, row + TILE.own[1] + 1)
    for plane in range(first - 1, end + 1):
        planes |= plane in (lowest, highest)
        if not lowest <= plane <= highest:
            continue
        at = 1 + (plane - 1) % 23 if around.wraps else plane
        for r, c in product(rows, xs):
            sides = c == 0, c == around.nx - 1, r == 0, r == around.rows - 1
            faces |= around.faces & sum(1 << k for k, there in enumerate(sides) if there)
            place = at, r % around.rows, c % around.nx // BLOCK
            bodies |= around.bodies is not None and bool(around.bodies[place])
            shares |= around.shares is not None and bool(around.shares[place])
    return Kind(faces, planes, bodies, shares)


def covers(kind: Kind, needed: Kind) -> bool:
    """Whether a kernel of a kind has all that is needed."""
    flags = ("planes", "bodies", "shares")
    return not needed.faces & ~kind.faces and all(
        getattr(kind, flag) >= getattr(needed, flag) for flag in flags
    )


@pytest.mark.parametrize("around", CASES.values(), ids=CASES)
def test_no_block_meets_what_its_kind_leaves_out(around):
    """Each block has one kind, and the kernel of a free block is used wherever it is enough."""
    first, count = around.owned
    parts = parts_of(TILE, first, first + count)
    found = {}
    for kind, words in around.blocks(TILE, parts):
        for word in words.tolist():
            x, row, part = word & MASK, word >> BITS & MASK, word >> 2 * BITS
            assert (part, row, x) not in found
            found[part, row, x] = kind
            needed = met(around, *parts[part], row * TILE.own[1], x * TILE.own[0])
            assert covers(kind, needed), (word, kind, needed)
            least = needed == Kind(shares=around.moves)
            assert (kind == Kind(shares=around.moves)) == least, (word, kind, needed)
    columns = -(-around.columns[1] // TILE.own[0]), -(-around.rows // TILE.own[1])
    assert set(found) == set(product(range(len(parts)), range(columns[1]), range(columns[0])))
    several = [kind for kind, _ in around.blocks(TILE, parts)]
    assert len(several) == len(set(several))
    assert Kind(shares=around.moves) not in several[:-1]  # the free blocks come last


def test_kinds_of_a_box_with_walls_on_all_sides():
    around = CASES["walls"]
    kinds = [kind for kind, _ in around.blocks(TILE, parts_of(TILE, 2, 23))]
    assert kinds == [Kind(3), Kind(12), Kind(planes=True), Kind(15, planes=True), Kind()]


def test_a_box_without_walls_is_free():
    assert Surroundings(**OPEN).free
    assert not Surroundings(**(OPEN | {"walls": (2, FAR)})).free
    assert not any(case.free for name, case in CASES.items())


@pytest.mark.parametrize(
    ("planes", "stride", "edge", "parts"),
    [
        ((2, 25), 1, 0, [(2, 7), (7, 12), (12, 17), (17, 22), (22, 25)]),
        ((2, 4), 1, 0, [(2, 4)]),
        ((1, 9), 7, 0, [(1, 2), (8, 9)]),
        ((2, 25), 1, 3, [(2, 5), (22, 25)]),
        ((2, 8), 1, 3, [(2, 5), (5, 8)]),
        ((2, 5), 1, 3, [(2, 5)]),
        ((2, 8), 1, 4, [(2, 6), (4, 8)]),  # both ends have planes in common
    ],
)
def test_parts_are_those_of_the_kernel(planes, stride, edge, parts):
    """A block finds its planes from its number, the stride and the planes of a block."""
    assert parts_of(TILE, *planes, stride, edge) == parts
    box = (16, 8)
    launch = SweepLaunch(None, TILE, box, 0, KERNEL, (), [], edge)
    ((begin, end, step),) = launch.pieces(*planes, stride)
    grid, (*_, first, last, stride, chunk) = launch.call(begin, end, step)
    assert grid[2] == len(parts)
    starts = [int(first + k * (stride if stride > 1 else chunk)) for k in range(grid[2])]
    assert [(start, min(start + int(chunk), int(last))) for start in starts] == parts


def test_a_pass_launches_the_kinds_that_occur():
    """The numbers of blocks lie on the device, and each kind has as many blocks as numbers."""
    uploaded = []
    device = type("Device", (), {"upload": lambda _, words: uploaded.append(words) or words})()
    around, given = CASES["walls"], [7]
    launch = PassLaunch(device, lambda kind: kind, TILE, around, 0, KERNEL, (), given)
    calls = launch.call(2, 23, 1)
    assert [kind for kind, *_ in calls] == [
        kind for kind, _ in around.blocks(TILE, parts_of(TILE, 2, 23))
    ]
    assert [grid for _, grid, _ in calls] == [(words.size, 1, 1) for words in uploaded]
    assert all(grid[0] for _, grid, _ in calls)
    launch.set()
    launch.call(2, 23, 1)
    assert len(uploaded) == len(calls)  # other numbers leave the blocks as they are


@pytest.mark.skipif(command() is None, reason="no C++ compiler")
def test_segments_with_shares(monkeypatch):
    small_tiles(monkeypatch)
    case = moments(size=(42, 17, 9), body=[FILLED])
    (solver,) = Cluster(case, 1, EmulatedDevice).start().solvers
    context = solver.context
    grid, share = context.grid, context.geometry.shares.share
    owned = grid.ghost, grid.planes
    table = with_shares(context.device.download(context.tables[SHARE]), grid, owned)
    assert 0 < table.mean() < 1
    for plane, row, x in np.argwhere(share):
        assert table[plane + grid.ghost, row, x // BLOCK]
    inside = table[grid.ghost : grid.ghost + grid.planes]
    for plane, row, segment in np.argwhere(inside):
        assert share[plane, row, BLOCK * segment : BLOCK * (segment + 1)].any()
    assert table[: grid.ghost].all() != bool(grid.wraps)
