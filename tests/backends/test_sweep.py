"""The moment sweep as far as no GPU is needed: its tiles, its launches, its text under nvcc.

Half a minute of CPU time: nvcc takes almost a second for each tile.
"""

import contextlib
import re
import shutil
import subprocess
import types

import numpy as np
import pytest
from support.pairs import ALL_COMBINATIONS
from support.slabs import PRECISIONS, box

from mpilbm import codegen
from mpilbm.backends.cuda import sweep as cuda_sweep
from mpilbm.backends.cuda.passes import SweepLaunch
from mpilbm.backends.cuda.tiles import CANDIDATES, Needs, Tile, candidates
from mpilbm.case.case import parse_case
from mpilbm.codegen.program import Program
from mpilbm.codegen.sweep.kernel import sweep_sizes
from mpilbm.core.registry import make, names
from mpilbm.run.preflight.layout_choice import NARROW

NVCC = shutil.which("nvcc")
CROSSING = ((1, 1, 8, 5), (1, 2, 13, 10), (2, 2, 18, 10))  # of D3Q19
HOPPER = 227 * 1024  # bytes of shared memory


def case_of(lattice, precision="single", **more):
    tables = {"layout": {"name": "moments"}, "collision": {"name": "regularized"}}
    tables = box(lattice, precision=PRECISIONS[precision], **tables, **more)
    return parse_case(tables, "test.toml")


def program(*choice, **more):
    return codegen.generate(case_of(*choice, **more))


def needs_of(lattice, precision) -> Needs:
    """The needs of a program without kernels."""
    case = case_of(lattice, precision)
    unit, widest = case.formats.unit, case.formats.widest
    wide = "" if widest == unit else widest
    sizes = sweep_sizes(case.lattice, case.formats)
    return Needs.of(Program("", {}, {}, case.precision.compute, unit, "", sizes, wide))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "lattice", [n for n in names("lattices") if not make("lattices", n).staggered]
)
def test_some_tile_fits_every_box_of_more_than_a_few_cells(lattice, precision):
    needs, D = needs_of(lattice, precision), make("lattices", lattice).D
    assert needs.wide == (1 + D if precision == "mixed_moments" else 0)
    assert needs.values == 1 + D + D * (D + 1) // 2
    for nx, stride, rows in ((63, 96, 50), (64, 96, 3), (512, 512, 512)):
        box = {"nx": nx, "row_stride": stride, "rows": rows if D == 3 else 1}
        fitting = [tile for tile in CANDIDATES if needs.fits(tile, HOPPER, **box)]
        assert fitting
        for tile in fitting:
            assert tile.blocks * needs.shared_bytes(tile) <= HOPPER
            assert max(share.box(tile) for share in needs.shares) <= stride
            assert nx % tile.cells == 0


def test_tiles_that_do_not_fit():
    needs = Needs(values=10, crossing=CROSSING, reach=1, stored=4, computed=4)
    fits = {"limit": HOPPER, "nx": 512, "row_stride": 512, "rows": 64}
    assert needs.fits(Tile(64, 8, 2, 1), **fits)
    assert needs.fits(Tile(64, 8, 2, 2), **fits)
    assert not needs.fits(Tile(64, 8, 2, 3), **fits)  # three blocks' shared memory
    assert not needs.fits(Tile(64, 2, 2, 1), **fits)  # fewer threads than cells around the tile
    assert not needs.fits(Tile(64, 8, 2, 1, cells=2), **fits | {"nx": 511})
    pairs = Tile(64, 8, 2, 1, cells=2, rows=2)
    assert needs.fits(pairs, **fits)
    assert not needs.fits(pairs, **fits | {"rows": 63})
    assert not needs.fits(Tile(64, 8, 2, 1), **fits | {"row_stride": 64})
    assert not needs.fits(Tile(64, 8, 2, 1), **fits | {"limit": 99 * 1024})


@pytest.mark.parametrize(
    ("box", "planes"),
    [
        ((512, 512, 512), [32]),  # 25 waves of 264 blocks
        ((256, 256, 256), [26, 32]),  # 4 waves, where 32 planes would need 4 too
        ((128, 128, 128), [13, 12]),  # 260 blocks in one wave; 286 blocks
        ((32, 128, 128), [4]),
        ((64, 64, 64), [4]),
        ((1, 4, 128), [1]),
    ],
)
def test_blocks_fill_the_waves_of_a_device(box, planes):
    """Tiles of 128 x 5 cells, two blocks on each of 132 processors."""
    tile = Tile(128, 5, stages=2, blocks=2, cells=2, planes=32)
    assert [each.planes for each in tile.spreads(box, processors=132)] == planes


def test_fewer_planes_are_read_twice_with_few_pieces():
    """Two waves of 24 planes were 9 % faster than three of 12, on an H200 with 132 processors."""
    tile = Tile(64, 6, stages=2, blocks=1, planes=32)
    assert [each.planes for each in tile.spreads((48, 192, 192), processors=132)] == [12, 24]


def test_tiles_of_short_rows():
    """Rows of windows are shorter than a line: a tile is less than twice as wide as their cells."""
    needs = needs_of("D3Q19", "single")

    def widths(nx: int, row: int) -> set[int]:
        fitting = candidates(90, narrow=True)
        return {tile.tx for tile in fitting if needs.fits(tile, HOPPER, nx, row, rows=16)}

    assert widths(8, 8) == {8}
    assert widths(10, 16) == {8, 16}
    assert widths(4, 8) == {8}


