"""The memory that a slab needs on its device and on the host, before anything is allocated."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mpilbm.backends import Device, memory
from mpilbm.case.case import Case
from mpilbm.codegen.program import FORCE, SHARE
from mpilbm.codegen.scalar_numbers import material_grid
from mpilbm.codegen.structure import averaged, effects_on
from mpilbm.core.errors import CaseError
from mpilbm.layouts import AnyGrid
from mpilbm.layouts.cells import LONGEST_SIDE
from mpilbm.layouts.grid import FieldGrid, Grid, byte_grid, velocity_grid
from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import in_cells
from mpilbm.physics.boundary_capabilities import Behind, Reads
from mpilbm.physics.lattices import AXES
from mpilbm.physics.motions import moving
from mpilbm.solids.body_links import BodyLinks
from mpilbm.solids.entry_list import EntryList, Writes
from mpilbm.solids.moving_bodies import distance_bytes, reachable_cells
from mpilbm.solids.shares import Shares
from mpilbm.solids.solid_cells import CELLS
from mpilbm.solids.staging import looked_at, split_by_writes
from mpilbm.solids.windows import copies_of_lists, has_windows, windows_of
from mpilbm.solver.exchange_plan import allows_two_steps, ghost_planes, share_arrays

BLOCK_BYTES = 2**27  # of the velocity of a block
LEAST_PLANES = 4  # of a block
# of a cell on the host, in addition to its id: a flag while the geometry is checked
HOST_CELL_BYTES = 1
# of an entry on the host: what the list keeps, and the arrays that exist while lists are found, or
# while they are prepared for the device; measured with tracemalloc in a rock (17, 14, 53)
HOST_ENTRY_BYTES, FOUND_BYTES, PREPARED_BYTES = 18, 16, 56
# of a link on the host whose boundary reads data per link: coordinates, directions, distances
HOST_LINK_BYTES = 240
# of a cell while solid shares are found: two sums, a product, and a flag
SHARE_BYTES = 3 * 4 + 1
# of a cell of a measured body that acts in cells: its place int64; its number, body and first entry
CELL_BYTES = 8 + 3 * 4
# of a cell of a block of planes that is examined at once, see cell_counts.CELLS
BLOCK_CELL_BYTES = 48


def bytes_needed(case: Case, slab: Slab, fluid: np.ndarray | None = None) -> dict[str, int]:
    """Bytes of a slab's arrays by their contents, with the ghost planes that only GPUs have.

    `fluid`: see Geometry.around; without it a layout of fluid cells only has no arrays.
    """
    planes, (rows, nx) = slab.planes, slab.shape[1:]
    unit, compute = case.formats.unit_bytes, np.dtype(case.precision.compute).itemsize
    storage = case.precision.storage
    ghost = ghost_planes(case, slab)
    grid = case.layout.grid(case.lattice, planes, rows, nx, fluid, ghost, storage)
    velocity = velocity_grid(case.lattice, ghost, planes, rows, nx, len(case.sloped))
    tables = {"neighbours": grid.table_bytes} if grid.table_bytes else {}
    if case.coupling:
        tables["fields of the coupling"] = FieldGrid.of(case, planes, rows, nx).count * compute
    if any(value.field for value in case.force_on(0)):
        tables["force"] = grid.beside(FORCE, case.dimensions).count * compute
    if case.run.compares_velocity:
        tables["velocity for run.steady"] = velocity.count * compute
    for k, label in enumerate(case.labels):
        count = scalar_grid(case, k, slab).count
        tables[f"scalar {label}"] = case.layout.buffers * count * unit
    if case.conductors and isinstance(grid, Grid):
        tables["materials"] = material_grid(grid).count
    windows = windows_of(case, slab) if has_windows(case) and allows_two_steps(case, slab) else ()
    if inner := [window.grid(case, slab, ghost) for window in windows or ()]:
        tables["windows at faces"] = case.layout.buffers * sum(g.count for g in inner) * unit
    if in_cells(case) and isinstance(grid, Grid):
        cells = sum(byte_grid(SHARE, g).count for g in (grid, *inner))
        tables["solid shares"] = share_arrays(case, slab) * cells
    tables |= distance_bytes(case)
    return {
        "populations": len(case.fluids) * case.layout.buffers * grid.count * unit,
        **tables,
        "velocity of a block": velocity_bytes(case, planes),
        "flags": planes * rows * nx * (1 if len(case.lattice.stencil) < 8 else 2),
    }


def scalar_grid(case: Case, number: int, slab: Slab) -> AnyGrid:
    """The memory of the populations of a scalar on a slab."""
    size, storage = (slab.planes, *slab.shape[1:]), case.precision.storage
    lattice = case.scalars[number].lattice
    grid = case.layout.grid(lattice, *size, None, case.ghost, storage)
    return replace(grid, name=f"g{number}", wraps=slab.wraps)


def velocity_grids(case: Case, planes: int) -> tuple[Grid, Grid]:
    """The memory of the velocity in a block of planes, and in the edge planes of a slab, both with
    one ghost plane on each side; see solver.fields.velocity_blocks.
    """
    more = len(case.sloped)

    def grid(planes: int) -> Grid:
        return velocity_grid(case.lattice, 1, planes, *case.shape[1:], more)

    plane = grid(1).plane_stride * np.dtype(case.precision.compute).itemsize
    block = max(LEAST_PLANES, BLOCK_BYTES // plane)
    return grid(min(planes, block)), grid(min(planes, 2))


def velocity_bytes(case: Case, planes: int) -> int:
    """Bytes of these two arrays, for a slab of so many planes."""
    count = sum(grid.count for grid in velocity_grids(case, planes))
    return count * np.dtype(case.precision.compute).itemsize


def more_bytes(
    case: Case, slab: Slab, lists: Sequence[EntryList], shares: Shares | None = None
) -> np.ndarray:
    """Bytes beyond `bytes_needed` by plane of a slab, int64 (planes, 3).

    The columns: boundary lists, without links that the layout reflects itself; lists for the forces
    on bodies; wall cells of coupled fluids. Half-way walls are counted even if the sweep of a GPU
    applies them: its tile is unknown until the GPU is open. `shares`: if measured bodies act in
    cells.
    """
    returning = bool(case.layout.grid(case.lattice, 1, *slab.shape[1:]).turned)
    listed = [each for each in lists if not (returning and each.boundary.reflects)]
    steps = copies_of_lists(case) * list_bytes(case, slab, listed)
    forces = np.zeros(slab.planes, np.int64)
    if case.needs.weighed:
        forces = body_bytes(case, slab, BodyLinks.find(case, slab, lists))
        forces += cell_bytes(shares.cells_of(weighed_in_cells(case))) if shares else 0
        forces += sum(map(cell_bytes, reachable_cells(case, slab)))
    return np.stack([steps, forces, wall_bytes(case, slab, lists)], 1)


def host_bytes(case: Case, slab: Slab, entries: int, links: int = 0) -> dict[str, int]:
    """Bytes of the host's arrays of cells and boundary entries, by contents; upper bounds.

    entries: the number of entries of the slab; links: the links whose boundary reads data per link.

    solid cells     the id of each cell
    solid shares    of bodies that act in cells: the share and the body of each cell
    boundary lists  what the host keeps of the entries
    preparation     arrays that exist only until the lists are on the device
    forces          forces that are given for each cell, and their copies for later steps
    """
    plane = slab.shape[1] * slab.shape[2]
    cells, kind = (slab.planes + 2) * plane, 1 if len(case.bodies) < 255 else 2
    forces = [value.field for value in case.force_on(0) if value.field]
    arrays = 1 + 2 * any(field.timed for field in forces) if forces else 0  # see timed_values.py
    preparation = max(HOST_CELL_BYTES * cells + FOUND_BYTES * entries, PREPARED_BYTES * entries)
    shares = bool(in_cells(case))
    preparation = max(preparation, shares * SHARE_BYTES * cells)
    return {
        "solid cells": kind * cells,
        "solid shares": shares * (1 + kind) * cells,
        "boundary lists": HOST_ENTRY_BYTES * entries,
        "preparation": preparation + HOST_LINK_BYTES * links + BLOCK_CELL_BYTES * max(CELLS, plane),
        "forces": arrays * case.dimensions * cells * np.dtype(case.precision.compute).itemsize,
    }


def require_host(
    device: Device,
    case: Case,
    slab: Slab,
    ranks: int,
    lists: Sequence[EntryList] = (),
    fluid: np.ndarray | None = None,
) -> None:
    """CaseError unless the host's arrays fit the free memory, which `ranks` ranks share.

    Call it before the geometry is built, and again with its lists before these are prepared for the
    device; the memory then no longer contains the solid cells and the lists. A device that uses
    this memory needs room for its arrays in addition. `fluid`: as for bytes_needed.
    """
    entries = sum(each.cells.size for each in lists)
    links = sum(each.links.total() for each in lists if each.per_link)
    needed = host_bytes(case, slab, entries, links)
    count = needed["preparation"] if lists else sum(needed.values())
    count += slab_bytes(case, slab, lists, fluid) if device.unified else 0
    what = "a slab" if device.unified else "the geometry of a slab"
    memory.require(count, ranks, what, case.path)


def slab_bytes(
    case: Case, slab: Slab, lists: Sequence[EntryList], fluid: np.ndarray | None = None
) -> int:
    """Bytes of the device's arrays of fields and boundary lists; `fluid`: as for bytes_needed."""
    fields = sum(bytes_needed(case, slab, fluid).values())
    each = int(list_bytes(case, slab, lists).sum())
    return fields + copies_of_lists(case) * each + int(wall_bytes(case, slab, lists).sum())


