"""Half-way walls of bodies in the moment sweep: the flow of boundary lists, without lists.

Single steps, two steps in one pass, and several slabs have the same bits.

More than 20 s: each kind of body has texts of its own on D3Q19, in C, in C++ and of the sweep.
"""

import numpy as np
import pytest
from support.body_forces import FORCE as DRIVING
from support.body_forces import OUTPUT, sample
from support.emulated_device import EmulatedDevice, command
from support.slabs import Cluster
from support.two_steps import (
    FILLED,
    FORCE,
    moments,
    small_tiles,
    tile,
    two_are_faster,
    walled,
)

from mpilbm.backends.cuda import tiles
from mpilbm.backends.cuda.tiles import Tile

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
STEPS = 8
PRECISE = {"precision": {"compute": "float64", "storage": "float64", "offset": False}}
RECURSIVE = {"collision": {"name": "recursive_regularized"}}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    small_tiles(monkeypatch)
    two_are_faster(monkeypatch)
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))


def body(shape: dict, boundary="bounce_back", **more) -> dict:
    return {"shape": shape, "boundary": {"name": boundary} | more}


def ball(*centre, radius=2.4) -> dict:
    return {"name": "sphere", "centre": list(centre), "radius": radius}


def block(lower, upper) -> dict:
    return {"name": "box", "lower": lower, "upper": upper}


def periodic(*shapes, **more) -> dict:
    return moments("D3Q19", "double", body=[body(shape) for shape in shapes], **(FORCE | more))


def between_walls(*shapes) -> dict:
    """Walls along rows and planes, the last of which moves."""
    return walled("yz", "D3Q19", "double", body=[body(shape) for shape in shapes], **FORCE)


def stepped(case: dict, slabs: int = 1) -> Cluster:
    """On emulated devices, by single steps of the sweep without boundary lists."""
    cluster = Cluster(case, slabs, EmulatedDevice).start()
    for solver in cluster.solvers:
        assert solver.context.kernels["collide_stream_0"].tile
        assert not solver.lists[0].count
    return cluster.run(STEPS)


def assert_flow(case: dict, found: Cluster, allowed: float) -> None:
    """That of the generic kernel with boundary lists."""
    expected = Cluster(case).start()
    assert expected.solvers[0].lists[0].count
    values = found.fields("rho", "u")
    for name, each in expected.run(STEPS).fields("rho", "u").items():
        assert np.abs(values[name] - each).max() < allowed


def assert_bits(case: dict, expected: Cluster, slabs: tuple[int, ...] = (1, 2, 3)) -> None:
    """Those of passes of two steps on any number of slabs."""
    for count in slabs:
        cluster = Cluster(case, count, EmulatedDevice).start()
        assert all(solver.two_steps for solver in cluster.solvers)
        cluster.each(lambda solver: solver.advance(STEPS))
        assert np.array_equal(cluster.state(), expected.state())


@pytest.mark.parametrize(
    "case",
    [
        periodic(ball(9.3, 5.4, 3)),  # two slabs share it, and three
        periodic(ball(41.8, 8.7, 6.6)),  # at all periodic faces, in a block of 10 cells
        periodic(block([29, 2, 1], [33, 6, 5]), block([34, 2, 1], [39, 6, 5])),  # one cell apart
        periodic(block([0, 0, 0], [42, 9, 1]), ball(20, 4, 4, radius=1.4)),  # whole rows are solid
        between_walls(block([6, 0, 2], [10, 4, 5]), ball(20.4, 7.6, 5.2)),  # at walls and the lid
        between_walls(ball(33.1, 4.2, 3.3, radius=1.6)),  # near no wall, but its planes are
    ],
    ids=["ball", "seam", "gap", "rows", "walls", "channel"],
)
def test_the_flow_of_boundary_lists(case):
    single = stepped(case)
    assert_flow(case, single, 1e-14)
    assert np.array_equal(stepped(case, 2).state(), single.state())
    assert_bits(case, single)