class Spilling:
    """A device on which the first tile spills registers."""

    capability, shared_memory, name, processors = 90, HOPPER, "spilling", 132

    def module(self, text, options):
        spilled = 16 * all(option in options for option in CANDIDATES[0].options())
        function = types.SimpleNamespace(local_size_bytes=spilled)
        return types.SimpleNamespace(get_function=lambda name: function)


def test_tiles_that_spill_registers_are_rejected():
    built = program("D3Q19", "half")
    assert Needs.of(built) == needs_of("D3Q19", "half")
    sweep = cuda_sweep.SweepKernel(Spilling(), built, None)
    field = np.zeros(18 * 10 * 16 * 256, np.uint16)
    box = {"f_in": field, "f_plane": 10 * 16 * 256, "f_row": 256, "rows": 16, "nx": 256}
    assert sweep._choose(box, []).options() == CANDIDATES[1].options()


def test_tensor_maps_only_where_they_exist():
    assert candidates(90) == list(CANDIDATES)
    assert {tile.bulk for tile in candidates(89)} == {False}
    assert len(candidates(89)) == len(set(candidates(89))) <= len(CANDIDATES)


def test_bytes_of_a_block():
    """Stages of rows with 32 bytes on either side and 16 beyond a face; messages of all threads."""
    needs = Needs(values=10, crossing=CROSSING, reach=1, stored=4, computed=4)
    row, side = 10 * (32 + 16) * 4, 256
    stages = 2 * 10 * (row + 2 * side)
    assert needs.shared_bytes(Tile(32, 8, 2, 1)) == stages + 2 * 4 * (69 * 33 + 3)
    pairs = Tile(32, 8, 2, 1, cells=2, rows=2)
    assert needs.shared_bytes(pairs) == stages + 2 * 4 * (82 * 17 + 2)


@pytest.mark.parametrize(
    ("planes", "pieces", "step"), [((1, 65, 1), 2, 32), ((1, 34, 1), 2, 32), ((3, 10, 6), 2, 1)]
)
def test_launches_cover_all_planes(planes, pieces, step):
    """A stride names single planes, the edges of a slab."""
    calls, tile = [], Tile(32, 4, 2, 1, planes=32)
    stream = types.SimpleNamespace(cupy=contextlib.nullcontext())
    launch = SweepLaunch(
        lambda *call, shared_mem: calls.append((*call, shared_mem)),
        tile,
        (70, 9),
        777,
        None,
        ["a", "b"],
        [5],
    )
    launch(stream, *planes)
    launch(stream, 4, 4)
    ((grid, block, values, shared),) = calls
    assert (grid, block, shared) == ((3, 3, pieces), (32, 4, 1), 777)
    assert values == ("a", "b", *planes, step, 5)
    assert {type(value) for value in values[2:6]} == {np.int64}


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
@pytest.mark.parametrize(
    ("lattice", "precision", "forced"),
    [("D3Q19", name, False) for name in PRECISIONS]
    + [("D3Q27", "single", True), ("D2Q9", "half", True), ("D3Q15", "double", False)],
)
def test_the_text_compiles_without_spills(lattice, precision, forced, tmp_path):
    force = {"force": {"name": "guo", "value": [1e-5] * make("lattices", lattice).D}}
    built = program(lattice, precision, **force if forced else {})
    needs, rows = Needs.of(built), 1 if lattice == "D2Q9" else 512
    assert needs == needs_of(lattice, precision)
    source = tmp_path / "sweep.cu"
    source.write_text(built.sweep)
    fitting = {
        capability: [t for t in candidates(capability) if needs.fits(t, limit, 512, 512, rows)]
        for capability, limit in ((90, HOPPER), (80, 163 * 1024))
    }
    pairs = [(90, fitting[90][0], 1), (90, fitting[90][1], 0), (80, fitting[80][0], 0)]
    if ALL_COMBINATIONS:
        pairs += [(80, fitting[80][1], 1), (90, fitting[90][0], 0)]
    for capability, tile, walls in pairs:
        options = [f"-arch=sm_{capability}", "-fmad=false", "-cubin", "-Xptxas", "-v"]
        options += [f"-DWALLS={walls}", f"-DBODIES={walls}"]
        command = [
            NVCC,
            *options,
            *tile.options(),
            str(source),
            "-o",
            str(tmp_path / "sweep.cubin"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert set(re.findall(r"(\d+) bytes spill", done.stderr)) == {"0"}, tile


@pytest.mark.parametrize("size", [4, 8])
def test_the_narrowest_box_with_a_tile(size):
    """That of run/preflight/layout_choice.py; rows are padded to whole lines of 32 values."""
    needs = Needs(values=10, crossing=CROSSING, reach=1, stored=size, computed=size)
    wide = [t for t in candidates(90) if needs.fits(t, HOPPER, NARROW + 1, NARROW + 32, 16)]
    narrow = [t for t in candidates(90) if needs.fits(t, HOPPER, NARROW, NARROW, 16)]
    assert wide
    assert not narrow
