"""Steps that are played again from a recording are those enqueued one by one."""

from functools import partial

import numpy as np
import pytest
from support.body_forces import flow, sample
from support.coupled import one_fluid, state, two_fluids
from support.random_device import Event, NcclWorld, RandomDevice
from support.slabs import Cluster, box

from mpilbm.backends.cuda import launch as cuda_graph
from mpilbm.halo import Exchanger
from mpilbm.halo.local import alone
from mpilbm.solver.graph_replay import LENGTHS

STEPS = LENGTHS[0] + LENGTHS[1] + 1
SHORT = LENGTHS[3]


class Recorder(RandomDevice):
    """Records calls of streams with their arrays and numbers at that time; counts replays."""

    records = True

    def __init__(self):
        super().__init__()
        self.recorded, self.played = 0, 0

    def recording(self, work):
        self.recorded += 1
        tape = []
        for stream in self._streams.values():
            stream.submit = partial(self._taped, tape, stream)
        work()
        for stream in self._streams.values():
            del stream.submit
        return partial(self._play, tape)

    def _taped(self, tape, stream, work, blocked=lambda: False):
        tape.append((stream, work, blocked))

    def _play(self, tape):
        self.played += 1
        self.synchronize()  # as a graph begins when it has ended
        for _, work, _ in tape:
            if isinstance(event := getattr(work, "__self__", None), Event):
                event.time = None
        for stream, *what in tape:
            stream.submit(*what)


class Alone:
    """One slab, its own neighbour."""

    def exchanger(self, rank, slab, device):
        return alone(slab, device)


def advanced(case, slabs=1, world=None, steps=STEPS):
    world = world or (Alone() if slabs == 1 else None)
    cluster = Cluster(case, slabs, Recorder, world).start()
    cluster.each(lambda solver: solver.advance(steps))
    return cluster


WALLS = [{"name": "bounce_back", "where": ["y-", "y+"]}]
PERIODIC = {
    layout: box("D2Q9", layout={"name": layout}) for layout in ("ab", "aa", "esopull", "indirect")
}
WALLED = box("D2Q9", domain={"size": [5, 7], "periodic": [True, False]}, boundary=WALLS)


@pytest.mark.parametrize("case", [*PERIODIC.values(), WALLED], ids=[*PERIODIC, "walls"])
def test_advance_is_so_many_steps(case):
    one_by_one = Cluster(case).start().run(STEPS)
    played = advanced(case)
    (solver,) = played.solvers
    assert solver.steps == STEPS
    assert (solver.device.recorded, solver.device.played) == (2, 2)
    np.testing.assert_array_equal(played.state(), one_by_one.state())


def test_slabs_whose_messages_are_in_streams():
    case = box("D2Q9", size=[5, 13])
    played = advanced(case, 2, NcclWorld(2))
    assert all(solver.device.played for solver in played.solvers)
    np.testing.assert_array_equal(played.state(), Cluster(case).start().run(STEPS).state())


PUSHED = two_fluids("D2Q9")
PUSHED["fluid"][0]["force"]["value"] = ["1e-3*sin(2*pi*y/ny)", 1e-4]


@pytest.mark.parametrize("case", [one_fluid("D2Q9"), PUSHED], ids=["one", "two"])
def test_coupled_fluids(case):
    played = advanced(case, steps=LENGTHS[1] + 1)
    assert played.solvers[0].device.played == 1
    np.testing.assert_array_equal(state(played), state(Cluster(case).start().run(LENGTHS[1] + 1)))


@pytest.mark.parametrize("slabs", [1, 2])
@pytest.mark.parametrize(
    "case", [box("D2Q9", size=[5, 13], layout={"name": "aa"}), one_fluid("D2Q9")]
)
def test_who_looks_between_changes_nothing(case, slabs):
    def looked(solver):
        for steps in (2 * SHORT, 1, SHORT + 1, SHORT):
            solver.advance(steps)
            solver.sums()
            solver.fields(("rho", "u", "vorticity"), 0, solver.slab.planes)
            solver.read_state(label, 0, solver.slab.planes)
            solver.state.look()

    world = NcclWorld(slabs) if slabs > 1 else Alone()
    played = Cluster(case, slabs, Recorder, world).start()
    label = played.solvers[0].fluids[0].field.label
    played.each(looked)
    assert all(solver.device.played == 3 for solver in played.solvers)
    steps = Cluster(case).start().run(4 * SHORT + 2)
    np.testing.assert_array_equal(state(played), state(steps))


