"""Steps of one launch that exchange their edge planes themselves, by `cuda_ipc`: the same bits.

More than 20 s: kernel texts in C++, and blocks of several ranks that wait for each other.
"""

import random
import time

import numpy as np
import pytest
from support.coupled import one_fluid
from support.emulated_device import command
from support.ipc_threads import PATIENCE, KernelDevice, World
from support.settings import tables
from support.slabs import Cluster

from mpilbm.backends.gpu import launch as launch_shapes
from mpilbm.core.errors import MpilbmError
from mpilbm.halo import Plan, ipc_kernel
from mpilbm.layouts.grid import Grid
from mpilbm.parallel.slabs import split

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
STEPS = 8


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few threads, but several blocks."""
    monkeypatch.setattr(ipc_kernel, "THREADS", 3)
    monkeypatch.setattr(ipc_kernel, "MOST_BLOCKS", 4)
    monkeypatch.setattr(ipc_kernel, "PATIENCE", PATIENCE)
    monkeypatch.setattr(launch_shapes, "block_shape", lambda nx, rows, threads=256: (2, 2, 1))


def flow(layout, setting="periodic", lattice="D2Q9", precision="single"):
    collision = "regularized" if layout == "moments" else "trt"
    return tables(lattice, layout, collision, setting, precision)


def cluster(case, ranks, device=KernelDevice):
    number = iter(range(ranks))
    return Cluster(case, ranks, lambda: device(next(number)), World(ranks)).start()


def joint(solver):
    """Whether the steps of a solver are joint."""
    return {each.exchange.joint is not None for work in solver.work for each in work.passes}


def recorded(solver, steps):
    """The work of a recording, as Solver.advance replays it."""
    solver._enqueue(steps)
    solver.steps += steps


def run(many, work):
    many.each(lambda solver: (work(solver), solver.device.synchronize()))
    return many.state()


CASES = [
    ("ab", "D2Q9", "single", 2),
    ("ab", "D3Q19", "single", 3),
    ("ab", "D3Q19", "half", 2),
    ("ab", "D2Q9", "double", 3),
    ("moments", "D2Q9", "single", 3),
    ("moments", "D3Q19", "half", 2),
]


@pytest.mark.parametrize(("layout", "lattice", "precision", "ranks"), CASES)
def test_joint_steps_have_the_bits_of_one_slab(layout, lattice, precision, ranks):
    case = flow(layout, "periodic", lattice, precision)
    whole = Cluster(case).start().run(STEPS).state()
    many = cluster(case, ranks)
    assert all(joint(solver) == {True} for solver in many.solvers)
    np.testing.assert_array_equal(run(many, lambda solver: recorded(solver, STEPS)), whole)


@pytest.mark.parametrize(
    ("layout", "setting", "precision"),
    [
        ("aa", "periodic", "single"),
        ("ab", "walls", "single"),
        ("ab", "through", "single"),
        ("moments", "periodic", "mixed_moments"),
    ],
)
def test_other_steps_are_not_joint(layout, setting, precision):
    """In place; boundary lists on all ranks, or on some; values of different widths."""
    case = flow(layout, setting, precision=precision)
    assert all(joint(solver) == {False} for solver in cluster(case, 3).solvers)


def test_steps_of_coupled_fluids_are_not_joint():
    case = one_fluid("D2Q9", layout={"name": "ab"})
    assert all(joint(solver) == {False} for solver in cluster(case, 2).solvers)


def test_all_ranks_are_joint_or_none():
    """A slab of one plane has the same edge plane at both faces."""
    case = flow("ab")
    planes = case["domain"]["size"][-1]
    many = cluster(case, planes // 2 + 1)
    assert {solver.slab.planes for solver in many.solvers} == {1, 2}
    assert all(joint(solver) == {False} for solver in many.solvers)


@pytest.mark.parametrize("spare", [0, -1])
def test_the_largest_slab_decides(spare, monkeypatch):
    """All ranks compare the bytes of a step of the largest slab with the limit."""
    case = flow("ab")
    solvers = Cluster(case, 3).solvers
    cells = [np.prod((each.slab.planes, *each.slab.shape[1:])) for each in solvers]
    assert len(set(cells)) > 1
    most = max(cells) * solvers[0].bytes_per_update + spare
    monkeypatch.setattr(ipc_kernel, "MOST_BYTES", most)
    assert all(joint(solver) == {spare == 0} for solver in cluster(case, 3).solvers)


@pytest.mark.parametrize(
    ("size", "shorter"),
    [
        ((128, 128, 32), True),
        ((128, 128, 64), True),
        ((192, 192, 48), False),
        ((192, 192, 96), False),
    ],
)
def test_joint_steps_are_those_measured_to_be_shorter(size, shorter):
    """Slabs of D3Q19 in float32, as measured on two H200."""
    nx, rows, planes = size
    grid = Grid.dense("f", planes, rows, nx, tuple(range(19)), 1)
    slab = split((2 * planes, rows, nx), 2, True)[0]
    step = ipc_kernel.JointStep(slab, Plan((), ()), None, grid, 4)
    assert (step.bytes_moved <= ipc_kernel.MOST_BYTES) is shorter


def test_timed_steps_between_joint_ones():
    case = flow("ab")
    whole = Cluster(case).start().run(STEPS).state()

    def work(solver):
        solver.times.every = 3
        for _ in range(STEPS):
            solver.step()

    np.testing.assert_array_equal(run(cluster(case, 3), work), whole)


class Slow(KernelDevice):
    """A device that rests before some of its operations, up to 2 ms."""

    def run_one(self):
        if self._random.random() < 0.05:
            time.sleep(2e-3 * self._random.random())
        return super().run_one()


def copies(solver, parts, offered):
    """The state after each part with its ghost planes, copied in the bulk stream."""
    device, kept = solver.device, []
    for each in (one for work in solver.work for one in work.passes):
        each.offered = offered
    for part in parts:
        recorded(solver, part)
        current = solver.fluids[0].current()["f"]
        kept.append(device.allocate(current.size, current.dtype))
        device.copy(kept[-1], current, device.stream("bulk"))
    device.synchronize()
    return np.concatenate(kept)


@pytest.mark.parametrize("seed", range(3))
def test_joint_steps_with_random_delays_are_right(seed):
    parts = [2 * random.Random(seed + k).randrange(1, 4) for k in range(15)]

    def states(offered):
        many = cluster(flow("ab"), 3, Slow)
        return np.concatenate(many.each(lambda solver: copies(solver, parts, offered)))

    np.testing.assert_array_equal(states(True), states(False))


@pytest.mark.parametrize("late", ["joint", "arrive"])
def test_a_neighbour_that_does_not_come_ends_the_wait(late, monkeypatch):
    """In the first joint step nothing is awaited; the second one, or what follows, awaits it."""
    monkeypatch.setattr(ipc_kernel, "PATIENCE", 0.2)
    many = cluster(flow("ab"), 2)
    first, _ = many.solvers

    def work():
        with first.exchanger:
            first.work[0].enqueue(followed=late == "joint")
            first.work[1].enqueue(followed=True)
            first.device.synchronize()

    with pytest.raises(MpilbmError, match=r"GPU of rank 1 did not send planes for 0\.2"):
        work()
