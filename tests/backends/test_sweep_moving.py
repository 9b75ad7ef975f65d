"""Bodies that move in the moment sweep: the flow of the generic kernel, by single steps and by two.

Single steps, two steps in one pass, recordings and several slabs have the same bits.

More than 20 s: as in test_sweep_bodies.py, and each case runs on one to three slabs.
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
    Alone,
    Recorder,
    moments,
    small_tiles,
    tile,
    two_are_faster,
    walled,
)

from mpilbm.backends.cuda import tiles
from mpilbm.backends.cuda.tiles import Tile
from mpilbm.solver.two_steps import TwoSteps

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
STEPS = 8
RECURSIVE = {"collision": {"name": "recursive_regularized"}}
IN_CELLS = {"name": "partially_saturated"}
# Crosses planes and periodic faces; the blade turns and swings through the planes of three slabs.
BALL = {"name": "sphere", "centre": [16.7, 4.4, 8.8], "radius": 1.4}
GOES = {"name": "translation", "velocity": [0.31, "0.2*sin(t/3)", 0.33]}
BLADE = {"name": "box", "lower": [6.2, 3.1, 5.3], "upper": [9.4, 5.2, 6.6]}
TURNS = {"name": "rotation", "rate": "0.06*cos(t/9)", "axis": [1, 2, 2]}
SIZE = (22, 12, 11)
WIDE = (42, 12, 11)  # tiles of 16-bit storage copy more cells of a row


@pytest.fixture(autouse=True)
def small(monkeypatch):
    small_tiles(monkeypatch)
    two_are_faster(monkeypatch)
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))


def body(label: str, shape: dict, motion: dict) -> dict:
    return {"label": label, "shape": shape, "motion": motion, "boundary": IN_CELLS}


MOVING = [body("mover", BALL, GOES), body("blade", BLADE, TURNS)]


def stepped(case: dict, slabs: int = 1) -> Cluster:
    """On emulated devices, by single steps of the sweep."""
    cluster = Cluster(case, slabs, EmulatedDevice).start()
    for solver in cluster.solvers:
        assert solver.context.kernels["collide_stream_0"].tile
    return cluster.run(STEPS)


def assert_flow(case: dict, found: Cluster, allowed: float) -> None:
    """That of the generic kernel; the bodies matter."""
    expected = Cluster(case).start().run(STEPS).fields("rho", "u")
    values = found.fields("rho", "u")
    for name, each in expected.items():
        assert np.abs(values[name] - each).max() < allowed
    still = [{key: each[key] for key in each if key != "motion"} for each in case["body"]]
    without = Cluster(case | {"body": still}).start().run(STEPS).fields("u")["u"]
    assert np.abs(without - values["u"]).max() > 0.01


def assert_bits(case: dict, expected: Cluster, slabs: tuple[int, ...] = (1, 2, 3)) -> None:
    """Those of passes of two steps on any number of slabs."""
    for count in slabs:
        cluster = Cluster(case, count, EmulatedDevice).start()
        assert all(solver.two_steps for solver in cluster.solvers)
        cluster.each(lambda solver: solver.advance(STEPS))
        assert np.array_equal(cluster.state(), expected.state())


@pytest.mark.parametrize(
    ("case", "allowed"),
    [
        (moments("D3Q19", "double", SIZE, body=[*MOVING, FILLED], **FORCE), 1e-14),
        (walled("y", "D3Q19", "double", SIZE, body=MOVING, **FORCE), 1e-14),
        (walled("z", "D3Q19", "half", WIDE, body=[MOVING[1], FILLED], **RECURSIVE), 1e-3),
        (moments("D3Q27", "mixed_moments", WIDE, body=MOVING), 3e-5),
    ],
    ids=["three", "channel", "lid", "D3Q27"],
)
def test_the_flow_of_the_generic_kernel(case, allowed):
    single = stepped(case)
    assert_flow(case, single, allowed)
    for slabs in (2, 3):
        assert np.array_equal(stepped(case, slabs).state(), single.state())
    assert_bits(case, single)


def test_two_dimensions(monkeypatch):
    monkeypatch.setattr(tiles, "CANDIDATES", (Tile(16, 1, 2, 1, cells=2, planes=3),))
    disc = {"name": "sphere", "centre": [9.3, 11.4], "radius": 2.4}
    goes = {"name": "translation", "velocity": [0.2, 0.3]}
    case = moments("D2Q9", "double", size=(42, 13), body=[body("disc", disc, goes)])
    single = stepped(case)
    assert_flow(case, single, 1e-14)
    assert np.array_equal(stepped(case, 2).state(), single.state())


@pytest.mark.parametrize("shape", [tile(12, 8, 1, stages=2), tile(16, 9, 2, stages=2, planes=3)])
def test_tiles(shape, monkeypatch):
    case = moments("D3Q19", "double", SIZE, body=MOVING, **FORCE)
    single = stepped(case)
    monkeypatch.setattr(tiles, "TWO_STEPS", (shape,))
    monkeypatch.setattr(tiles, "CANDIDATES", (Tile(16, 4, 2, 1, cells=2),))
    assert_bits(case, single, (1,))
    assert np.array_equal(stepped(case).state(), single.state())


def test_single_steps_between_passes_and_a_restart():
    """Shares between the steps of a pass are those of that time, whatever came before."""
    case = moments("D3Q19", "double", SIZE, body=MOVING, **FORCE)
    cluster = Cluster(case, 1, Recorder, Alone()).start()
    (solver,) = cluster.solvers
    assert solver.two_steps
    solver.advance(3)
    kept = solver.read_state("", 0, solver.slab.planes)
    for steps in (5, 1, 9, 14):
        solver.advance(steps)
    expected = Cluster(case, 1, EmulatedDevice).start().run(32)
    assert np.array_equal(cluster.state(), expected.state())
    (again,) = Cluster(case, 1, Recorder, Alone()).solvers
    again.write_state("", 0, kept, 3)
    again.resume(3)
    again.advance(29)
    assert np.array_equal(again.read_state("", 0, again.slab.planes), expected.state()[:])


def test_forces_between_passes():
    """Samples have the same bits as after single steps, and leave no trace."""
    driven = {"force": {"name": "guo", "value": DRIVING}, "output": [OUTPUT], "run": {"steps": 40}}
    case = moments("D3Q19", "double", SIZE, body=MOVING, **driven)
    found = []
    for slabs, two in ((1, False), (1, True), (3, True)):
        cluster = Cluster(case, slabs, EmulatedDevice).start()
        forces = []
        for _ in range(3):
            cluster.each(lambda s, two=two: s.advance(8) if two else [s.step() for _ in range(8)])
            forces.append(sample(cluster))
        found.append((cluster.state(), np.array(forces)))
    for state, forces in found[1:]:
        assert np.array_equal(state, found[0][0])
        assert np.array_equal(forces, found[0][1])
    assert np.abs(found[0][1][:, :, :3]).min() > 1e-7


def test_lists_at_faces_take_single_steps():
    ends = {"name": "equilibrium", "where": ["x-", "x+"], "velocity": [0.02, 0, 0]}
    domain = {"size": list(SIZE), "periodic": [False, True, True]}
    shape = BALL | {"centre": [12.3, 6.4, 8.8]}
    case = moments("D3Q19", "double", SIZE, body=[body("a", shape, GOES)], boundary=[ends])
    case["domain"] = domain
    single = stepped(case)
    (solver,) = single.solvers
    assert solver.two_steps is None
    assert TwoSteps.possible(solver.fluids) is None
    assert_flow(case, single, 1e-14)
    assert np.array_equal(stepped(case, 2).state(), single.state())


MIRRORS = {"name": "free_slip", "where": ["y-", "y+"]}


def between_mirrors(*bodies: dict, size=SIZE, **more) -> dict:
    """A channel with free slip at both sides."""
    case = moments("D3Q19", "double", size, body=list(bodies), boundary=[MIRRORS], **more)
    case["domain"] = {"size": list(size), "periodic": [True, False, True]}
    return case


def test_mirrors_beside_bodies_that_move():
    """The ball crosses such a face, the blade comes close to the other one."""
    case = between_mirrors(*MOVING, **FORCE)
    single = stepped(case)
    assert_flow(case, single, 1e-14)
    for slabs in (2, 3):
        assert np.array_equal(stepped(case, slabs).state(), single.state())
    assert_bits(case, single)
