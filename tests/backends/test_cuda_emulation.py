"""The CUDA text does what the C text does: compiled for a CPU, launched as on a GPU.

More than 20 s: the kernels of some 60 cases are generated, and compiled in C++ in 0.5 s or more.
"""

from functools import partial

import numpy as np
import pytest
from support.body_forces import sample
from support.coupled import state
from support.device_flows import COUPLED, FLOWS, assert_same_flow, assert_same_statistics
from support.emulated_device import EmulatedDevice, Module, command
from support.faces import NAMES as NAMED
from support.faces import closed, four_faces
from support.pairs import label
from support.row_ends import CASES as ROW_ENDS
from support.row_ends import U
from support.sampled_flows import FLOWS as SAMPLED
from support.sampled_flows import KINDS
from support.settings import DEVICE_CASES, OPTIONS, tables
from support.slabs import PRECISIONS, Cluster, assert_same

from mpilbm import codegen
from mpilbm.backends.gpu import launch as launch_shapes
from mpilbm.case.case import parse_case
from mpilbm.core.registry import find, names

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def few_planes(monkeypatch):
    """Launches of few planes."""
    monkeypatch.setattr(launch_shapes, "GRID_LIMIT", 8)


@pytest.mark.parametrize("choice", DEVICE_CASES, ids=label)
def test_it_does_what_the_c_text_does(choice):
    """Bit for bit, after an odd and an even number of steps, on one slab and on two."""
    case = tables(**choice)
    cpu = Cluster(case).start().run(3)
    whole = Cluster(case, 1, EmulatedDevice).start().run(3)
    assert_same(cpu, whole)
    cut = Cluster(case, 2, EmulatedDevice).restore(cpu.state(), 3).run(3)
    assert_same(cpu.run(3), cut)
    assert np.array_equal(whole.run(3).state(), cut.state())


@pytest.mark.parametrize(("name", "nx"), [*((name, None) for name in ROW_ENDS), ("an outlet", 2)])
def test_walls_return_at_the_ends_of_rows_as_in_the_c_text(name, nx):
    """Pairs of cells, the last cell of an odd row alone, and rows of one pair."""
    name = next(each for each in ROW_ENDS if each.startswith(name))
    size, boundary, more = ROW_ENDS[name]
    more = {"precision": PRECISIONS["single"]} | more
    case = closed("D2Q9", [nx or size[0], size[1]], boundary, layout={"name": "ab"}, **U, **more)
    cpu, gpu = Cluster(case, 2), Cluster(case, 2, EmulatedDevice)
    assert_same(cpu.start().run(3), gpu.start().run(3))


@pytest.mark.parametrize("streaming", ["ab", "esopull"])
def test_nodes_stream_as_in_the_c_text(streaming):
    case = tables("D2Q9", "indirect", "trt", "walls", "mixed")
    case["layout"]["streaming"] = streaming
    case["domain"]["size"] = [270, 7]  # two blocks of nodes
    cpu, gpu = Cluster(case, 2), Cluster(case, 2, EmulatedDevice)
    assert_same(cpu.start().run(3), gpu.start().run(3))


@pytest.mark.parametrize("collision", ["entropic", "trt"])
def test_quick_quotients_and_logarithms_change_little(collision):
    case = tables("D2Q9", "ab", collision, "periodic", "single")
    quick = case | {"precision": case["precision"] | {"intrinsics": True}}
    text = codegen.generate(parse_case(quick, "test.toml")).text
    assert text.startswith("typedef float real;")
    assert "#define INTRINSICS" in text
    cpu, gpu = Cluster(case), Cluster(quick, 1, EmulatedDevice)
    expected, found = (cluster.start().run(5).state() for cluster in (cpu, gpu))
    assert np.abs(found - expected).max() < 1e-6


POPULATIONS = [name for name in OPTIONS["layout"] if find("layouts", name).populations]


@pytest.mark.parametrize("precision", ["half", "single"])
@pytest.mark.parametrize("layout", POPULATIONS)
def test_pairs_of_cells_are_two_cells(layout, precision):
    """Rows of a single cell, of one pair, of a whole block, of several with an odd cell."""
    case = tables("D2Q9", layout, "trt", "periodic", precision)
    for nx in (1, 2, 3, 64, 515):
        case["domain"]["size"] = [nx, 4]
        cpu, gpu = Cluster(case), Cluster(case, 1, EmulatedDevice)
        assert_same(cpu.start().run(3), gpu.start().run(3))


def test_equilibria_with_a_unit_of_their_own_are_the_same_in_16_bits():
    case = tables("D2Q9", "aa", "bgk", "periodic", "half")
    case["collision"] = {"name": "bgk", "equilibrium": {"name": "incompressible"}}
    cpu, gpu = Cluster(case), Cluster(case, 1, EmulatedDevice)
    assert_same(cpu.start().run(3), gpu.start().run(3))


