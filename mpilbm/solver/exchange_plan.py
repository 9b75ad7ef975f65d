"""The halo exchange after each pass of a time step, derived from the kernels' accesses.

Exactly the values are exchanged that a pass writes beyond its slab, and those that the next pass
reads from there:

    pushed     (slot, plane) written into the ghost planes: sent to the neighbour's first planes
    fetched    (slot, plane) read from the ghost planes: received from the neighbour's first planes

Nothing is exchanged where the planes of a slab wrap around (Grid.wraps). A pass of two steps
computes the first of them also in the neighbours' planes beside the slab, from their next planes.
After it, and before the first of such passes, two whole planes are exchanged.
"""

from collections.abc import Iterable, Iterator

from mpilbm.case.case import Case
from mpilbm.codegen.program import Access
from mpilbm.halo import Plan, Transfer
from mpilbm.layouts import AnyGrid
from mpilbm.layouts.grid import Grid
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.lattices import AXES
from mpilbm.solids.windows import why_no_windows, windows_of

TWO_STEPS_REACH = 2  # planes beyond its own that a pass of two steps reads

Move = tuple[int, int, int]  # memory slot, plane in the array of the sender, of the receiver
Touched = tuple[int, tuple[int, int, int]]  # slot, offset


def exchange_plan(
    grid: AnyGrid, writes: Iterable[Access], reads: Iterable[Access], array: int = 0
) -> Plan:
    """The plan of the exchange after a pass with these writes, before one with these reads.

    `writes` and `reads`: the accesses of one cell; `array`: the array that holds the field then.
    Values that the slab itself has written are not fetched. Each run of adjacent slots is one
    transfer, so that there is one message per face if the slots are sorted.
    """
    written = {(a.slot, a.offset) for a in writes if a.buffer == grid.name}
    read = {(a.slot, a.offset) for a in reads if a.buffer == grid.name}
    sends, receives = [], []
    for way in (+1, -1):
        for slot, count, source, target in _runs(sorted(_moves(grid, written, read, way))):
            sends.append(Transfer(way, array, *grid.piece(source, slot, count)))
            receives.append(Transfer(-way, array, *grid.piece(target, slot, count)))
    return Plan((), ()) if grid.wraps else Plan(tuple(sends), tuple(receives))


def whole_planes(grid: Grid, planes: int, array: int = 0) -> Plan:
    """The plan that exchanges so many whole planes at each face, in one message each."""
    if grid.wraps:
        return Plan((), ())
    first, end = grid.interior

    def piece(neighbour: int, plane: int) -> Transfer:
        return Transfer(neighbour, array, *grid.piece(plane, 0, planes * grid.all_slots))

    sends = piece(+1, end - planes), piece(-1, first)
    return Plan(sends, (piece(-1, first - planes), piece(+1, end)))


def allows_two_steps(case: Case, slab: Slab) -> bool:
    """Whether a pass may compute two steps of this slab, where the device has a kernel for it."""
    return not why_single_steps(case, slab)


def why_single_steps(case: Case, slab: Slab) -> str:
    """Why a pass may not compute two steps of this slab, a clause; "" if it may.

    This requires one fluid in 3D, bodies at rest with half-way walls or that act in cells, and
    forces that do not depend on time. The kernel applies half-way walls and mirrors; other
    boundaries at faces act in windows (see solids/windows.py). If several slabs share a periodic
    axis, no force depends on the last coordinate: a pass evaluates it in ghost planes, which are at
    the other end of the box.
    """
    if not case.single_fluid or case.scalars:
        return "there are several fields"
    if case.dimensions < 3:
        return "the box has two dimensions"
    if why := why_no_windows(case):
        return why
    across, values = AXES[case.dimensions - 1], case.kernel_values
    if any(value.timed for value in values):
        return "the force depends on time"
    if slab.ranks > 1 and slab.periodic and any(across in each.coordinates for each in values):
        return f"a force or viscosity depends on {across}, along which ranks divide a periodic box"
    if slab.planes < TWO_STEPS_REACH:
        return f"a rank has fewer than {TWO_STEPS_REACH} planes"
    if windows_of(case, slab) is None:
        return "there are too few cells between the faces with boundary lists"
    return ""


def ghost_planes(case: Case, slab: Slab) -> int:
    """Number of ghost planes of a slab at each face, if the device has a kernel for two steps.

    It reads two planes beyond the slab, unless planes wrap around or end in a wall.
    """
    two = case.layout.sweeps(case) and allows_two_steps(case, slab)
    across = two and any(window.axis == 0 for window in windows_of(case, slab) or ())
    return TWO_STEPS_REACH if two and (slab.ranks > 1 or across) else case.ghost


def _moves(grid: AnyGrid, writes: set[Touched], reads: set[Touched], way: int) -> set[Move]:
    """All moves towards `way` (+1 up, -1 down); planes are numbered in the arrays."""
    first, end = grid.interior
    reach = max((abs(offset[0]) for _, offset in (*writes, *reads)), default=0)
    if reach > min(grid.ghost, grid.planes):
        raise ValueError(
            f"{reach} planes must be exchanged; the slab has {grid.planes}, {grid.ghost} ghosts"
        )
    inner, outer = (end - 1, first - 1) if way > 0 else (first, end)
    # each slot is written from one side only: the number of planes written beyond the slab
    own = {slot: max(0, -way * offset[0]) for slot, offset in writes}
    found = set()
    for slot, offset in writes:
        for k in range(max(0, way * offset[0])):
            landing = first + k if way > 0 else end - 1 - k
            found.add((slot, inner + way * (1 + k), landing))
    for slot, offset in reads:
        for k in range(own.get(slot, 0), -way * offset[0]):
            found.add((slot, inner - way * k, outer - way * k))
    return {(slot, a, b) for value, a, b in found for slot in grid.occupied(value)}


def _runs(moves: list[Move]) -> Iterator[tuple[int, int, int, int]]:
    """(slot, count, source, target) of moves whose slots are adjacent in the same planes."""
    for plane in sorted({move[1:] for move in moves}):
        slots = [slot for slot, *planes in moves if tuple(planes) == plane]
        start = 0
        for k in range(1, len(slots) + 1):
            if k == len(slots) or slots[k] != slots[k - 1] + 1:
                yield slots[start], k - start, plane[0], plane[1]
                start = k
