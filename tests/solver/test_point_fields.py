"""Fields at listed nodes have the bits of the complete fields, in all layouts and lattices."""

import shutil
import subprocess

import numpy as np
import pytest
from support.coupled import one_fluid, two_fluids, walled
from support.slabs import Cluster, box

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.codegen.program import POINTS
from mpilbm.outputs.images import filled
from mpilbm.solver.fields import point_fields
from mpilbm.solver.fields.point_fields import PointFields, PointSource
from mpilbm.solver.fields.staging import Staging

NVCC = shutil.which("nvcc")
BALL = {
    "label": "ball",
    "shape": {"name": "sphere", "centre": [3, 2.5, 5], "radius": 1.6},
    "boundary": {"name": "bounce_back"},
}
DISC = {
    "label": "disc",
    "shape": {"name": "sphere", "centre": [3, 5], "radius": 1.6},
    "boundary": {"name": "bounce_back"},
}
FORCE = {"name": "guo", "value": ["1e-4*sin(2*pi*y/ny)", 0, 2e-5]}
START = {"u": ["0.03*sin(2*pi*z/nz)", "0.02*cos(2*pi*x/nx)", 0.01]}
FLAT = {"u": ["0.03*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]}
FIELDS = ["rho", "u", "vorticity", "q_criterion"]


def in_layout(name, **more):
    return box("D3Q19", (6, 5, 11), layout={"name": name}, body=[BALL], initial=START, **more)


CASES = {name: in_layout(name) for name in ("ab", "aa", "esopull", "indirect")}
CASES |= {
    "moments": in_layout("moments", collision={"name": "regularized"}),
    "force": in_layout("ab", force=FORCE),
    "nodes with force": in_layout("indirect", force=FORCE),
    "half": in_layout("aa", precision={"storage": "float16"}),
    "2D": box("D2Q9", (7, 13), body=[DISC], initial=FLAT),
    "staggered": box("D3Q13", (6, 4, 12), collision={"name": "mrt"}, initial=START, body=[BALL]),
    "one fluid, two phases": one_fluid("D2Q9"),
    "two fluids": two_fluids("D3Q19") | walled("D3Q19"),
}


def with_probe(tables):
    """The tables with an output that needs all kernels of points."""
    points = [[1.5] * len(tables["domain"]["size"])]
    return tables | {"output": [{"name": "probe", "every": 1, "fields": FIELDS, "points": points}]}


def nodes_of(solver, seed=1):
    """Some nodes of a slab in no order, one of them twice."""
    planes, size = solver.slab.planes, solver.case.domain.size
    rows = size[1] if len(size) == 3 else 1
    every = np.stack(np.meshgrid(*map(range, (planes, rows, size[0])), indexing="ij"), axis=-1)
    every = np.random.default_rng(seed).permutation(every.reshape(-1, 3))
    return np.concatenate([every[: len(every) // 2], every[:1]])


def complete(solver, name):
    """A field at all nodes of a slab."""
    data = solver.fields((name,), 0, solver.slab.planes)[name]
    if not solver.case.lattice.staggered:
        return data
    x, y, *_ = solver.case.domain.periodic
    solid = solver.solid(0, solver.slab.planes)
    of = solver.case.lattice, data, solid, solver.slab.begin, (x, y), float(name == "rho")
    return filled(*of)[0]


def fields_of(case):
    return [*FIELDS, *(case.coupling.outputs(case) if case.coupling else ())]


@pytest.mark.parametrize("slabs", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_points_have_the_bits_of_the_fields(name, slabs):
    cluster = Cluster(with_probe(CASES[name]), slabs).start()
    names = fields_of(cluster.case)

    def compare(solver):
        nodes = nodes_of(solver)
        at = tuple(nodes.T)
        points = PointFields(solver.diagnostics, names, nodes)
        source = PointSource(solver.diagnostics, names, nodes)
        staging = Staging(solver.device, 1 << 16, 1 << 18, 1 << 18, 2)
        for _ in range(3):
            points.prepare()
            found = points.start()()
            half = len(nodes) // 2
            with staging.start(source, half, len(nodes)) as arrays:
                part = {key: value.copy() for key, value in arrays.items()}
            for each in names:
                expected = complete(solver, each)[at]
                assert found[each].tobytes() == expected.tobytes(), each
                assert part[each].tobytes() == expected[half:].tobytes(), each
            assert len(np.unique(found["u"])) > 4
            solver.step()
        if cluster.case.bodies and not cluster.case.lattice.staggered:
            assert np.array_equal(points.solid, solver.solid(0, solver.slab.planes)[at])
        return 1

    assert sum(cluster.each(compare)) == slabs


def test_derived_fields_are_computed_in_planes_with_points_alone(monkeypatch):
    """A run ends before a plane without points, and where the scratch memory is full."""
    diagnostics = Cluster(with_probe(CASES["2D"])).solvers[0].diagnostics
    nodes = [(plane, 0, x) for plane in (7, 0, 6, 1, 2) for x in (0, 6)]
    a_plane = 3 * 7 * diagnostics.dtype.itemsize
    for planes, wanted in ((9, [(0, 3), (6, 8)]), (2, [(0, 2), (2, 3), (6, 8)])):
        monkeypatch.setattr(point_fields, "SCRATCH_BYTES", planes * a_plane + 1)
        runs = PointFields(diagnostics, ["vorticity"], nodes)._runs
        assert [run.planes for run in runs] == wanted
        cells = [end - begin for begin, end in (run.cells for run in runs)]
        assert cells == [2 * (end - begin) for begin, end in wanted]


def test_kernels_of_derived_fields_at_points_exist_only_if_an_output_needs_them():
    """Those of density and velocity always do: each run samples them in its checks."""
    plain, probed = (
        {name for name in Cluster(tables).solvers[0].program.kernels if name.startswith("point_")}
        for tables in (CASES["2D"], with_probe(CASES["2D"]))
    )
    assert f"{POINTS}_0" in plain < probed


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
@pytest.mark.parametrize("name", ["moments", "nodes with force", "half", "staggered", "two fluids"])
def test_the_text_compiles_for_gpus(name, tmp_path):
    program = codegen.generate(parse_case(with_probe(CASES[name]), "test.toml"))
    texts = [text for kernel, text in program.bodies.items() if kernel.startswith("point_")]
    assert len(texts) >= 2
    source = tmp_path / "points.cu"
    source.write_text("\n".join([program.head, *texts]))
    options = ["-arch=sm_90", "-fmad=false", "--std=c++17", "-cubin"]
    command = [NVCC, *options, str(source), "-o", str(tmp_path / "points.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