def test_begins_where_the_period_begins():
    played = Cluster(PERIODIC["aa"], 1, Recorder, Alone()).start().run(1)
    played.each(lambda solver: solver.advance(LENGTHS[1] + 2))
    assert played.solvers[0].device.played == 1
    steps = Cluster(PERIODIC["aa"]).start().run(LENGTHS[1] + 3)
    np.testing.assert_array_equal(played.state(), steps.state())


def moving_bodies(**more) -> dict:
    """A disc that crosses faces and a bar that turns."""
    shapes = {
        "disc": {"name": "sphere", "centre": [6.7, 2.4], "radius": 2.3},
        "bar": {"name": "box", "lower": [14.0, 6.1], "upper": [18.2, 8.0]},
    }
    motions = {
        "disc": {"name": "translation", "velocity": ["0.05*sin(t/30)", 0.14]},
        "bar": {"name": "rotation", "rate": "0.04*cos(t/9)"},
    }
    bodies = [
        {"label": label, "shape": shape, "motion": motions[label], "boundary": IN_CELLS}
        for label, shape in shapes.items()
    ]
    return flow("D2Q9", size=[24, 17], body=bodies, run={"steps": 190}, **more)


IN_CELLS = {"name": "partially_saturated"}


@pytest.mark.parametrize("layout", ["ab", "aa", "moments"])
def test_bodies_that_move(layout):
    """Forces are sampled between recordings; the program goes on after the last step of the case.

    A recording has no motions in it: the second one of the same length is played again.
    """
    case, n = moving_bodies(layout={"name": layout}), LENGTHS[0]
    played, steps = Cluster(case, 1, Recorder, Alone()).start(), Cluster(case).start()
    (solver,) = played.solvers
    for count in (n + 2, 6, 2 * n, 3):
        solver.advance(count)
        steps.run(count)
        np.testing.assert_array_equal(played.state(), steps.state())
        np.testing.assert_array_equal(sample(played), sample(steps))
    assert solver.device.recorded < solver.device.played


WAVE = "1e-5*sin(t/9)"
TIMED = {
    "force": WALLED | {"force": {"name": "guo", "value": [WAVE, 0]}},
    "wall": WALLED | {"boundary": [WALLS[0] | {"velocity": [f"10*{WAVE}", 0]}]},
}


@pytest.mark.parametrize("case", TIMED.values(), ids=TIMED)
def test_what_follows_the_time_is_not_recorded(case):
    played = advanced(case, steps=20)
    assert not played.solvers[0].device.recorded
    np.testing.assert_array_equal(played.state(), Cluster(case).start().run(20).state())


def test_all_ranks_record_or_none():
    """NCCL asks for that; the wall that moves is the first slab's, the second touches none."""
    played = advanced(TIMED["wall"], 3, NcclWorld(3), steps=20)
    assert not any(solver.device.recorded for solver in played.solvers)


def test_what_the_host_takes_part_in_is_not_recorded():
    played = advanced(box("D2Q9", size=[5, 13]), slabs=2, steps=20)
    assert not any(solver.device.recorded for solver in played.solvers)


def test_some_steps_are_timed():
    (solver,) = advanced(WALLED, steps=1000).solvers
    assert set(solver.times.split) == {"edge", "exchange", "bulk", "host"}
    assert solver.times.split["host"] > 0


def test_recordings_are_dropped_before_exchanges():
    class Held:
        def free(self):
            assert not exchanger.recordings

    exchanger = Exchanger(lambda plan, arrays: Held())
    exchanger.prepare(None, ())
    exchanger.recordings[8] = "a graph that holds its messages"
    exchanger.close()


class Runtime:
    """The calls of CUDA's runtime in their order."""

    streamCaptureModeRelaxed = "relaxed"  # noqa: N815

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            return 5

        return call


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_a_graph_is_captured_and_launched(error, monkeypatch):
    monkeypatch.setattr(cuda_graph, "instantiate", lambda captured: 10 * captured)

    def work():
        runtime.calls.append("work")
        if error:
            raise error

    runtime = Runtime()
    begin = [("streamBeginCapture", 3, "relaxed"), "work", ("streamEndCapture", 3)]
    if error:
        with pytest.raises(error):
            cuda_graph.CudaGraph(runtime, 3, work)
        assert runtime.calls == begin
        return
    graph = cuda_graph.CudaGraph(runtime, 3, work)
    graph()
    del graph
    launched = [("graphDestroy", 5), ("graphLaunch", 50, 3), ("graphExecDestroy", 50)]
    assert runtime.calls == begin + launched
