"""The memory of boundary lists, forces on bodies, and wall cells of coupled fluids."""

from collections.abc import Sequence

import numpy as np

from mpilbm.case.case import Case
from mpilbm.codegen import averaged, wall_effects
from mpilbm.layouts.grid import FieldGrid
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundary_capabilities import Behind, Reads
from mpilbm.solids.body_links import BodyLinks
from mpilbm.solids.direct_writes import split_by_writes
from mpilbm.solids.entry_list import EntryList, Writes
from mpilbm.solids.mirrors import looked_at

# of an entry: its cell int64, missing links uint32, row of values int32; its start in the staging
# array int64, if its links are staged
ENTRY_BYTES, START_BYTES = 16, 8
# of an entry whose cell is computed twice: cell int64, first entry int32, following entry int32
AGAIN_BYTES = 16
# of forces on bodies: the number of an entry, and of its cell; the row of a state; the first entry
# and the place of a chunk; the first chunk of a group
NUMBER_BYTES, CHUNK_BYTES = 4, 8
# of a wall cell of coupled fluids: its place int64, owner int32; the start of its sources int64
WALL_CELL_BYTES, SOURCES_BYTES = 12, 8


def list_bytes(
    case: Case, slab: Slab, lists: Sequence[EntryList], staged: bool = False
) -> np.ndarray:
    """Bytes of a fluid's boundary lists by plane of the slab, int64 (planes,).

    `staged`: see BoundaryLists. All lists share one table of moving walls and one of mirrored
    links; their bytes are added to the first plane.
    """
    found, value = np.zeros(slab.planes, np.int64), np.dtype(case.precision.compute).itemsize
    again = AGAIN_BYTES * (not case.layout.populations and not staged)
    for each in split_by_writes(case, slab, lists) if case.layout.dense and not staged else lists:
        an_entry, a_link, a_wall = _rates(case, each)
        plane, links = _links(slab, each)
        found += (an_entry + again) * np.bincount(plane, minlength=slab.planes)
        found += a_link * np.bincount(plane, links, slab.planes).astype(np.int64)
        if a_wall:
            walls = each.own_walls.counts()
            found += a_wall * np.bincount(plane, walls, slab.planes).astype(np.int64)
    tables = [each.motion.table.first.size for each in lists if each.motion and each.cells.size]
    found[0] += value * case.lattice.Q * max(tables, default=0)
    found[0] += 8 * case.lattice.Q * looked_at(lists).size
    return found


def _links(slab: Slab, entries: EntryList) -> tuple[np.ndarray, np.ndarray]:
    """The plane of each entry, and its number of links."""
    return entries.cells // (slab.shape[1] * slab.shape[2]), entries.links.counts()


def _rates(case: Case, entries: EntryList) -> tuple[int, int, int]:
    """Bytes of the arrays of a list for each entry, each link, and each link of its own walls."""
    value, populations = np.dtype(case.precision.compute).itemsize, case.layout.populations
    staging = case.formats.unit_bytes if populations else value
    staged, boundary, data = entries.writes is Writes.STAGED, entries.boundary, entries.per_link
    near = boundary.capabilities.behind is Behind.VELOCITY
    kept = value * len(boundary.state(case.lattice))
    a_link, a_wall = staging * staged, (8 + case.lattice.D * value) * near
    if data:
        behind = 0 if near else 8 * len(data.behind)
        a_link += value + behind + 8 * case.layout.parities * (data.mirror is not None)
    reads_cell = boundary.capabilities.reads is Reads.CELL
    moved = len(entries.motion.rows) if entries.motion else 0
    cells = 4 * reads_cell + 12 * len(entries.inward) + 4 * moved
    if "slip" in wall_effects(case) and reads_cell and not boundary.mirrors:
        cells += 4 * (1 + len(entries.inward))
    given = value * entries.given.rows.shape[-1] * entries.given.vary  # else few rows
    started = staged or (entries.writes is Writes.MEASURED and data is not None)
    an_entry = ENTRY_BYTES + START_BYTES * started
    return an_entry + cells + 8 * near + kept + given, a_link, a_wall


def force_columns(case: Case) -> int:
    """Numbers of a body: its force and torque, and with `split` pressure and stress."""
    D = case.dimensions
    return D + (3 if D == 3 else 1) + 2 * D * case.needs.split


def stress_values(case: Case) -> int:
    """Numbers of a cell next to a body, for `split`: rho - 1 and the stresses."""
    return 1 + case.dimensions * (case.dimensions + 1) // 2


def body_bytes(case: Case, slab: Slab, links: BodyLinks) -> np.ndarray:
    """Bytes for the forces on bodies by plane of the slab, int64 (planes,)."""
    found, chunks = list_bytes(case, slab, links.lists, staged=True), links.chunks
    column, split = 8 * force_columns(case), AGAIN_BYTES + 8 * stress_values(case)
    for each in links.lists:
        measured = each.writes is Writes.MEASURED
        numbers = 1 + case.needs.split + case.needs.framed  # places in chunks, stresses and frames
        an_entry = NUMBER_BYTES * numbers if measured else split * case.needs.split
        an_entry += (2 * NUMBER_BYTES + column) * (measured and case.needs.by_cell)
        an_entry += NUMBER_BYTES * bool(each.boundary.state(case.lattice))
        plane = each.cells // (slab.shape[1] * slab.shape[2])
        found += an_entry * np.bincount(plane, minlength=slab.planes)
    found += (CHUNK_BYTES + column) * np.bincount(chunks.planes, minlength=slab.planes)
    groups = np.bincount(chunks.group[:, 0], minlength=slab.planes)
    return found + (NUMBER_BYTES + column) * groups


def wall_bytes(case: Case, slab: Slab, lists: Sequence[EntryList]) -> np.ndarray:
    """Bytes of the wall cells of coupled fluids (see wall_cells) by plane, int64 (planes,).

    Wall cells are the other ends of missing links, and each of these links is a source. Only links
    of the slab's own fluid cells are counted: links of the neighbours' fluid cells lead to about as
    many wall cells as the slab's own links that leave the slab.
    """
    found = np.zeros(slab.planes, np.int64)
    if not case.coupling:
        return found
    walled = FieldGrid.of(case, slab.planes, *slab.shape[1:]).walled
    rows, nx = (n + 2 * beyond for n, beyond in zip(slab.shape[1:], walled, strict=True))
    source = SOURCES_BYTES + np.dtype(case.precision.compute).itemsize
    seen, mean = np.zeros((slab.planes + 2, rows, nx), bool), averaged(case)
    for each in lists:
        plane, row, x = np.unravel_index(each.cells, (slab.planes, *slab.shape[1:]))
        for i in range(1, case.lattice.Q):
            mine = np.flatnonzero(each.links.has(i))
            up, along, right = case.lattice.offset(i)
            there = (row[mine] - along) % rows, (x[mine] - right) % nx
            seen[plane[mine] - up + 1, *there] = True
            found += mean * source * np.bincount(plane[mine], minlength=slab.planes)
    cells = seen.sum(axis=(1, 2))
    cells[1] += cells[0]
    cells[-2] += cells[-1]
    return found + (WALL_CELL_BYTES + mean * SOURCES_BYTES) * cells[1:-1]
