"""The moment sweep on a CUDA device: tensor maps, launches, and the choice of its tile."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.backends.cuda import overlap
from mpilbm.backends.cuda.blocks import FREE, WITHIN, Kind, Surroundings, with_shares
from mpilbm.backends.cuda.passes import PassLaunch, SweepLaunch, parts_of
from mpilbm.backends.cuda.tiles import Needs, Share, Tile, candidates
from mpilbm.backends.gpu.launch import planes_of
from mpilbm.backends.interfaces import (
    Array,
    CompiledKernel,
    Launch,
    Parts,
    Resources,
    checked,
)
from mpilbm.backends.tuning import fastest
from mpilbm.backends.units import side_by_side
from mpilbm.codegen.program import MOVED, SHARE, Program
from mpilbm.core.errors import MpilbmError
from mpilbm.layouts.grid import Grid
from mpilbm.solids import body_walls, box_walls
from mpilbm.solids.body_walls import BodyWalls
from mpilbm.solids.box_walls import FAR, BoxWalls

LEAST_CAPABILITY = 80  # compute capability 8.0: asynchronous copies to shared memory
L2_PROMOTION = 0  # CU_TENSOR_MAP_L2_PROMOTION_NONE
MAPS = np.dtype("V256")  # struct Maps of sweep.h: two CUtensorMaps
WALLS = np.dtype(f"V{box_walls.DTYPE.itemsize}")  # struct Walls of sweep/walls.h
BODIES = np.dtype([("blocks", "u8"), ("words", "u8"), ("segments", "i8")])  # of sweep/bodies.h
DATA_TYPES = {2: 6, 4: 7, 8: 8}  # CUtensorMapDataType of a number of so many bytes


class Bodies:
    """The walls of bodies on a device, if there are `some`, and the structure by which kernels find
    them.
    """

    def __init__(self, device: Any, walls: BodyWalls | None = None):
        self.table, self.some = np.zeros((), BODIES), bool(walls and walls.owners)
        self.there: NDArray[np.bool_] | None = None
        if walls is None or not self.some:
            return
        device.require(walls.nbytes, "the half-way walls of bodies")
        self._kept = device.upload(walls.blocks), device.upload(walls.words)
        for name, array in zip(("blocks", "words"), self._kept, strict=True):
            self.table[name] = array.data.ptr
        self.table["segments"] = walls.blocks.shape[-1]
        self.there = walls.blocks != 0

    @property
    def argument(self) -> np.ndarray:
        """The structure as an argument of a kernel."""
        return self.table.reshape(1).view(f"V{BODIES.itemsize}")


class SweepKernel:
    """Replaces the generic collide-stream kernel; takes the same arguments.

    `device`: a CudaDevice. `steps`: the time steps of a launch, 1 or 2; with two there is no
    generic kernel, and a tile must be `fitting`.
    """

    def __init__(
        self, device: Any, program: Program, generic: CompiledKernel | None, steps: int = 1
    ):
        self._device, self._program, self._generic = device, program, generic
        self._steps = steps
        self._kernel, self._needs = program.kernels["collide_stream_0"], Needs.of(program)
        self._modules: dict[tuple[str, ...], Any] = {}
        self._walls, self._bodies = np.zeros((), box_walls.DTYPE), Bodies(device)
        self._grid: Grid | None = None  # of the fluid, once walls are applied
        self._owned: tuple[int, int] | None = None  # planes, as planes_of(), where it is known
        self._columns = 0, 0  # begin and end along x of the cells that passes of two steps update
        self._shares: NDArray[np.bool_] | None = None
        self.tile: Tile | None = None

    def bind(self, **arguments: Any) -> Launch:
        """Fix all arguments; the first call chooses a tile, or the generic kernel if none fits."""
        values = checked(self._kernel, self._program, arguments)
        if self._steps == 2 and SHARE in arguments and self._shares is None:
            assert self._grid, "two steps have a grid"
            assert self._owned, "two steps have planes"
            shares = self._device.download(arguments[SHARE])
            self._shares = with_shares(shares, self._grid, self._owned)
        if self.tile is None:
            self.tile = self._choose(arguments, values)
        if self.tile is None:
            assert self._generic, "no tile fits"
            return self._generic.bind(**arguments)
        return self._launch(self.tile, arguments, values)

    def parts(self, planes: int, faces: int, sent: int) -> Parts | None:
        """How a slab is divided so that its exchange overlaps, see `overlap`; after `bind`."""
        tile, grid = self.tile, self._grid
        assert tile, "a tile is chosen first"
        assert grid, "two steps have a grid"
        wave, columns = self._device.processors * tile.blocks, tile.columns(grid.rows, grid.nx)
        return overlap.parts(planes, faces, columns, wave, tile.planes, sent)

    def bind_parts(self, parts: Parts, **arguments: Any) -> tuple[Launch, Launch]:
        """What computes the edge planes at both ends of a range, and what computes a range."""
        values = checked(self._kernel, self._program, arguments)
        assert self.tile, "a tile is chosen first"
        bulk = replace(self.tile, planes=parts.block)
        edges = self._launch(self.tile, arguments, values, parts.edge)
        return edges, self._launch(bulk, arguments, values)

    def apply(self, walls: BoxWalls, bodies: BodyWalls, grid: Grid) -> bool:
        """Apply these walls from now on, if a tile fits; call it before `bind`."""
        if not self.fitting(grid.nx, grid.row_stride, grid.rows):
            return False
        self._walls, self._bodies, self._grid = walls.table, Bodies(self._device, bodies), grid
        return True

    def clear_solids(self, f: Array) -> None:
        """Enqueue zeros, which the sweep requires and keeps, in the solid cells whose walls are
        applied.
        """
        if not self._bodies.some:
            return
        assert self._grid, "walls of bodies come with a grid"
        assert self.tile, "a tile is chosen first"
        grid = self._grid
        planes = f.size // grid.plane_stride
        blocks = planes, grid.rows, int(self._bodies.table["segments"])
        sizes = map(np.int32, (grid.nx, grid.rows, grid.row_stride, grid.slot_stride))
        values = self._bodies.argument, f, *sizes, np.int64(grid.plane_stride)
        with self._device.stream("bulk").cupy:
            self._module(self.tile).get_function("clear_solids")(
                blocks, (body_walls.BLOCK, 1, 1), values
            )

    def two_steps(self, grid: Grid, columns: tuple[int, int] | None = None) -> "SweepKernel | None":
        """The sweep with two steps in one pass and the same walls, if a tile of both fits.

        Without a tile, single steps take the generic kernel, whose bits differ.
        """
        kernel = SweepKernel(self._device, self._program, None, steps=2)
        kernel._walls, kernel._bodies, kernel._grid = self._walls, self._bodies, grid
        kernel._owned, kernel._columns = (grid.ghost, grid.planes), columns or (0, grid.nx)
        box = grid.nx, grid.row_stride, grid.rows
        return kernel if self.fitting(*box) and kernel.fitting(*box) else None

    def of_box(self, walls: BoxWalls, bodies: BodyWalls, grid: Grid) -> "SweepKernel | None":
        """The sweep of single steps for another box with other walls, if a tile fits."""
        kernel = SweepKernel(self._device, self._program, None)
        kernel._walls, kernel._bodies = walls.table, Bodies(self._device, bodies)
        kernel._owned = grid.ghost, grid.planes
        kernel._modules = self._modules  # compiled for the same tiles
        return kernel if kernel.fitting(grid.nx, grid.row_stride, grid.rows) else None

    def resources(self) -> Resources:
        if self.tile is None:
            return self._generic.resources() if self._generic else Resources()
        tile = self.tile
        function = self.function(tile)
        shared = self._needs.shared_bytes(tile)
        return Resources(function.num_regs, function.local_size_bytes, shared)

    def fitting(self, nx: int, row_stride: int, rows: int) -> list[Tile]:
        """The tiles that can run; tiles wider than the box come last."""
        limit = self._device.shared_memory
        tiles = candidates(self._device.capability, self._steps, narrow=self._generic is None)
        tiles = sorted(tiles, key=lambda tile: tile.own[0] > nx)
        return [tile for tile in tiles if self._needs.fits(tile, limit, nx, row_stride, rows)]

    def function(self, tile: Tile, kind: Kind | None = None) -> Any:
        """The kernel compiled for a tile, and with two steps for a kind of blocks."""
        function = self._module(tile, kind).get_function("sweep")
        function.max_dynamic_shared_size_bytes = self._needs.shared_bytes(tile)
        return function

    def _module(self, tile: Tile, kind: Kind | None = None) -> Any:
        if self._steps == 2:
            kind = kind or (
                self._around.whole
                if self._around.free
                else replace(FREE, shares=self._around.moves)
            )
        met = kind.options() if kind else ("-DSHARES_MET=1",)
        options = ("--std=c++17", "--fmad=false", *tile.options(), *self._met, *met)
        if options not in self._modules:
            self._modules[options] = self._device.module(self._program.sweep, options)
        return self._modules[options]

    def _launch(
        self, tile: Tile, arguments: Mapping[str, Any], values: list[Any], edge: int = 0
    ) -> Launch:
        box = int(arguments["nx"]), int(arguments["rows"])
        # arguments before the numbers of planes
        further = [self._walls.reshape(1).view(WALLS), self._bodies.argument]
        if self._steps == 1:
            narrow, *wide = reversed(self._needs.shares)
            shares = narrow, wide[0] if wide else None
            further = [*(self._maps(arguments, share, tile) for share in shares), *further]
        shared = self._needs.shared_bytes(tile)
        if self._steps == 2:
            function = partial(self.function, tile)
            around, rest = self._around, (shared, self._kernel, further, values, edge)
            return PassLaunch(self._device, function, tile, around, *rest)
        function = self.function(tile)
        return SweepLaunch(function, tile, box, shared, self._kernel, further, values, edge)

    def _maps(self, arguments: Mapping[str, Any], share: Share | None, tile: Tile) -> np.ndarray:
        """The tensor maps of a format, MAPS (1,); zeros if the tile or the program has none.

        CuPy passes a NumPy array of one structure by value.
        """
        memory = np.zeros(MAPS.itemsize + 64, np.uint8)
        start = -memory.ctypes.data % 64  # the alignment that CUDA requires
        found = memory[start : start + MAPS.itemsize]
        if share and tile.bulk:
            encode_map(found[:128], arguments, share, share.box(tile))
            encode_map(found[128:], arguments, share, share.side)
        return found.view(MAPS)

    @property
    def _around(self) -> Surroundings:
        """What blocks with two steps may meet."""
        grid, owned = self._grid, self._owned
        assert grid, "two steps have a grid"
        assert owned, "two steps have planes"
        first, last = map(int, self._walls["planes"] if self._walls["faces"] else (-FAR, FAR))
        faces, wraps = int(self._walls["faces"]) & WITHIN, bool(grid.wraps)
        there, moves = self._bodies.there, any(a.name == MOVED for a in self._kernel.arguments)
        return Surroundings(
            grid.nx,
            grid.rows,
            owned,
            wraps,
            self._columns,
            faces,
            (first, last),
            there,
            None if moves else self._shares,
            moves,
        )

    @property
    def _met(self) -> tuple[str, str]:
        return f"-DWALLS={int(self._walls['faces'] != 0)}", f"-DBODIES={int(self._bodies.some)}"

    def _choose(self, arguments: Mapping[str, Any], values: list[Any]) -> Tile | None:
        """The fastest of the tiles that fit, None if none fits.

        With one step, tiles that keep all values in registers; with two, blocks at walls spill
        some.
        """
        first, planes = self._owned or planes_of(arguments)
        shape = planes, int(arguments["rows"]), int(arguments["nx"])
        fitting = self.fitting(shape[2], int(arguments["f_row"]), shape[1])
        if not fitting:
            return None
        processors = self._device.processors
        spread = dict.fromkeys(each for tile in fitting for each in tile.spreads(shape, processors))
        return fastest(
            self._device,
            f"{self._program.sweep}{self._met}{self._columns}",
            shape,
            list(spread),
            lambda tile: self._launch(tile, arguments, values),
            lambda tile: self._steps == 2 or self.function(tile).local_size_bytes == 0,
            self._compile,
            first,
        )

    def _compile(self, tiles: Sequence[Tile]) -> None:
        """Compile the kernels of these tiles side by side; some tiles share a kernel."""

        def compiled(one: tuple[Tile, Kind | None]) -> None:
            self._device.attach()
            self.function(*one)

        distinct = {tile.options(): tile for tile in tiles}.values()
        side_by_side(compiled, [(tile, kind) for tile in distinct for kind in self._kinds(tile)])

    def _kinds(self, tile: Tile) -> Sequence[Kind | None]:
        """The kinds of the blocks of a tile."""
        if self._steps == 1:
            return (None,)
        if self._around.free:
            return (self._around.whole,)
        assert self._owned, "two steps have planes"
        parts = parts_of(tile, self._owned[0], sum(self._owned))
        return [kind for kind, _ in self._around.blocks(tile, parts)]


def encode_map(to: np.ndarray, arguments: Mapping[str, Any], share: Share, width: int) -> None:
    """Write a CUtensorMap, uint8 (128,): how the copy engine finds (width, 1, values, 1) numbers.

    The axes of the tensor are x, row, value and plane, with padding and ghost planes.
    [CUDA driver API, Tensor Map Object Management]
    """
    f, row, plane = (arguments[name] for name in ("f_in", "f_row", "f_plane"))
    unit, slots = f.dtype.itemsize, share.size // f.dtype.itemsize
    slot = int(arguments["f_slot"]) * unit
    sizes = (int(row), int(arguments["rows"]), share.values, f.size // int(plane))
    strides = (int(row) * share.size, slots * slot, int(plane) * unit)
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    tensor = (u64 * 4)(*sizes), (u64 * 3)(*strides), (u32 * 4)(width, 1, share.values, 1)
    steps, zero = (u32 * 4)(1, 1, 1, 1), ctypes.c_int(0)  # no interleaving, no swizzle, no fill
    place = ctypes.c_void_p(f.data.ptr + share.slot * slot)
    head = ctypes.c_void_p(to.ctypes.data), ctypes.c_int(DATA_TYPES[share.size]), u32(4), place
    promotion = ctypes.c_int(L2_PROMOTION)
    encode = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    error = encode(*head, *tensor, steps, zero, zero, promotion, zero)
    if error:
        raise MpilbmError(
            f"cuTensorMapEncodeTiled returns error {error} for sizes {sizes}, {strides}"
        )
