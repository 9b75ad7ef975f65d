"""Kernels through OpenCL give the bits of the CPU backend, for each registered name.

Each layout and setting occurs on D2Q9 with the options of the package, and so does each
kind of wall; elsewhere the compiler does not optimise, as for kernels in C (conftest.py). Each
lattice and collision occurs once, and each pair of layout and precision on a lattice or on D2Q9.
PoCL takes more than a second to compile the kernels of a case, and the file more than a minute.
"""

import numpy as np
import pytest
from support import coupled, free_energy
from support.body_forces import rotor, sample
from support.faces import NAMES, closed, four_faces
from support.opencl import needs_opencl, open_device, open_unoptimised
from support.pairs import cover, label
from support.row_ends import CASES as ROW_ENDS
from support.row_ends import U
from support.sampled_flows import FLOWS, KINDS, sampled
from support.scalars import carried, flow, scalar_state, setting
from support.settings import DEVICE_CASES, defined, tables
from support.slabs import FIELDS, PRECISIONS, Cluster, assert_same
from support.walls import CENTRAL, QUADRATIC, rocks

from mpilbm.backends.gpu import launch as launch_shapes
from mpilbm.core.registry import make

pytestmark = needs_opencl()
# The emulation of CUDA runs these kernels in each pair of layout, setting and precision; OpenCL has
# its own prelude, which depends on the layout and the precision.
CASES = cover(DEVICE_CASES, ("layout", "precision"))
NAMES_ONCE = cover(CASES, ())
SMALL = [choice | {"lattice": "D2Q9"} for choice in CASES if choice not in NAMES_ONCE]
CASES = NAMES_ONCE + [choice for choice in SMALL if defined(choice)]
OPTIMISED = cover([choice for choice in CASES if choice["lattice"] == "D2Q9"], ())


@pytest.fixture(autouse=True)
def few_planes(monkeypatch):
    """Launches of few planes."""
    monkeypatch.setattr(launch_shapes, "GRID_LIMIT", 8)


@pytest.mark.parametrize("choice", CASES, ids=label)
def test_one_slab_and_two_are_those_of_a_cpu(choice):
    """After an odd and an even number of steps."""
    case, device = tables(**choice), open_device if choice in OPTIMISED else open_unoptimised
    cpu = Cluster(case).start().run(3)
    whole = Cluster(case, 1, device).start().run(3)
    assert_same(cpu, whole)
    cut = Cluster(case, 2, device).restore(cpu.state(), 3).run(3)
    assert_same(cpu.run(3), cut)


