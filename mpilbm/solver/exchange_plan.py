"""The passes of a time step, and what must travel between slabs after each.

A step is a list of passes; single-fluid: the boundary lists, then collide-stream. What a pass
writes beyond its slab, and what the next reads from beyond it, is all that is exchanged:

    pushed     (slot, plane) written into the neighbour's first planes: goes to where it belongs
    fetched    (slot, plane) to be read from the neighbour's first planes: comes into the ghosts
"""

from collections.abc import Iterable

from mpilbm.halo.plan import Plan, Transfer
from mpilbm.layouts.grid import Grid

Move = tuple[int, int, int]  # memory slot, plane of the array of the sender, and of the receiver


def exchange_plan(grid: Grid, writes: Iterable, reads: Iterable, array: int = 0) -> Plan:
    """What a slab sends and receives after a pass with these writes, before one with these reads.

    `writes` and `reads` are the accesses (slot, offset) of one cell; `array` is the number of the
    array that holds the field then. What the slab itself has written is not fetched.
    Each run of neighbouring slots is one transfer, so one message a face where slots are sorted.
    """
    writes = {(a.slot, a.offset) for a in writes if a.buffer == grid.name}
    reads = {(a.slot, a.offset) for a in reads if a.buffer == grid.name}
    sends, receives = [], []
    for way in (+1, -1):
        moves = sorted(_moves(grid, writes, reads, way))
        for slot, count, source, _ in _runs(moves):
            sends.append(_transfer(grid, way, array, source, slot, count))
        for slot, count, _, target in _runs(moves):
            receives.append(_transfer(grid, -way, array, target, slot, count))
    return Plan(tuple(sends), tuple(receives))


def _moves(grid: Grid, writes, reads, way: int) -> set[Move]:
    """All that travels towards `way` (+1 up, -1 down), planes counted in the arrays."""
    first, end = grid.interior
    reach = max((abs(offset[0]) for _, offset in (*writes, *reads)), default=0)
    if reach > min(grid.ghost, grid.planes):
        raise ValueError(
            f"{reach} planes must travel; the slab has {grid.planes}, ghosts {grid.ghost}"
        )
    inner, outer = (end - 1, first - 1) if way > 0 else (first, end)
    # a slot's values all are written from the same side: how many planes beyond the slab it wrote
    own = {slot: max(0, -way * offset[0]) for slot, offset in writes}
    moves = set()
    for slot, offset in writes:
        for k in range(max(0, way * offset[0])):
            landing = first + k if way > 0 else end - 1 - k
            moves.add((grid.slots[slot], inner + way * (1 + k), landing))
    for slot, offset in reads:
        for k in range(own.get(slot, 0), -way * offset[0]):
            moves.add((grid.slots[slot], inner - way * k, outer - way * k))
    return moves


def _runs(moves: list[Move]):
    """(slot, count, source, target) of moves whose slots lie side by side in the same planes."""
    for plane in sorted({move[1:] for move in moves}):
        slots = [slot for slot, *planes in moves if tuple(planes) == plane]
        start = 0
        for k in range(1, len(slots) + 1):
            if k == len(slots) or slots[k] != slots[k - 1] + 1:
                yield slots[start], k - start, *plane
                start = k


def _transfer(grid: Grid, way: int, array: int, plane: int, slot: int, count: int) -> Transfer:
    return Transfer(way, array, *grid.piece(plane, slot, count))