@pytest.mark.parametrize(
    ("case", "allowed", "shapes"),
    [
        (moments("D3Q15", "single", body=[body(ball(9.3, 5.4, 3))]), 3e-6, ()),
        (
            moments("D3Q27", "mixed_moments", body=[body(ball(9.3, 5.4, 3))], **RECURSIVE),
            2e-5,
            (Tile(16, 4, 2, 1, cells=2),),
        ),
        (
            moments("D3Q19", "half", size=(42, 8, 7), body=[body(ball(9, 5, 3)), FILLED]),
            3e-4,
            (Tile(16, 16, 2, 1, cells=2, rows=2),),
        ),
    ],
    ids=["D3Q15", "D3Q27", "half"],
)
def test_lattices_precisions_and_tiles(case, allowed, shapes, monkeypatch):
    single = stepped(case)
    assert_flow(case, single, allowed)
    assert_bits(case, single, (2,))
    for shape in shapes:
        monkeypatch.setattr(tiles, "CANDIDATES", (shape,))
        assert np.array_equal(stepped(case).state(), single.state())


def test_two_dimensions(monkeypatch):
    monkeypatch.setattr(tiles, "CANDIDATES", (Tile(16, 1, 2, 1, cells=2, planes=3),))
    case = moments("D2Q9", "double", size=(42, 13), body=[body(ball(9.3, 12.4))])
    single = stepped(case)
    assert_flow(case, single, 1e-14)
    assert np.array_equal(stepped(case, 2).state(), single.state())


def test_bodies_with_other_walls_keep_their_lists():
    """Cells next to both are in lists, too; the others of the ball are not."""
    other = body(block([12, 3, 1], [15, 6, 4]), velocity=[0, 0.01, 0])
    case = moments("D3Q19", "double", body=[body(ball(9.3, 5.4, 3)), other], **FORCE)
    cluster = Cluster(case, 1, EmulatedDevice).start()
    (solver,) = cluster.solvers
    assert not solver.two_steps
    listed, everything = solver.lists[0].count, Cluster(case).solvers[0].lists[0].count
    assert 0 < listed < everything
    assert_flow(case, cluster.run(STEPS), 1e-14)
    assert np.array_equal(
        Cluster(case, 2, EmulatedDevice).start().run(STEPS).state(), cluster.state()
    )


def test_a_state_with_other_values_in_solid_cells():
    """Of a run with boundary lists, in which solid cells hold a flow."""
    case = periodic(ball(9.3, 5.4, 3))
    (lists,) = Cluster(case).start().run(4).solvers
    kept = lists.read_state("", 0, lists.slab.planes)
    assert np.abs(kept.transpose(0, 2, 3, 1)[lists.solid(0, 7)]).max() > 0.01
    found = [Cluster(case, 1, EmulatedDevice) for _ in range(2)]
    found[0].restore(kept, 4)
    found[1].restore(np.where(lists.solid(0, 7)[:, None], 0, kept), 4)
    states = [each.run(STEPS).state() for each in found]
    assert np.array_equal(*states)


def test_without_offset():
    """Solid cells then have the density 0, and divisions by it have no effect."""
    case = periodic(ball(9.3, 5.4, 3)) | PRECISE
    single = stepped(case)
    assert_flow(case, single, 1e-13)
    assert_bits(case, single, (2,))
    (solver,) = single.solvers
    state = solver.read_state("", 0, solver.slab.planes).transpose(0, 2, 3, 1)
    assert not state[solver.solid(0, solver.slab.planes)].any()


def momentum(cluster: Cluster) -> np.ndarray:
    columns, sums = cluster.sums()
    return sums.sum(axis=0)[[k for k, name in enumerate(columns) if name.startswith("momentum")]]


def test_bodies_get_the_momentum_that_the_fluid_loses():
    """p(t + 1) - p(t) = G V - F to rounding; the same bits on any number of slabs."""
    shapes = ball(9.3, 5.4, 3), block([29, 0, 1], [33, 3, 5])
    driven = {"force": {"name": "guo", "value": DRIVING}, "output": [OUTPUT]}
    case, found = periodic(*shapes, **driven), []
    for slabs in (1, 3):
        cluster = Cluster(case, slabs, EmulatedDevice).start()
        cells = sum(int(each.geometry.fluid_cells.sum()) for each in cluster.solvers)
        cluster.run(2)
        before = momentum(cluster)
        found.append(sample(cluster))
        gained = momentum(cluster.run(1)) - before
        lost = np.array(DRIVING) * cells - gained
        np.testing.assert_allclose(found[-1][:, :3].sum(axis=0), lost, rtol=0, atol=1e-13)
        assert np.abs(found[-1]).min() > 1e-6
    assert np.array_equal(*found)