@pytest.mark.parametrize("first", range(0, len(NAMES), 4))
def test_faces(first):
    """Every boundary on one of the faces, with the values that it keeps."""
    case = four_faces(first, ("ab", "aa", "esopull", "indirect", "moments")[first // 4 % 5])
    if "rho" in case["boundary"][0]:
        case["boundary"][0]["rho"] = "1 + 0.01*sin(t)*x/nx"
    cpu = Cluster(case).start().run(3)
    assert_same(cpu, Cluster(case, 1, open_unoptimised).start().run(3))
    cut = Cluster(case, 2, open_unoptimised).restore(cpu.state(), 3, cpu.kept()).run(3)
    assert_same(cpu.run(3), cut)


@pytest.mark.parametrize(
    ("wall", "layout"),
    [(QUADRATIC, "aa"), (CENTRAL, "ab"), ({"name": "tamm_mott_smith"}, "indirect")],
)
def test_walls(wall, layout):
    """With a number for each link, and cells behind it."""
    case = rocks({"name": layout}, wall)
    case["boundary"][0]["name"] = "free_slip"
    cpu, found = Cluster(case).start().run(5), Cluster(case, 2, open_device).start().run(5)
    assert_same(cpu, found)


@pytest.mark.parametrize("name", ROW_ENDS)
def test_ends_of_rows(name):
    """Pairs of cells, and the last cell of an odd row alone."""
    size, boundary, more = ROW_ENDS[name]
    more = {"precision": PRECISIONS["single"]} | more
    case = closed("D2Q9", size, boundary, layout={"name": "ab"}, **U, **more)
    cpu, found = Cluster(case, 2), Cluster(case, 2, open_unoptimised)
    assert_same(cpu.start().run(3), found.start().run(3))


LINEAR = {"name": "shan_chen", "G": -1.0, "psi": "rho"}  # exp has other bits than that of a CPU
COUPLED = {
    "one fluid": lambda: coupled.one_fluid("D2Q9", coupling=LINEAR, **coupled.walled("D2Q9", None)),
    "two fluids": lambda: coupled.two_fluids("D3Q19", layout={"name": "esopull"}),
    "free energy": lambda: free_energy.waves("D2Q9"),
}


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_fluids(name):
    case = COUPLED[name]()
    cpu, found = Cluster(case).start().run(4), Cluster(case, 2, open_unoptimised).start().run(4)
    assert np.array_equal(coupled.state(found), coupled.state(cpu))
    fields = found.fields("rho", "u")
    for field, values in cpu.fields("rho", "u").items():
        assert np.array_equal(fields[field], values)


@pytest.mark.parametrize(
    ("layout", "boundary"), [("aa", "bounce_back"), ("moments", "bounce_back"),
                             ("ab", "interpolated"), ("indirect", "tamm_mott_smith")],
)  # fmt: skip
def test_forces_on_bodies(layout, boundary):
    case = rotor(layout, boundary)
    cpu, found = Cluster(case, 2).start().run(3), Cluster(case, 2, open_device).start().run(3)
    assert np.array_equal(sample(found), sample(cpu))


@pytest.mark.parametrize("name", ["two arrays", "moments", "nodes", "staggered", "two fluids"])
def test_statistics(name):
    """Sums of cells, columns and rows."""
    case, opencl = FLOWS[name](), open_device if name == "two arrays" else open_unoptimised
    for kind in KINDS:
        cpu, found = (Cluster(case, 2, device).start() for device in (None, opencl))
        for one, other in zip(sampled(found, kind, 2), sampled(cpu, kind, 2), strict=True):
            assert np.array_equal(*(each.read(0, each.planes) for each in (one, other))), kind


@pytest.mark.parametrize(
    ("lattice", "layout", "precision", "name"),
    [("D2Q9", "ab", "single", "walls"), ("D2Q9", "aa", "half", "buoyant"),
     ("D3Q19", "esopull", "double", "body")],
)  # fmt: skip
def test_scalars(lattice, layout, precision, name):
    case = flow(lattice, layout, precision, **setting(name, int(lattice[1])))
    case["scalar"] = [*case["scalar"], carried("c", source="-0.01*c*T")]
    cpu, found = Cluster(case).start().run(3), Cluster(case, 2, open_unoptimised).start().run(3)
    for scalar in "Tc":
        assert np.array_equal(scalar_state(found, scalar), scalar_state(cpu, scalar))
    assert_same(cpu, found, ("T", "c", "u"))


@pytest.mark.parametrize("layout", ["ab", "indirect"])
def test_flows_begin_as_on_a_cpu(layout):
    """With stresses, and an odd number of steps that hold the velocity."""
    case = tables("D2Q9", layout, "trt", "forced", "half")
    case["initial"] |= {"iterate": 3, "non_equilibrium": True}
    assert_same(Cluster(case).start(), Cluster(case, 2, open_unoptimised).start())


def test_fused_products_change_last_digits_only():
    case = tables("D2Q9", "ab", "trt", "periodic", "single")
    found = Cluster(case, 1, make("backends", "opencl").open).start().run(5)
    expected = Cluster(case).start().run(5)
    assert 0 < np.abs(found.state() - expected.state()).max() < 1e-6
    for name, values in expected.fields(*FIELDS).items():  # optional kernels: at their first use
        assert np.abs(found.fields(name)[name] - values).max() < 1e-6
