"""What follows the time reaches the device in the order of its work, and no host waits for that."""

from functools import partial

import numpy as np
import pytest
from support.faces import closed
from support.random_device import NcclWorld, RandomDevice
from support.slabs import Cluster

from mpilbm.solver.graph_replay import MARKS_AHEAD, STEPS_AHEAD
from mpilbm.solver.timed_values import TimedArray


class StillDevice(RandomDevice):
    """Does nothing until somebody waits for it, and counts who does; uploads wait, as on a GPU."""

    waits = 0

    def go_on(self):
        pass

    def run_until(self, done):
        self.waits += not done()
        super().run_until(done)

    def upload(self, array):
        self.stream("bulk").synchronize()
        return super().upload(array)


def flow(layout: str) -> dict:
    """An inlet, a wall beside it and an outlet, that all follow the time."""
    along = "0.05*(1 + 0.5*sin(t))"
    inlet = {"name": "zou_he", "where": ["y-"], "velocity": ["0.01*cos(t)", f"{along}*(1 + x/nx)"]}
    walls = {"name": "bounce_back", "where": ["x-", "x+"], "velocity": [0.0, along]}
    outlet = {"name": "regularized", "where": ["y+"], "rho": "1 + 0.001*sin(t/7)"}
    return closed("D2Q9", [6, 9], [walls, inlet, outlet], layout={"name": layout})


@pytest.mark.parametrize("layout", ["ab", "aa", "moments"])
def test_the_host_enqueues_steps_ahead_of_the_device(layout):
    expected = Cluster(flow(layout)).start().run(7)
    cluster = Cluster(flow(layout), 1, StillDevice).start()
    (device,) = (solver.device for solver in cluster.solvers)
    device.synchronize()
    device.waits = 0
    cluster.run(7)
    assert device.waits == 0
    assert len(device.stream("bulk").queue) > 7
    assert np.array_equal(cluster.state(), expected.state())
    steps = 5 * STEPS_AHEAD
    assert np.array_equal(cluster.run(steps).state(), expected.run(steps).state())


@pytest.mark.parametrize("count", [1, 2**24])
def test_each_step_finds_its_own_value(count):
    """Also where there is room for two alone."""
    device, seen = StillDevice(), []
    bulk, target = device.stream("bulk"), device.allocate(count, "float32")
    array = TimedArray(device, bulk, target, lambda t: np.float32(t))
    steps = (MARKS_AHEAD + 3) * STEPS_AHEAD if count == 1 else 4
    for t in range(steps):
        array.update(t)
        bulk.submit(lambda: seen.append(target[-1]))
    assert device.waits == (2 * STEPS_AHEAD if count == 1 else 2)
    device.synchronize()
    assert seen == list(range(steps))


@pytest.mark.parametrize("seed", [0, 1])
def test_no_value_is_overwritten_before_it_has_gone(seed):
    expected = Cluster(flow("esopull")).start().run(30)
    devices = partial(RandomDevice, seed)
    for cluster in (
        Cluster(flow("esopull"), 1, devices),
        Cluster(flow("esopull"), 2, devices, NcclWorld(2, 20)),
    ):
        assert np.array_equal(cluster.start().run(30).state(), expected.state())


class Careful(RandomDevice):
    """Has no pinned memory of no bytes."""

    def pinned(self, count, dtype):
        assert count > 0
        return super().pinned(count, dtype)


def test_ranks_without_cells_of_a_list_tell_nothing(tmp_path):
    """A list whose faces have values of each cell, or such that follow the time."""
    np.save(tmp_path / "u.npy", np.full((6, 2), [0.01, 0.0]))
    given = {"y-": str(tmp_path / "u.npy"), "y+": ["0.01*sin(t)", 0]}
    walls = [{"name": "bounce_back", "where": [k], "velocity": u} for k, u in given.items()]
    case = closed("D2Q9", [6, 9], [*walls, {"name": "full_way", "where": ["x-", "x+"]}])
    cluster = Cluster(case, 3, Careful, NcclWorld(3, 20)).start().run(5)
    assert np.array_equal(cluster.state(), Cluster(case).start().run(5).state())


@pytest.mark.parametrize(
    ("u", "settles"), [(0.05, 6), ("0.05*(1 + x/nx)", 6), ("0.05*(1 + 0.1*sin(t))", None)]
)
def test_values_are_copied_until_the_end_of_a_ramp(u, settles):
    """Of the wall itself and of what an outlet beside it knows; never if a formula has t."""
    wall = {"name": "interpolated", "where": ["y-"], "velocity": [u, 0.0], "ramp": 6}
    others = [{"name": "regularized", "where": ["x+"], "rho": 1.0}]
    others += [{"name": "bounce_back", "where": ["x-", "y+"]}]
    cluster = Cluster(closed("D2Q9", [7, 5], [wall, *others])).start()
    arrays = [each for each, _ in cluster.solvers[0].lists[0]._timed]
    assert len(arrays) == 2
    for step in range(14):
        before = [each._count for each in arrays]
        cluster.run(1)
        copied = settles is None or step <= settles  # t = step + 1/2
        assert [each._count - n for each, n in zip(arrays, before, strict=True)] == [copied] * 2


def test_values_before_the_end_of_a_ramp_are_copied_again():
    """After a solver has been resumed at an earlier time."""
    device, given = StillDevice(), []
    target = device.allocate(1, "float64")
    array = TimedArray(device, device.stream("bulk"), target, lambda t: given.append(t) or t, 5.0)
    for t in (3.5, 4.5, 5.5, 6.5, 2.5, 5.5, 7.5):
        array.update(t)
    assert given == [3.5, 4.5, 5.5, 2.5, 5.5]
