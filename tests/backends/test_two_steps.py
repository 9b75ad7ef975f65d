"""Two steps in one pass: their bits, and where they are used; CUDA text compiled for a CPU.

More than 20 s: texts of two steps on three lattices, in each precision, compiled in C++.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from support.coupled import two_fluids
from support.emulated_device import EmulatedDevice, command
from support.slabs import Cluster, box
from support.two_steps import (
    FILLED,
    FORCE,
    FORMULAS,
    Alone,
    Launcher,
    Recorder,
    moments,
    small_tiles,
    tile,
    two_are_faster,
    walled,
)

from mpilbm.backends import tuning
from mpilbm.backends.cuda import tiles
from mpilbm.backends.cuda.passes import PassLaunch, SweepLaunch
from mpilbm.backends.cuda.tiles import Tile
from mpilbm.solver import two_steps
from mpilbm.solver.two_steps import GROUP, TwoSteps

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    small_tiles(monkeypatch)


RECURSIVE = {"collision": {"name": "recursive_regularized"}}


@pytest.fixture
def faster(monkeypatch):
    two_are_faster(monkeypatch)


def advanced(case: dict, steps: int, device=Recorder) -> Cluster:
    """So many steps, two at a time where that is possible."""
    cluster = Cluster(case, 1, device, Alone()).start()
    (solver,) = cluster.solvers
    assert solver.two_steps
    solver.advance(steps)
    return cluster


@pytest.mark.parametrize(
    ("case", "shape"),
    [
        (moments(), tile(12, 8, 2)),
        (moments(size=(41, 9, 7)), tile(12, 8, 1, stages=2)),
        (moments(size=(34, 3, 2)), tile(12, 8, 2)),
        (moments(**FORCE), tile(16, 9, 2, stages=2, planes=3)),
        (moments(**FORMULAS), tile(16, 7, 2, planes=2)),
        (moments(precision="mixed"), tile(12, 8, 1)),
        (moments(precision="mixed_moments"), tile(12, 8, 2)),
        (moments(precision="half"), tile(12, 8, 2, planes=4)),
        (moments("D3Q15", "double"), tile(12, 8, 2)),
        (moments("D3Q27"), tile(12, 8, 2)),
        (moments(**RECURSIVE, **FORCE), tile(12, 8, 2)),
        (moments(body=[FILLED], **FORCE), tile(12, 8, 2)),
        (walled("x", size=(42, 10, 3)), tile(12, 8, 2)),
        (walled("y", size=(34, 9, 7)), tile(12, 8, 2)),
        (walled("yz", size=(20, 5, 11)), tile(12, 8, 2)),
        (walled("z", size=(20, 5, 7)), tile(12, 8, 2, planes=1)),
        (walled("xyz", size=(8, 4, 2)), tile(12, 8, 2)),
        (walled("xyz", size=(41, 9, 7)), tile(12, 8, 1, stages=2)),
        (
            walled("xz", precision="mixed_moments", body=[FILLED]),
            tile(16, 9, 2, stages=2, planes=3),
        ),
        (walled("y", precision="half", body=[FILLED]), tile(16, 9, 2, stages=2, planes=3)),
        (walled("xyz", "D3Q27", "half", **RECURSIVE, **FORMULAS), tile(12, 8, 2)),
        (walled("xyz", size=(34, 13, 15), body=[FILLED]), tile(12, 8, 2, planes=3)),  # all kinds
    ],
    ids=lambda value: "" if isinstance(value, dict) else str(value),
)
def test_the_bits_of_single_steps(case, shape, monkeypatch, faster):
    monkeypatch.setattr(tiles, "TWO_STEPS", (shape,))
    expected = Cluster(case, 1, EmulatedDevice).start()
    begin = expected.state()
    expected.run(GROUP)
    assert expected.solvers[0].context.kernels["collide_stream_0"].tile  # the sweep
    found = advanced(case, GROUP).state()
    assert not np.array_equal(begin, found)
    assert np.array_equal(found, expected.state())


@pytest.mark.parametrize("steps", [4, 7, 67])
def test_advance_has_the_bits_of_single_steps(steps, monkeypatch, faster):
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    case = moments(size=(10, 5, 3), **FORCE)
    cluster, groups = Cluster(case, 1, Recorder, Alone()).start(), []
    (solver,) = cluster.solvers
    enqueue = solver.two_steps.enqueue
    monkeypatch.setattr(solver.two_steps, "enqueue", lambda n: (groups.append(n), enqueue(n)))
    solver.advance(steps)
    assert sum(groups) == {4: 4, 7: 4, 67: 64}[steps]
    expected = Cluster(case, 1, EmulatedDevice).start().run(steps)
    assert np.array_equal(cluster.state(), expected.state())


def test_two_steps_begin_at_even_steps(monkeypatch, faster):
    """Also if the run stops at an odd step, and after a restart from one."""
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    case = moments(size=(10, 5, 3), **FORCE)
    cluster = Cluster(case, 1, Recorder, Alone()).start()
    (solver,) = cluster.solvers
    solver.advance(3)
    kept = solver.read_state("", 0, solver.slab.planes)
    solver.advance(8)
    expected = Cluster(case, 1, EmulatedDevice).start().run(11).state()
    assert np.array_equal(cluster.state(), expected)
    (again,) = Cluster(case, 1, Recorder, Alone()).solvers
    again.write_state("", 0, kept, 3)
    again.resume(3)
    again.advance(8)
    assert np.array_equal(again.read_state("", 0, again.slab.planes), expected)


BODY = {"shape": {"name": "sphere", "centre": [9, 4, 3], "radius": 2}}
BODY["boundary"] = {"name": "interpolated"}
OSCILLATING = {"force": {"name": "guo", "value": ["1e-4*sin(t)", 0, 0]}}


@pytest.mark.parametrize(
    ("case", "slabs", "device"),
    [
        (moments(**OSCILLATING), 1, Recorder),
        (moments(body=[BODY]), 1, Recorder),
        (moments("D2Q9", size=(12, 9)), 1, Recorder),
        (moments(size=(12, 9, 1)), 1, Recorder),
        (moments(**FORMULAS), 2, Recorder),
        (moments(size=(12, 9, 5)), 3, Recorder),
        (box("D3Q19"), 1, Recorder),
        (two_fluids("D3Q19"), 1, Recorder),
    ],
    ids=[
        "timed",
        "body",
        "2D",
        "plane",
        "z-on-ranks",
        "few-planes",
        "ab",
        "coupled",
    ],
)
def test_other_cases_take_single_steps(case, slabs, device, faster):
    world = Alone() if slabs == 1 else None
    for solver in Cluster(case, slabs, device, world).solvers:
        assert solver.two_steps is None


def test_where_single_steps_take_the_general_kernel(monkeypatch):
    """Its bits differ from those of the sweep, and the result would depend on the outputs."""
    monkeypatch.setattr(tiles, "CANDIDATES", (Tile(32, 4, 2, 1),))
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    (solver,) = Cluster(moments(size=(10, 5, 3), **FORCE), 1, Recorder, Alone()).solvers
    assert solver.context.kernels["collide_stream_0"].tile is None
    assert not TwoSteps.possible(solver.fluids)


def test_steps_that_are_not_recorded(monkeypatch, faster):
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    case = moments(size=(10, 5, 3), **FORCE)
    expected = Cluster(case, 1, EmulatedDevice).start().run(7).state()
    assert np.array_equal(advanced(case, 7, Launcher).state(), expected)


def test_the_faster_way_is_used(monkeypatch):
    """Four steps are two launches of two steps, or four of single steps."""
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    monkeypatch.setattr(two_steps, "SMALL", 0)
    monkeypatch.setattr(tuning, "_trial", lambda device, work, times: partial(timed, work))
    nothing = {"get": lambda *_: None, "put": lambda *_: None}  # no earlier measurement
    monkeypatch.setattr(tuning, "cache", SimpleNamespace(**vars(tuning.cache) | nothing))
    launched = []
    for kind in (SweepLaunch, PassLaunch):
        monkeypatch.setattr(kind, "__call__", lambda *args: launched.append(args))

    def timed(work):
        launched.clear()
        work()
        return seconds[len(launched)]

    for seconds in ({2: 1.0, 4: 2.0}, {2: 2.0, 4: 1.0}, {2: 1.0, 4: 1.0}):
        (solver,) = Cluster(moments(size=(10, 5, 3)), 1, Recorder, Alone()).solvers
        assert (solver.two_steps is not None) == (seconds[2] < seconds[4])


def test_small_boxes_take_single_steps():
    (solver,) = Cluster(moments(), 1, Recorder, Alone()).solvers
    assert solver.two_steps is None
    assert TwoSteps.possible(solver.fluids)