def limits(case: Case) -> list[str]:
    """Reasons why the kernels' integers cannot number the cells of a box; empty if they can."""
    longest, found = max(case.shape), []
    if longest > LONGEST_SIDE:
        found.append(f"domain.size: a side of {longest} cells; allowed: {LONGEST_SIDE} at most")
    grid = case.layout.grid(case.lattice, 1, *case.shape[1:], storage=case.precision.storage)
    if grid.within >= 2**31:
        found.append(
            f"domain.size: a plane across the last axis holds {grid.within} values; allowed: "
            f"{2**31 - 1} at most; turn the box so that its longest side is the last one"
        )
    return found


def require(
    device: Device,
    case: Case,
    slab: Slab,
    lists: Sequence[EntryList] = (),
    fluid: np.ndarray | None = None,
) -> None:
    """CaseError unless the kernels can number the cells and the arrays fit the device."""
    problems = limits(case) + device.problems(case.shape)
    if problems:
        raise CaseError(problems, path=case.path)
    device.require(slab_bytes(case, slab, lists, fluid), "the fields of a slab", first=True)


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
    case: BoundedLattice, slab: Slab, lists: Sequence[EntryList], staged: bool = False
) -> np.ndarray:
    """Bytes of a fluid's boundary lists by plane of the slab, int64 (planes,).

    `staged`: see BoundaryLists. Tables that all lists share are added to the first plane.
    """
    found, value = np.zeros(slab.planes, np.int64), np.dtype(case.precision.compute).itemsize
    again = AGAIN_BYTES * (not case.layout.populations and not staged)
    for each in split_by_writes(case, slab, lists) if case.layout.dense and not staged else lists:
        an_entry, a_link, a_wall = _rates(case, each)
        plane, links = each.cells // (slab.shape[1] * slab.shape[2]), each.links.counts()
        found += (an_entry + again) * np.bincount(plane, minlength=slab.planes)
        found += a_link * np.bincount(plane, links, slab.planes).astype(np.int64)
        if a_wall:
            walls = each.own_walls.counts()
            found += a_wall * np.bincount(plane, walls, slab.planes).astype(np.int64)
    tables = [each.motion.table.first.size for each in lists if each.motion and each.cells.size]
    found[0] += value * case.lattice.Q * max(tables, default=0)
    found[0] += 8 * case.lattice.Q * 2 * looked_at(lists).size
    return found