@pytest.mark.parametrize("lattice", [n for n in names("lattices") if find("lattices", n).staggered])
def test_pairs_of_staggered_rows_are_two_cells(lattice):
    """Of which every other row has its neighbours along x under the cells' own numbers."""
    case = tables(lattice, "esopull", "mrt", "periodic", "single")
    for nx in (2, 4, 6, 134):
        case["domain"]["size"] = [nx, 4, 2]
        cpu, gpu = Cluster(case), Cluster(case, 1, EmulatedDevice)
        assert_same(cpu.start().run(3), gpu.start().run(3))


@pytest.mark.parametrize("layout", ["ab", "aa", "indirect"])
def test_coordinates_are_those_of_each_cell_of_a_pair(layout):
    case = tables("D2Q9", layout, "bgk", "forced", "single")
    case["force"]["value"] = ["1e-4*x*(nx-x)", "1e-5*y*x + 1e-5*t"]
    cpu, gpu = Cluster(case), Cluster(case, 2, EmulatedDevice)
    assert_same(cpu.start().run(3), gpu.start().run(3))


@pytest.mark.parametrize("precision", ["single", "double"])
def test_layouts_agree_where_products_are_fused(precision):
    """With fused multiply-add all layouts give the same bits, and not those without it."""

    def found(layout, fused):
        case = tables("D2Q9", layout, "trt", "periodic", precision)
        case["domain"]["size"] = [67, 4]
        return Cluster(case, 1, partial(EmulatedDevice, fused=fused)).start().run(5).state()

    fused = [found(layout, True) for layout in POPULATIONS]
    assert all(np.array_equal(each, fused[0]) for each in fused)
    assert not np.array_equal(fused[0], found(POPULATIONS[0], False))


# Each thread of a tile loads a cell; those inside the tile's frame add their four neighbours.
TILE = """
extern "C" __global__ void __launch_bounds__(60)
add(const float* __restrict__ f, float* sums, int nx)
{
  extern __shared__ float tile[];
  __shared__ float scale;
  const int column = threadIdx.x, row = threadIdx.y, width = blockDim.x;
  const int x = blockIdx.x * (width - 2) + column;
  const int y = blockIdx.y * (blockDim.y - 2) + row;
  const int here = row * width + column;
  if (here == 0) scale = 2;
  tile[here] = __ldg(f + y * nx + x);
  if (column == 0 || column == width - 1 || row == 0 || row == blockDim.y - 1) return;
  __syncthreads();
  const float sum = tile[here - 1] + tile[here + 1] + tile[here - width] + tile[here + width];
  __stcs(sums + y * nx + x, scale * sum);
}
"""


def sums_of_tiles(folder, monkeypatch, text):
    """(what the kernel gives, what it should give) on 3 x 2 tiles of 8 x 4 cells."""
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(folder))
    device = EmulatedDevice()
    module = Module(device, text, "nvrtc", ())
    module.compile()
    f = np.random.default_rng(7).integers(0, 99, (10, 26)).astype("float32")
    arrays = device.upload(f), device.allocate(f.size, "float32")
    with device.stream("bulk").cupy:
        module.get_function("add")((3, 2), (10, 6), (*arrays, np.int32(26)), shared_mem=240)
    found = device.download(arrays[1]).reshape(f.shape)[1:-1, 1:-1]
    return found, 2 * (f[1:-1, :-2] + f[1:-1, 2:] + f[:-2, 1:-1] + f[2:, 1:-1])


def test_threads_of_a_tile_share_memory(tmp_path, monkeypatch):
    found, expected = sums_of_tiles(tmp_path, monkeypatch, TILE)
    assert np.array_equal(found, expected)


def test_a_missing_barrier_shows(tmp_path, monkeypatch):
    """What no thread has written yet is NaN."""
    text = TILE.replace("__syncthreads();", "")
    found, expected = sums_of_tiles(tmp_path, monkeypatch, text)
    assert not np.array_equal(found, expected)


def test_a_barrier_where_threads_run_one_by_one(tmp_path, monkeypatch, capfd):
    text = "#define FOR_CELLS\n" + TILE.replace("{\n", "{\n  FOR_CELLS\n", 1)
    with pytest.raises(AssertionError, match="kernel add"):
        sums_of_tiles(tmp_path, monkeypatch, text)
    assert "one by one" in capfd.readouterr().err


