"""Bytes that a slab takes on its device, known before anything is allocated."""

import numpy as np

from mpilbm.boundaries import one_face_each
from mpilbm.errors import CaseError
from mpilbm.layouts.field_grid import FieldGrid
from mpilbm.layouts.grid import velocity_grid

# of a box in cells: the lists pack plane, row and x into 64 bits
LONGEST_SIDE = 2**21
# cell int64, missing uint32, value int32, start int64
ENTRY_BYTES = 24
# where cells are computed anew: cell int64, its first entry int32, the following one int32
AGAIN_BYTES = 16
# what leaves and enters along a link of a body, in double; which links of an entry cross a wall
LINK_BYTES, WALL_BYTES = 16, 4
# of forces in parts, an entry: rho and at most six stresses as doubles, what chains it to its cell
SPLIT_BYTES = 72


def bytes_needed(case, slab, entries=0, links=0, fluid=None) -> dict[str, int]:
    """Bytes of a slab's arrays by what they hold: populations, velocity (for sums), flags, lists.

    `entries` and `links` count what the boundary lists of the slab hold, `fluid` the fluid cells of
    planes as Geometry.around; without it a layout that stores these alone is not counted.
    """
    planes, (rows, nx) = slab.planes, slab.shape[1:]
    storage, compute = (
        np.dtype(kind).itemsize for kind in (case.precision.storage, case.precision.compute)
    )
    grid = case.layout.grid(case.lattice, planes, rows, nx, fluid, case.ghost)
    more = len(case.coupling.jumps(case)) if case.coupling else 0
    velocity = velocity_grid(case.lattice, case.ghost, planes, rows, nx, more)
    tables = {"neighbours": grid.table_bytes} if grid.table_bytes else {}
    if case.coupling:
        tables["fields of the coupling"] = FieldGrid.of(case, planes, rows, nx).count * compute
    return {
        "populations": len(case.fluids) * case.layout.buffers * grid.count * storage,
        **tables,
        "velocity": velocity.count * compute,
        "flags": planes * rows * nx * (1 if len(case.lattice.beside) < 8 else 2),
        "boundary lists": len(case.fluids) * list_bytes(case, entries, links),
    }


def list_bytes(case, entries: int, links: int) -> int:
    """Bytes of the arrays that all boundary lists have."""
    again, precision = not case.layout.populations, case.precision
    staged = np.dtype(precision.compute if again else precision.storage).itemsize
    return entries * (ENTRY_BYTES + again * AGAIN_BYTES) + links * staged


def counted(lists) -> tuple[int, int]:
    """Entries and links of lists."""
    bits = (np.unpackbits(each.missing.view(np.uint8)).sum(dtype=np.int64) for each in lists)
    return sum(each.cells.size for each in lists), int(sum(bits))


def own_bytes(case, entries) -> int:
    """Bytes of the arrays that a list may have beyond those of all: links, cells inwards, state."""
    count, links = counted([entries])
    an_entry, a_link = _own_rates(case, entries)
    return an_entry * count + a_link * links + _motion_bytes(case, entries) * bool(count)


def _motion_bytes(case, entries) -> int:
    """Bytes of a list's table of walls that move beside its cells."""
    values = case.lattice.Q * entries.moving.first.size if entries.moving else 0
    return np.dtype(case.precision.compute).itemsize * values


def _own_rates(case, entries) -> tuple[int, int]:
    """These bytes an entry, and a link."""
    value = np.dtype(case.precision.compute).itemsize
    kept = value * len(entries.boundary.state(case.lattice))
    behind = 8 + case.lattice.D * value if entries.boundary.beside else 8 * len(entries.behind)
    a_link = value * (entries.links is not None) + behind
    a_link += 8 * case.layout.parities * bool(entries.mirrored)
    cells = 12 * len(entries.inward) + 4 * len(entries.moved)
    given = value * entries.values.shape[-1] * bool(entries.fields)  # else some rows for all
    return 4 + cells + 8 * entries.boundary.beside + kept + given, a_link


def more_bytes(case, slab, lists) -> np.ndarray:
    """Bytes beyond `bytes_needed` by plane of a slab, int64 (planes, 2).

    Those of the lists' own arrays, but for links that come back by themselves, and those of the
    lists by which bodies are weighed.
    """
    returning = bool(case.layout.grid(case.lattice, 1, *slab.shape[1:]).turned)
    faces = len(one_face_each(case.boundaries))
    found = np.zeros((slab.planes, 2), np.int64)
    for each in lists:
        plane = each.cells // (slab.shape[1] * slab.shape[2])
        bits = np.unpackbits(each.missing.view(np.uint8)).reshape(-1, 32).sum(axis=1, dtype=int)
        listed = np.full(plane.size, not (returning and each.boundary.returns))
        owner = np.array(each.owners, np.int64)[each.member]
        an_entry, a_link = _own_rates(case, each)
        for column, mine in enumerate((listed, np.isin(owner - faces, case.weighed))):
            entries = np.bincount(plane[mine], minlength=slab.planes)
            links = np.bincount(plane[mine], bits[mine], slab.planes).astype(np.int64)
            found[:, column] += an_entry * entries + a_link * links
            found[plane[mine][:1], column] += _motion_bytes(case, each)
            if column:
                found[:, column] += list_bytes(case, entries, links) + LINK_BYTES * links
                found[:, column] += (SPLIT_BYTES * case.split + WALL_BYTES) * entries
    return found * [len(case.fluids), 1]  # bodies are weighed in the first fluid


def limits(case) -> list[str]:
    """Why the kernels' numbers cannot count the cells of a box; empty if they can."""
    longest = max(case.shape)
    found = []
    if longest > LONGEST_SIDE:
        found.append(f"domain.size: a side of {longest} cells; allowed: {LONGEST_SIDE} at most")
    grid = case.layout.grid(case.lattice, 1, *case.shape[1:])
    if grid.within >= 2**31:
        found.append(
            f"domain.size: a plane across the last axis holds {grid.within} values; allowed: "
            f"{2**31 - 1} at most; turn the box so that its longest side is the last one"
        )
    return found


def require(device, case, slab, lists=(), fluid=None) -> None:
    """CaseError unless the kernels can count the cells and the arrays fit the device."""
    problems = limits(case) + device.problems(case.shape)
    if problems:
        raise CaseError(problems, path=case.path)
    needed = sum(bytes_needed(case, slab, *counted(lists), fluid).values())
    needed += len(case.fluids) * sum(own_bytes(case, each) for each in lists)
    device.require(needed, "the fields of a slab")
