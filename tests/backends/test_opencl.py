"""Kernels through OpenCL give the bits of the CPU backend, for each registered name.

Each layout, setting and precision occurs once, and a staggered lattice; lattices and collisions
have the same text for all devices. One case is compiled with the options of the package, elsewhere
the compiler does not optimise (support/opencl.py).

More than 20 s: PoCL takes three seconds or more to compile the kernels of a case.
"""

import numpy as np
import pytest
from support import coupled
from support.device_flows import COUPLED, FLOWS, assert_same_flow, assert_same_statistics, carrying
from support.faces import NAMES, closed, four_faces
from support.opencl import needs_opencl, open_device, open_unoptimised
from support.pairs import ALL_COMBINATIONS, cover, label
from support.row_ends import CASES as ROW_ENDS
from support.row_ends import U
from support.sampled_flows import FLOWS as SAMPLED
from support.sampled_flows import KINDS
from support.scalars import scalar_state
from support.settings import DEVICE_CASES, LAW_CASES, NAMES_ONCE, small, tables
from support.slabs import FIELDS, PRECISIONS, Cluster, assert_same

from mpilbm.backends.gpu import launch as launch_shapes
from mpilbm.core.registry import make

pytestmark = needs_opencl()
# The emulation of CUDA runs these kernels in each pair of layout, setting and precision. OpenCL has
# its own prelude: each of its macros occurs in one of the flows below.
FEW = cover([small(choice) for choice in LAW_CASES], ())
FEW += [choice for choice in NAMES_ONCE if choice["lattice"] in ("D3Q13", "D3Q19")]
CASES = DEVICE_CASES if ALL_COMBINATIONS else FEW


@pytest.fixture(autouse=True)
def few_planes(monkeypatch):
    """Launches of few planes."""
    monkeypatch.setattr(launch_shapes, "GRID_LIMIT", 8)


@pytest.mark.parametrize("choice", CASES, ids=label)
def test_one_slab_and_two_are_those_of_a_cpu(choice):
    """After an odd and an even number of steps."""
    case, device = tables(**choice), open_device if choice == CASES[0] else open_unoptimised
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
    assert_same_state(cpu, Cluster(case, 1, open_unoptimised).start().run(3))
    cut = Cluster(case, 2, open_unoptimised).restore(cpu.state(), 3, cpu.kept()).run(3)
    assert_same_state(cpu.run(3), cut)


def assert_same_state(expected: Cluster, found: Cluster) -> None:
    """Without fields and sums, whose kernels PoCL compiles in two seconds of each case.

    They do not depend on boundaries; the tests above and below compare them.
    """
    assert np.array_equal(found.state(), expected.state())
    kept = found.kept()
    for name, parts in expected.kept().items():
        assert all(map(np.array_equal, kept[name], parts)), name


@pytest.mark.parametrize("name", ["two arrays", "pulled", "nodes", "moments", "free bodies"])
def test_walls_forces_and_sums(name):
    """The start, and the state, fields, statistics, forces on bodies and flux of some steps.

    "free bodies" has the layout and the precision of the flow "in place", and all kernels but one
    of "moving bodies".
    """
    assert_same_flow(FLOWS[name](), open_unoptimised)


@pytest.mark.parametrize("name", ROW_ENDS if ALL_COMBINATIONS else list(ROW_ENDS)[:2])
def test_ends_of_rows(name):
    """Pairs of cells, and the last cell of an odd row alone."""
    size, boundary, more = ROW_ENDS[name]
    more = {"precision": PRECISIONS["single"]} | more
    case = closed("D2Q9", size, boundary, layout={"name": "ab"}, **U, **more)
    cpu, found = Cluster(case, 2), Cluster(case, 2, open_unoptimised)
    assert_same_state(cpu.start().run(3), found.start().run(3))


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_fluids(name):
    case = COUPLED[name]()
    cpu, found = Cluster(case, 2).start(), Cluster(case, 2, open_unoptimised).start()
    for kind in KINDS if cpu.case.needs.sampled else ():
        assert_same_statistics((cpu, found), kind)
    assert np.array_equal(coupled.state(found.run(1)), coupled.state(cpu.run(1)))
    fields = found.fields("rho", "u")
    for field, values in cpu.fields("rho", "u").items():
        assert np.array_equal(fields[field], values)


def test_statistics_of_planes_with_rows():
    """Sums of cells, columns and rows in three dimensions."""
    case = SAMPLED["two arrays"]()
    clusters = [Cluster(case, 2, opened) for opened in (None, open_unoptimised)]
    for each in clusters:
        each.start()
    for kind in KINDS:
        assert_same_statistics(clusters, kind)


def test_scalars():
    """The state and fields, the sums of samples, and the flux through planes; with buoyancy."""
    case = carrying("D2Q9", "aa", "half", "body")
    cpu, found = Cluster(case, 2).start().run(3), Cluster(case, 2, open_unoptimised).start().run(3)
    for scalar in "Tc":
        assert np.array_equal(scalar_state(found, scalar), scalar_state(cpu, scalar))
    assert_same(cpu, found, ("T", "c", "u"))
    for kind in KINDS:
        assert_same_statistics((cpu, found), kind)
    expected, values = (np.concatenate(each.each(transported)) for each in (cpu, found))
    assert np.array_equal(expected, values)


def transported(solver):
    """The sums of each plane for the transport of T."""
    return solver.transport.start(0)()


def test_fused_products_change_last_digits_only():
    case = tables("D2Q9", "ab", "trt", "periodic", "single")
    found = Cluster(case, 1, make("backends", "opencl").open).start().run(5)
    expected = Cluster(case).start().run(5)
    assert 0 < np.abs(found.state() - expected.state()).max() < 1e-6
    for name, values in expected.fields(*FIELDS).items():  # optional kernels: at their first use
        assert np.abs(found.fields(name)[name] - values).max() < 1e-6
