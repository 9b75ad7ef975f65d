"""Two steps in one pass on several slabs: the bits of single steps on one.

More than 20 s: each case runs three times on emulated devices, whose threads run one by one.
"""

import ctypes
import mmap

import numpy as np
import pytest
from support.emulated_device import Array, EmulatedDevice, command
from support.ipc_threads import PATIENCE, KernelDevice, World
from support.local_world import LocalExchange
from support.random_device import NcclWorld
from support.slabs import Cluster, assert_same
from support.two_steps import (
    FILLED,
    FORCE,
    FORMULAS,
    Alone,
    at_faces,
    edges_of_thick_slabs,
    moments,
    small_tiles,
    tile,
    two_are_faster,
    walled,
)

from mpilbm.backends import cuda
from mpilbm.backends.cuda import overlap, tiles
from mpilbm.case.case import parse_case
from mpilbm.halo import ipc_kernel
from mpilbm.parallel import slabs
from mpilbm.solver import two_steps
from mpilbm.solver.exchange_plan import ghost_planes
from mpilbm.solver.memory_plan import bytes_needed

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
SIZE = 10, 5, 7


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Two steps in one pass are faster; slabs of 12 planes have bulk planes."""
    small_tiles(monkeypatch)
    two_are_faster(monkeypatch)
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    monkeypatch.setattr(overlap, "parts", edges_of_thick_slabs)


def single(case, steps) -> Cluster:
    """One slab after so many single steps."""
    return Cluster(case, 1, EmulatedDevice).start().run(steps)


def advance(cluster, *parts) -> Cluster:
    assert all(solver.two_steps for solver in cluster.solvers)
    for steps in parts:
        cluster.each(lambda solver, steps=steps: solver.advance(steps))
    return cluster


@pytest.mark.parametrize(
    ("case", "count"),
    [
        (moments(size=SIZE, **FORCE), 2),
        (moments(size=SIZE, **FORCE), 3),
        (moments(size=(10, 5, 25), **FORCE), 2),
        (moments(size=(34, 5, 8), precision="mixed_moments"), 3),
        (moments(size=(14, 13, 7), body=[FILLED], **FORCE), 3),
        (walled("yz", size=(20, 5, 11), **FORMULAS), 3),
        (walled("y", size=(34, 9, 25)), 2),
    ],
    ids=["uneven", "fewest planes", "bulk planes", "mixed", "body", "walls across", "walls along"],
)
def test_the_bits_of_single_steps(case, count):
    """Groups after odd numbers of steps, after single steps and after another group."""
    found = advance(Cluster(case, count, EmulatedDevice).start(), 5, 3, 4, 8)
    assert_same(single(case, 20), found)


def behind_a_page(values: np.ndarray) -> np.ndarray:
    """A copy that begins where memory can be read, after a page that cannot."""
    memory = mmap.mmap(-1, mmap.PAGESIZE + values.nbytes)
    page = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    assert ctypes.CDLL(None).mprotect(page, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    copy = np.frombuffer(memory, values.dtype, values.size, mmap.PAGESIZE)
    copy[:] = values.ravel()
    return copy.view(Array)


@pytest.mark.parametrize("wall", ["partially_saturated", "bounce_back"])
def test_no_share_or_wall_is_read_before_the_first_plane(wall, monkeypatch):
    """The first planes of a pass are incomplete. Such an access ends the process."""
    monkeypatch.setattr(EmulatedDevice, "upload", lambda _, values: behind_a_page(values))
    body = FILLED | {"boundary": {"name": wall}}
    case = moments(size=(14, 13, 36), body=[body], **FORCE)
    advance(Cluster(case, 3, EmulatedDevice).start(), 8)


@pytest.mark.parametrize(("steps", "number"), [(7, 7), (12, 8)], ids=["odd", "as its last pass"])
def test_other_slabs_continue(steps, number):
    """A state, written as that of step `number` to slabs whose ghost planes hold one of step 8."""
    case = moments(size=SIZE, **FORCE)
    first = advance(Cluster(case, 2, EmulatedDevice).start(), steps)
    again = advance(Cluster(case, 3, EmulatedDevice).start(), 8)
    again.restore(first.state(), number)
    expected = single(case, steps + 9).state()
    assert np.array_equal(advance(again, 9).state(), expected)


def test_planes_are_exchanged_every_two_steps(monkeypatch):
    started = []
    start = LocalExchange.start
    monkeypatch.setattr(LocalExchange, "start", lambda *a: (started.append(a[0]), start(*a)))
    cluster = advance(Cluster(moments(size=SIZE), 2, EmulatedDevice).start())
    counts = []
    for steps in (4, 8, 1, 1, 4):
        started.clear()
        advance(cluster, steps)
        counts.append(len(started) / 2)
    assert counts == [3, 4, 1, 1, 3]  # one more after single steps


def test_no_slab_waits_while_they_are_connected(monkeypatch):
    """A slab that fails there leaves none waiting for its messages."""
    with monkeypatch.context() as patch:
        patch.setattr(LocalExchange, "start", lambda *_: pytest.fail("an exchange was started"))
        cluster = Cluster(moments(size=(14, 13, 7), body=[FILLED], **FORCE), 2, EmulatedDevice)
    assert all(solver.two_steps for solver in cluster.solvers)


def test_all_slabs_take_two_steps_or_none(monkeypatch):
    """One slab measures single steps to be faster."""
    case, ways = moments(size=SIZE, **FORCE), iter(["two steps", "single steps", "two steps"])
    expected = single(case, 8).state()
    monkeypatch.setattr(two_steps, "fastest_way", lambda *_: next(ways))
    cluster = Cluster(case, 3, EmulatedDevice).start()
    assert [bool(solver.faster) for solver in cluster.solvers] == [True, False, True]
    assert not any(solver.two_steps for solver in cluster.solvers)
    cluster.each(lambda solver: solver.advance(8))
    assert np.array_equal(cluster.state(), expected)


class Gpu(KernelDevice):
    """A GPU with the moment sweep, which enqueues again what it has recorded."""

    capability, shared_memory, records = 90, 227 * 1024, True
    two_steps, sweep_of = cuda.CudaDevice.two_steps, cuda.CudaDevice.sweep_of

    def recording(self, work):
        return work


ENDS = [{"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0, 0]},
        {"name": "characteristic", "where": ["x+"], "rho": 1.0}]  # fmt: skip


@pytest.mark.parametrize(
    ("world", "case"),
    [
        (World, moments(size=(10, 5, 5), **FORCE)),
        (World, moments(size=(10, 5, 24), **FORCE)),
        (NcclWorld, moments(size=(10, 5, 5), **FORCE)),
        (World, at_faces(ENDS, (12, 5, 24))),
        (NcclWorld, at_faces(ENDS, (12, 5, 5))),
    ],
    ids=["thin", "thick", "nccl", "faces", "faces, nccl"],
)
def test_exchanges_in_streams(world, case, monkeypatch):
    """By `cuda_ipc` or NCCL, in streams whose work runs in any order that their events allow."""
    monkeypatch.setattr(ipc_kernel, "THREADS", 3)
    monkeypatch.setattr(ipc_kernel, "MOST_BLOCKS", 4)
    monkeypatch.setattr(ipc_kernel, "PATIENCE", PATIENCE)
    number = iter(range(2))
    cluster = Cluster(case, 2, lambda: Gpu(next(number)), world(2)).start()
    advance(cluster, 8, 1, 6, 8)
    assert set(cluster.solvers[0].recordings._kept) == {8, 4, 2}
    cluster.each(lambda solver: solver.device.synchronize())
    assert np.array_equal(cluster.state(), single(case, 23).state())


@pytest.mark.parametrize("seed", range(3))
def test_windows_in_streams(seed):
    """Lists that read what mirrors stage, in any order that events allow."""
    mirrors = {"name": "free_slip", "where": ["y-", "y+"]}
    case = at_faces([*ENDS, mirrors], (12, 5, 5))
    found = Cluster(case, 1, lambda: Gpu(seed=seed), Alone()).start()
    advance(found, 8, 1, 6, 4)
    found.each(lambda solver: solver.device.synchronize())
    assert np.array_equal(found.state(), single(case, 19).state())


def test_ghost_planes_are_counted():
    """On devices with a kernel for two steps; others have one ghost plane."""
    case = moments(size=SIZE)
    for device, ghost in ((EmulatedDevice, 2), (None, 1)):
        for solver in Cluster(case, 2, device).solvers:
            assert solver.grid.ghost == ghost
    (whole,) = slabs.split(solver.case.shape, 1, True)
    for solver in Cluster(case, 2, EmulatedDevice).solvers:
        (fluid,) = solver.fluids
        counted = bytes_needed(solver.case, solver.slab)["populations"]
        assert counted == sum(array.nbytes for array in fluid.f)
    assert bytes_needed(solver.case, whole)["populations"] == 2 * (7 + 2) * 4 * (
        solver.grid.plane_stride
    )


def test_forces_of_cells_need_no_second_ghost_plane():
    """The sweep does not apply them, so no pass computes two steps."""
    force = {"force": {"name": "guo", "value": [np.zeros(SIZE[::-1]), 0, 0]}}
    case = parse_case(moments(size=SIZE, **force), "test.toml")
    slab, _ = slabs.split(case.shape, 2, True)
    assert ghost_planes(case, slab) == 1
