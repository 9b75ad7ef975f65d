"""Where the time of a step goes: parts that add up, and a host that does not count its waiting."""

from types import SimpleNamespace

import pytest
from support.random_device import NcclWorld, RandomDevice
from support.slabs import Cluster, box

from mpilbm.solver.step_times import EVERY, StepTimes


class Event:
    def __init__(self, time):
        self.time = time

    def seconds_since(self, earlier):
        return self.time - earlier.time


class Stream:
    def record(self, timed):
        assert timed
        return Event(10.0)


def timing(**events):
    """StepTimes after some steps whose events come so many seconds after their beginning."""
    times = StepTimes(SimpleNamespace(stream=lambda _: Stream()))
    found = [Event(10 + events[name]) for name in ("ready", "done", "arrived")]
    for step in range(2 * EVERY):
        timed = times.begin(step, 0.0)
        times.end(found if timed else (), 0.0)
    return times


@pytest.mark.parametrize(
    ("ready", "done", "arrived", "bulk", "exchange", "hidden"),
    [
        (1, 4, 3, 3, 0, 1.0),  # the bulk takes longer than the exchange
        (1, 4, 6, 3, 2, 0.6),
        (2, 1, 6, 0, 4, 0.0),  # hardly any bulk
    ],
)
def test_parts_of_a_step(ready, done, arrived, bulk, exchange, hidden):
    times = timing(ready=ready, done=done, arrived=arrived)
    split = times.split
    assert (split["edge"], split["bulk"], split["exchange"]) == (ready, bulk, exchange)
    assert sum(split.values()) - split["host"] == max(done, arrived)
    assert times.hidden == pytest.approx(hidden)


def test_nothing_travels_nothing_is_hidden():
    assert timing(ready=1, done=4, arrived=1).hidden is None
    assert StepTimes(SimpleNamespace(stream=lambda _: Stream())).split is None


def test_a_rank_without_neighbours_has_no_exchange_to_hide():
    wall = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    closed = {"size": [40, 31], "periodic": [True, False]}
    cluster = Cluster(box("D2Q9", domain=closed, boundary=wall)).start()
    (times,) = (solver.times for solver in cluster.solvers)
    times.every = 3
    cluster.run(7)
    assert times.hidden is None
    assert times.split["bulk"] > 0 == times.split["exchange"]


@pytest.mark.parametrize("world", [None, NcclWorld(2)])
def test_steps_are_timed_on_slabs(world):
    device = RandomDevice if world else None
    cluster = Cluster(box("D2Q9", size=[40, 31]), 2, device, world).start()
    for solver in cluster.solvers:
        solver.times.every = 3
    cluster.run(7)
    for split, hidden in cluster.each(lambda s: (s.times.split, s.times.hidden)):
        assert set(split) == {"edge", "exchange", "bulk", "host"}
        assert split["edge"] > 0 < split["host"]
        assert 0 <= hidden <= 1
