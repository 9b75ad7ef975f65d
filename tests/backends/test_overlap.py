"""The division of a slab whose halo exchange runs behind its bulk planes."""

import heapq

import pytest

from mpilbm.backends.cuda import overlap
from mpilbm.backends.cuda.overlap import EXCHANGE_SECONDS, PLANE_SECONDS, RIM, parts

H100 = 132  # multiprocessors
FLOAT32 = 80  # bytes of the ten moments of a cell, in two planes


def scheduled(edges: int, edge: int, blocks: int, block: int, wave: int) -> tuple[int, int]:
    """When all blocks end, and when a kernel begins that is enqueued when the edge blocks end."""
    places = [0] * wave

    def run(count, time):
        ends = [0]
        for _ in range(count):
            ends.append(heapq.heappop(places) + time)
            heapq.heappush(places, ends[-1])
        return max(ends)

    done = run(edges, edge)
    end = max(done, run(blocks, block))
    busy = [0] * wave  # again, with the kernel between: bulk blocks that begin until `done` precede
    for time, count in ((edge, edges), (block, blocks)):
        for _ in range(count):
            if busy[0] > done:
                return end, busy[0]
            heapq.heappush(busy, heapq.heappop(busy) + time)
    return end, max(done, busy[0])


@pytest.mark.parametrize("edges", [1, 7, 8, 13, 24])
@pytest.mark.parametrize("blocks", [1, 4, 15, 16, 40])
@pytest.mark.parametrize(("edge", "block"), [(6, 26), (12, 9), (8, 8), (20, 7)])
def test_blocks_in_turn(edges, blocks, edge, block):
    """The times of the model against those of a list of blocks on eight places."""
    end, kernel = scheduled(edges, edge, blocks, block, 8)
    found = overlap._times(edges, edge, blocks, block, 8)
    assert found[0] == end
    assert kernel <= found[1] <= kernel + block  # at worst, it waits for a whole block


@pytest.mark.parametrize(
    ("side", "ranks", "own", "blocks"),
    [(384, 4, (60, 12), 1), (192, 4, (28, 12), 2), (192, 2, (28, 12), 2), (128, 4, (28, 12), 2)],
)
def test_thin_slabs(side, ranks, own, blocks):
    """The exchange of slabs on H100 is hidden, and the pass ends earlier than without."""
    columns, wave = -(-side // own[0]) * -(-side // own[1]), H100 * blocks
    planes, sent = side // ranks, 2 * side**2 * FLOAT32
    found = parts(planes, 2, columns, wave, 64, sent)
    assert found
    bulk = planes - 2 * found.edge
    pieces = -(-bulk // found.block)
    end, edges = scheduled(2 * columns, found.edge + RIM, columns * pieces, found.block + RIM, wave)
    exchange = (EXCHANGE_SECONDS + sent / overlap.EXCHANGE_RATE) / PLANE_SECONDS
    before = min(
        -(-columns * count // wave) * (-(-planes // count) + RIM) for count in range(1, planes + 1)
    )
    assert max(end, edges + exchange) < before + exchange


def test_thick_slabs_have_the_blocks_of_the_measured_tile():
    found = parts(512, 2, 387, H100, 64, 2 * 512**2 * FLOAT32)
    assert found == (32, 64)


@pytest.mark.parametrize("planes", range(2, 9))
def test_there_are_bulk_planes_or_no_parts(planes):
    """Also in slabs of few planes, with one neighbour or two."""
    for faces in (1, 2):
        for columns in (1, 40, 400):
            found = parts(planes, faces, columns, H100, 64, 10**6)
            assert found is None or (found.edge >= 2 and faces * found.edge < planes)
            assert found is None or 1 <= found.block <= 64