def _rates(case: BoundedLattice, entries: EntryList) -> tuple[int, int, int]:
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
    if "slip" in effects_on(boundary, case) and reads_cell and not boundary.mirrors:
        cells += 4 * (1 + len(entries.inward))
    given = value * entries.given.rows.shape[-1] * entries.given.vary  # else few rows
    started = staged or (entries.writes is Writes.MEASURED and data is not None)
    an_entry = ENTRY_BYTES + START_BYTES * started
    cells += (8 + value * (2 * case.lattice.D + 4)) * (entries.samples is not None)
    cells += value * (case.lattice.D + 2) * (entries.layer is not None)
    return an_entry + cells + 8 * near + kept + given, a_link, a_wall


def force_columns(case: Case) -> int:
    """Numbers of a body: its force and torque, and with `split` pressure and stress."""
    return len(force_names(case)) + 2 * case.dimensions * case.needs.split


def force_names(case: Case) -> list[str]:
    """Names of the components of the force and torque on a body."""
    axes = AXES[: case.dimensions]
    return [f"force_{a}" for a in axes] + [f"torque_{a}" for a in (AXES if len(axes) == 3 else "z")]


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


def weighed_in_cells(case: Case) -> list[int]:
    """The numbers of the measured bodies at rest that act in cells, ascending."""
    return sorted({*case.needs.weighed} & {*in_cells(case)} - {*moving(case)})


def cell_bytes(cells: np.ndarray) -> np.ndarray:
    """Bytes for the forces on bodies that act in these cells, (planes, rows, nx), by plane."""
    return CELL_BYTES * np.count_nonzero(cells, axis=(1, 2))


def wall_bytes(case: Case, slab: Slab, lists: Sequence[EntryList]) -> np.ndarray:
    """Bytes of the wall cells of coupled fluids (see wall_cells) by plane, int64 (planes,).

    Wall cells are the other ends of missing links, and each of these links is a source. Links of
    the neighbours' fluid cells lead to about as many wall cells as the slab's links that leave the
    slab.
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