@pytest.mark.parametrize("name", FLOWS)
def test_walls_forces_and_sums_are_those_of_the_c_text(name):
    """The start, and the state, fields, statistics, forces on bodies and flux of some steps."""
    assert_same_flow(FLOWS[name](), EmulatedDevice)


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_fluids_are_those_of_the_c_text(name):
    clusters = [Cluster(COUPLED[name](), 2, device) for device in (None, EmulatedDevice)]
    for each in clusters:
        each.start().run(2)
    assert np.array_equal(*map(state, clusters))
    expected, found = (each.fields("rho", "u") for each in clusters)
    for field, values in expected.items():
        assert np.array_equal(found[field], values)
    for kind in KINDS if clusters[0].case.needs.sampled else ():
        assert_same_statistics(clusters, kind)


@pytest.mark.parametrize("flow", ["two arrays", "nodes", "staggered"])
def test_statistics_of_planes_with_rows(flow):
    """Sums of cells, columns and rows in three dimensions, in every bit."""
    clusters = [Cluster(SAMPLED[flow](), 2, device) for device in (None, EmulatedDevice)]
    for each in clusters:
        each.start()
    for kind in KINDS:
        assert_same_statistics(clusters, kind)


@pytest.mark.parametrize("size", [[270, 5, 3], [60, 19, 3]], ids=str)
def test_several_blocks_along_x_and_along_the_rows(size):
    """The state, and statistics with several rows in each part of a plane."""
    case = SAMPLED["two arrays"]()
    case["domain"]["size"] = size
    case["body"][0]["shape"] |= {"centre": [20, 2.5, 1.5], "radius": 1.2}
    assert max(launch_shapes.launch_shape("cells", *size[:2], 0, 1)[0][:2]) > 1
    clusters = [Cluster(case, 1, device).start() for device in (None, EmulatedDevice)]
    for kind in KINDS:
        assert_same_statistics(clusters, kind)
    assert_same(*clusters)


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (700, 7), (293, 7), (2049, 1)])
@pytest.mark.parametrize("device", [None, EmulatedDevice], ids=["C", "CUDA"])
def test_rows_of_a_plane_are_added_in_their_order(device, rows, columns):
    """More rows than a block fetches at once; one column is a maximum."""
    (solver,) = Cluster(tables("D2Q9", "ab", "trt", "periodic", "single"), 1, device).solvers
    values = np.random.default_rng(4).standard_normal((6, rows, columns))
    made, found = solver.device.upload(values), solver.device.allocate(6 * columns, "float64")
    maxima = solver.device.upload(np.equal(np.arange(columns), 3).astype(np.int32))
    launch = solver.context.bind(
        "plane_sums", row_sums=made, sum=found, rows=rows, columns=columns, maxima=maxima
    )
    launch(solver.context.bulk, 0, 6)
    expected = np.cumsum(values, axis=1)[:, -1]
    if columns > 3:
        expected[:, 3] = np.maximum(values[:, :, 3].max(axis=1), 0)
    assert np.array_equal(solver.device.download(found).reshape(6, columns), expected)


@pytest.mark.parametrize("layout", ["aa", "moments"])
def test_faces_do_what_the_c_text_does(layout):
    """With a state, cells inwards and values that follow the time."""
    case = four_faces(NAMED.index("grad"), layout)
    case["boundary"][0]["rho"] = "1 + 0.01*sin(t)*x/nx"
    cpu = Cluster(case).start().run(3)
    assert_same(cpu, Cluster(case, 1, EmulatedDevice).start().run(3))
    cut = Cluster(case, 2, EmulatedDevice).restore(cpu.state(), 3, cpu.kept()).run(3)
    assert_same(cpu.run(3), cut)


@pytest.mark.parametrize("name", ["two arrays", "in place", "nodes"])
def test_forces_on_many_bodies_are_those_of_the_c_text(name):
    """Bit for bit; the sizes of chunks vary, and bodies of one list alternate along the rows."""
    case = FLOWS[name]()
    wall = case["body"][1]["boundary"]  # at rest
    boxes = [([x, 5 + x % 7], [x + 2, 6 + x % 7]) for x in range(12, 288, 9)]
    boxes.append(([12, 2], [290, 3]))  # several chunks in a plane
    boxes.append(([-1, 10.2], [1.4, 11.2]))  # at a periodic face
    shapes = [{"name": "box", "lower": lower, "upper": upper} for lower, upper in boxes]
    case["domain"]["size"] = [300, 14]
    case["body"] = case["body"][:1] + [{"shape": shape, "boundary": wall} for shape in shapes]
    clusters = [Cluster(case, 2, device).start() for device in (None, EmulatedDevice)]
    expected, found = (sample(each.run(3)) for each in clusters)
    assert np.array_equal(found, expected)
    assert np.abs(expected).max(axis=1).min() > 0
