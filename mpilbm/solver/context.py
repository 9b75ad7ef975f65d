"""The data that the parts of a slab's solver share, and the binding of kernels to arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array, CompiledKernel, Launch, Runner, Stream
from mpilbm.case.case import Case
from mpilbm.codegen.program import (
    BETWEEN,
    CURSORS,
    DISTANCES,
    MOTION,
    MOTIONS,
    MOVED,
    OF,
    RESTING,
    SHARE,
    Program,
)
from mpilbm.codegen.scalar_numbers import (
    MATERIAL,
    buoyancy_numbers,
    material_grid,
    table,
    table_name,
)
from mpilbm.halo import Exchanger
from mpilbm.layouts import AnyGrid
from mpilbm.layouts.grid import Grid, byte_grid
from mpilbm.layouts.nodes import NodeGrid
from mpilbm.model.case import BoundedLattice
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.motions import moving, responding
from mpilbm.solids.body_walls import BodyWalls
from mpilbm.solids.box_walls import BoxWalls, without
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.moving_bodies import AHEAD, MovingBody, distances
from mpilbm.solids.moving_bodies import table as motion_table
from mpilbm.solids.shares import shares_beside
from mpilbm.solids.windows import UNCUT_BOX, Window
from mpilbm.solver import memory_plan
from mpilbm.solver.exchange_plan import allows_two_steps, ghost_planes
from mpilbm.solver.timed_values import ForceField, ForceNumbers


@dataclass
class Clock:
    """How many time steps are done; negative while the initial velocity is held."""

    steps: int = 0


@dataclass(frozen=True, eq=False)
class SlabContext:
    """One slab of a case on one device, shared by the parts of its solver.

    It refers to none of these parts, so the parts form no reference cycle, and their arrays are
    freed with the last reference to the solver. No attribute is replaced; `clock` advances.

    bounded    the lattice that this context is of: that of the fluids, or of a scalar
    geometry   solid cells, and the boundary lists that the step runs
    grid       the memory of the populations
    kernels    the compiled kernels of `program`
    tables     numbers and device arrays of the grid, by the name of the kernel argument; the array
               of a force that is given for each cell
    numbers    numbers of the coupling, by the name of the kernel argument
    body_walls half-way walls of bodies that the moment sweep applies; None without a sweep
    cut        the numbers by which the cells of a window find their places in the box
    stream     the name of the stream of the boundary lists and of all planes but the edge planes
    """

    case: Case
    bounded: BoundedLattice
    slab: Slab
    geometry: Geometry
    grid: AnyGrid
    device: Device
    exchanger: Exchanger
    program: Program
    kernels: Mapping[str, CompiledKernel]
    tables: Mapping[str, Array | int]
    numbers: Mapping[str, float]
    forces: ForceNumbers
    force_field: ForceField | None
    clock: Clock
    body_walls: BodyWalls | None
    cut: Mapping[str, int] = field(default_factory=lambda: UNCUT_BOX)
    stream: str = "bulk"

    @classmethod
    def create(
        cls,
        case: Case,
        slab: Slab,
        geometry: Geometry,
        device: Device,
        exchanger: Exchanger,
        program: Program,
    ) -> "SlabContext":
        """Compile the kernels and upload the grid's tables; CaseError if the slab does not fit."""
        size = slab.planes, *slab.shape[1:]
        storage = case.precision.storage
        grid = case.layout.grid(case.lattice, *size, geometry.around, case.ghost, storage)
        grid = replace(grid, wraps=slab.wraps)
        kernels, ghost = device.compile(program, case.needs.roles), ghost_planes(case, slab)
        if ghost > grid.ghost and isinstance(grid, Grid) and device.two_steps(kernels, grid):
            grid = replace(grid, ghost=ghost)
        listed = unlisted(grid, geometry.lists, case.lattice)
        bodies = None
        if program.sweep and isinstance(grid, Grid):
            walls, bodies = BoxWalls.of(case, slab, grid), BodyWalls.of(case, slab, geometry, grid)
            if device.apply_walls(kernels, walls, bodies, grid):
                listed = without(listed, walls.owners | bodies.owners)
        geometry = replace(geometry, lists=listed)
        memory_plan.require(device, case, slab, geometry.lists, geometry.around)
        tables = {
            name: device.upload(value) if isinstance(value, np.ndarray) else value
            for name, value in grid.arguments().items()
        }
        tables |= _neighbours(device, grid, geometry)
        for k in range(len(case.scalars)):
            tables |= memory_plan.scalar_grid(case, k, slab).arguments()
        tables |= material_tables(case, geometry, grid, device, program.compute)
        pairs = False
        if moving(case) and isinstance(grid, Grid) and allows_two_steps(case, slab):
            pairs = device.two_steps(kernels, grid) is not None
        tables |= share_tables(case, geometry, grid, device, slab, pairs)
        numbers = case.coupling.numbers(case) if case.coupling else {}
        numbers |= buoyancy_numbers(case)
        shared = case, slab, geometry, grid, device
        force_field = None
        if any(value.field for value in case.force_on(0)):
            force_field = ForceField(*shared, program.compute)
            tables |= force_field.arguments
        forces = ForceNumbers(case), force_field, Clock()
        return cls(case, *shared, exchanger, program, kernels, tables, numbers, *forces, bodies)

    def of_scalar(self, number: int) -> "SlabContext":
        """The context of the populations of a scalar."""
        bounded = self.case.of_scalar(number)
        grid = memory_plan.scalar_grid(self.case, number, self.slab)
        lists = unlisted(grid, self.geometry.of_scalars[number], bounded.lattice)
        geometry = replace(self.geometry, lists=lists, of_scalars=())
        return replace(self, bounded=bounded, grid=grid, geometry=geometry)

    def of_window(self, window: Window, stream: str) -> "SlabContext | None":
        """The context of the cells of a window, whose work is in a stream of this name; None if the
        device has no kernel for it.
        """
        slab = window.slab(self.slab)
        grid = window.grid(self.case, self.slab, self.grid.ghost)
        walls, name = BoxWalls.of(self.case, slab, grid), "collide_stream_0"
        assert self.body_walls, "windows are those of a sweep"
        bodies = self.body_walls.of_window(window, grid)
        kernel = self.device.sweep_of(self.kernels, walls, bodies, grid)
        if kernel is None:
            return None
        geometry = window.geometry(self.geometry)
        shares = share_tables(self.case, geometry, grid, self.device)
        tables = {**grid.arguments(), **shares}
        found = replace(self, slab=slab, geometry=geometry, grid=grid, tables=tables, clock=Clock())
        cut = window.place_in_box(self.slab.begin)
        return replace(found, kernels={**self.kernels, name: kernel}, cut=cut, stream=stream)

    @property
    def bulk(self) -> Stream:
        """The stream of the boundary lists and of all planes but the edge planes."""
        return self.device.stream(self.stream)

    @property
    def period(self) -> int:
        """After how many steps kernels have the same arguments again."""
        return max(self.case.layout.parities, self.case.layout.buffers)

    @property
    def parity(self) -> int:
        """The parity of the next step."""
        return self.clock.steps % self.case.layout.parities

    @property
    def timed(self) -> bool:
        """Whether forces or values of boundaries depend on time."""
        case = self.case
        boundaries: list[Condition] = [*case.boundaries, *(body.boundary for body in case.bodies)]
        for scalar in case.scalars:
            boundaries += [*scalar.boundaries, *scalar.bodies]
        given = (value for each in boundaries for value in each.given())
        fields = self.force_field is not None and self.force_field.timed
        return self.forces.timed or fields or any(value.timed for value in given)

    @cached_property
    def flags(self) -> Array:
        """Flags of all cells on the device, for kernels that read those of neighbours."""
        return self.device.upload(self.geometry.flags)

    def sizes(self) -> dict[str, Any]:
        """The arguments that every kernel over the populations takes."""
        below = self.slab.begin - self.grid.ghost  # planes of the box below the array's first
        box = {"nx": self.grid.nx, "rows": self.grid.rows, "below": below, "odd": below % 2}
        box["box_planes"] = self.slab.shape[0]
        return {**box, **self.cut, "first": self.grid.ghost, **self.tables}

    def arguments(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The arguments of a kernel, by name; arguments that it does not take are ignored."""
        wanted = {argument.name for argument in self.program.kernels[name].arguments}
        given = self.sizes() | self.forces.at(self.clock.steps) | dict(self.numbers)
        if "flags" in wanted:
            given["flags"] = self.flags
        return {key: value for key, value in (given | arguments).items() if key in wanted}

    def bind(self, name: str, **arguments: Any) -> Launch:
        """A kernel with its arguments; arguments that it does not take are ignored."""
        return self.kernels[name].bind(**self.arguments(name, **arguments))

    def bind_step(self, name: str, **arguments: Any) -> Launch:
        """Bind a kernel of the time step, which receives the forces of each step."""
        launch = self.bind(name, **arguments)
        self.forces.follow(launch, self.program.kernels[name])
        return launch

    def over_planes(self, launch: Runner, begin: int, end: int) -> None:
        """Enqueue a launch for planes begin..end of the slab in the bulk stream."""
        launch(self.bulk, self.grid.ghost + begin, self.grid.ghost + end)


def unlisted(
    grid: AnyGrid, lists: tuple[EntryList, ...], lattice: Lattice
) -> tuple[EntryList, ...]:
    """Entry lists without the links for which tables of neighbours perform bounce-back."""
    if not isinstance(grid, NodeGrid) or not grid.turned:
        return lists
    planes = np.arange(*grid.interior)
    elsewhere = {i: ~grid.keeps(planes - lattice.offset(i)[0]) for i in range(1, lattice.Q)}
    return tuple(
        each.limited(grid.planes, elsewhere, each.cells // (grid.rows * grid.nx))
        if each.boundary.reflects
        else each
        for each in lists
    )


def _neighbours(device: Device, grid: AnyGrid, geometry: Geometry) -> dict[str, Array]:
    """The grid's tables of neighbours on the device; on the host only one plane at a time."""
    tables = {name: device.allocate(count, "int32") for name, count in grid.table_sizes.items()}
    for name, begin, values in grid.table_parts(geometry):
        device.copy(tables[name][begin : begin + values.size], values)
    device.stream("bulk").synchronize()
    return tables


def share_tables(
    case: Case,
    geometry: Geometry,
    grid: AnyGrid,
    device: Device,
    slab: Slab | None = None,
    pairs: bool = False,
) -> dict[str, Array | int]:
    """The arguments of kernels that read solid shares; empty without bodies that act in cells.

    With bodies that move also the arrays of these, see MovingBodies; `pairs`: whether there may be
    passes of two steps, with arrays of their own for the first one. `slab`: see stored_shares.
    """
    if geometry.shares is None or not isinstance(grid, Grid):
        return {}
    memory = byte_grid(SHARE, grid)
    found: dict[str, Array | int] = dict(memory.arguments())
    shares = stored_shares(case, geometry, memory, slab)
    found[SHARE] = device.upload(shares)
    if bodies := MovingBody.all(case):
        found[RESTING], found[MOVED] = device.upload(shares), device.upload(np.zeros_like(shares))
        found[DISTANCES] = device.upload(distances(bodies))
        motion = motion_table(bodies, np.zeros(1)).ravel()
        times = 1 if responding(case) else AHEAD  # of which the motion is known together
        found[MOTION], found[MOTIONS] = device.upload(motion), device.upload(np.tile(motion, times))
        found[CURSORS] = device.upload(np.zeros(motion.size, np.int32))
        begin: dict[str, NDArray[Any]] = {MOTION: motion, SHARE: shares}
        begin[MOVED] = np.zeros_like(shares)
        for name, between in BETWEEN.items() if case.layout.sweep else ():
            found[between] = device.upload(begin[name]) if pairs else found[name]
    return found


def stored_shares(
    case: Case, geometry: Geometry, memory: Grid, slab: Slab | None
) -> NDArray[np.uint8]:
    """The array of the shares of bodies at rest.

    Ghost planes hold 0, because most kernels read the share of the cell that they update. Where
    boundaries read cells away from walls, those of a `slab` hold the shares: the velocity there
    includes half of the force. Passes of two steps exchange them, see TwoSteps, unless bodies move.
    """
    assert geometry.shares is not None, "the case has bodies that act in cells"
    found = memory.filled(geometry.shares.share)
    ghost = memory.ghost if moving(case) else case.ghost
    for local, values in shares_beside(case, slab, ghost) if slab and ghost > 1 else ():
        for place, numbers in memory.planes_of(values[None], local):
            found[place : place + numbers.size] = numbers
    return found


def material_tables(
    case: Case, geometry: Geometry, grid: AnyGrid, device: Device, compute: str
) -> dict[str, Array | int]:
    """The arguments of kernels that read materials: the number of each cell, a table per scalar.

    Empty if no body conducts a scalar. Ghost planes hold 0: kernels read the updated cell's
    material.
    """
    if not case.conductors or not isinstance(grid, Grid):
        return {}
    memory = material_grid(grid)
    numbers = np.zeros(1 + len(case.bodies), np.uint8)
    for k, body in enumerate(case.conductors):
        numbers[1 + body] = 1 + k
    found: dict[str, Array | int] = dict(memory.arguments())
    found[MATERIAL] = device.upload(memory.filled(numbers[solid] for solid in geometry.solid))
    for k, scalar in enumerate(case.scalars, 1):
        rows = np.array(table(scalar, case.conductors), compute)
        found[table_name(OF.format(k))] = device.upload(rows.ravel())
    return found
