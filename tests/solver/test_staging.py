"""Fields and populations that are copied behind the steps are those of the step of `start`."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.rocks import tables
from support.sampled_flows import FLOWS, KINDS, sampled
from support.slabs import Cluster, box

from mpilbm.backends import cpu, gpu
from mpilbm.backends.cpu.kernels import Stream
from mpilbm.case.case import parse_case
from mpilbm.core.units import in_words
from mpilbm.parallel.ranks import Serial
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run
from mpilbm.solver.fields import sources, staging

NAMES = ("vorticity", "u", "rho", "q_criterion")


class Slow(Stream):
    """Works only when somebody waits for it, as a device that is far behind."""

    def flush(self):
        pass


def own_memory(stream):
    """A device whose memory the host cannot access, with this kind of stream for copies."""

    def opened():
        device = cpu.Cpu().open()
        device.unified, device.new_stream = False, stream
        return device

    return opened


DEVICES = {"unified": None, "at once": own_memory(Stream), "later": own_memory(Slow)}


def solver_of(tmp_path, monkeypatch, layout="ab", device=None):
    """A solver of 11 planes; blocks of the size of one or two planes."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1)
    cluster = Cluster(tables(tmp_path, "D2Q9", {"name": layout}), 1, device).start()
    return cluster, cluster.solvers[0]


def few(memory, device=2, host=2, ahead=1):
    """Memory with so many blocks."""
    memory.on_device.most, memory.on_host.most, memory.ahead = device, host, ahead
    return memory


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
@pytest.mark.parametrize("layout", ["ab", "aa", "indirect"])
def test_steps_do_not_show_in_what_is_copied_behind_them(tmp_path, monkeypatch, layout, device):
    cluster, solver = solver_of(tmp_path, monkeypatch, layout, device)
    of_slab = solver.copies(3, 2**20)
    memory, copies = of_slab.staging, (of_slab.fields(NAMES), of_slab.state(""))
    for steps in (3, 4):  # the second time in memory that was used before
        cluster.run(steps)
        solver.prepare(NAMES)
        started = [
            (*piece, each.start(*piece))
            for each in copies
            for piece in each.blocks(solver.slab.planes)
        ]
        expected = solver.fields(NAMES, 0, solver.slab.planes)
        expected |= {"f": solver.read_state("", 0, solver.slab.planes)}
        cluster.run(3)
        for begin, end, piece in started:
            with piece as values:
                for name in values:
                    assert np.array_equal(values[name], expected[name][begin:end])
    assert (memory.on_host.made > 0) == (device is not None)
    assert memory.on_device.made == len(started)


@pytest.mark.parametrize("blocks", [{}, {"host": 4}, {"device": 5, "host": 9, "ahead": 2}])
@pytest.mark.parametrize("device", [DEVICES["unified"], DEVICES["at once"]], ids=["unified", "own"])
def test_little_memory_delays_the_steps_and_nothing_else(tmp_path, monkeypatch, device, blocks):
    """Two threads enter the pieces of two sources in order, in memory for a few of them."""
    _, solver = solver_of(tmp_path, monkeypatch, "aa", device)
    of_slab, found = solver.copies(1, 0), []
    memory, copies = few(of_slab.staging, **blocks), (of_slab.fields(NAMES), of_slab.state(""))

    def enter(begin, end, piece):
        with piece as values:
            found.append((begin, end, {name: values[name].copy() for name in values}))

    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            solver.prepare(NAMES)
            for each in copies:
                for piece in each.blocks(solver.slab.planes):
                    pool.submit(enter, *piece, each.start(*piece))
    expected = solver.fields(NAMES, 0, solver.slab.planes)
    expected |= {"f": solver.read_state("", 0, solver.slab.planes)}
    assert len(found) == 5 * sum(len(each.blocks(solver.slab.planes)) for each in copies)
    for begin, end, values in found:
        for name in values:
            assert np.array_equal(values[name], expected[name][begin:end])
    assert memory.on_device.made <= memory.on_device.most
    assert memory.on_host.made <= memory.on_host.most


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
@pytest.mark.parametrize("kind", KINDS)
def test_later_samples_do_not_show_in_sums_for_a_checkpoint(device, kind):
    cluster = Cluster(FLOWS["two arrays"](), 1, device).start()
    (kept,), (solver,) = sampled(cluster, kind, 2), cluster.solvers
    copies, expected = solver.copies(2, 2**20).sums(kept), kept.read(0, kept.planes)
    cuts = [(0, 2), (2, kept.planes)]
    pieces = [copies.start(*planes) for planes in cuts]
    for _ in range(2):
        cluster.run(1)
        kept.sample()
    for piece, planes in zip(pieces, cuts, strict=True):
        with piece as values:
            assert np.array_equal(values["sums"], expected[slice(*planes)])
    assert not np.array_equal(expected, kept.read(0, kept.planes))


@pytest.mark.parametrize("layout", ["ab", "moments", "indirect"])
@pytest.mark.parametrize("storage", ["float16", "float32"])
def test_the_plan_counts_the_blocks_of_all_outputs_once(tmp_path, monkeypatch, layout, storage):
    """Each holds a plane of populations, fields or statistics, whichever is the largest."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1)
    names = ("checkpoint", "snapshot", "statistics")
    more = {
        "layout": {"name": layout},
        "collision": {"name": "regularized"},
        "precision": {"storage": storage},
        "output": [{"name": name, "every": 2} for name in names],
    }
    case = parse_case(box("D3Q19", [7, 5, 6], run={"steps": 4}, **more), "test.toml")
    asked = []
    monkeypatch.setattr(
        cpu.CpuDevice,
        "require",
        lambda _, needed, what, first=False: asked.append(needed) if "files" in what else None,
    )
    run(case, Serial(), tmp_path / "out")
    (counted,) = [line.value for line in plan(case).sections["ranks"] if "files" in line.what]
    assert [in_words(needed if case.layout.dense else needed * 3 // 2) for needed in asked] == [
        counted
    ]


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
def test_memory_is_bounded_and_start_waits_for_it(tmp_path, monkeypatch, device):
    _, solver = solver_of(tmp_path, monkeypatch, device=device)
    of_slab = solver.copies(1, 0)
    memory = few(of_slab.staging)
    copies, most = of_slab.fields(("u",)), 2 if device is None else 4
    held = [copies.start(0, 1) for _ in range(most)]
    with held[0]:
        thread = threading.Thread(target=lambda: held.append(copies.start(0, 1)))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join(5)
    assert len(held) == most + 1
    assert memory.on_device.made == 2
    assert memory.on_host.made == most - 2


def test_memory_that_cannot_be_allocated_is_an_error_of_one_piece_only(tmp_path, monkeypatch):
    """Its memory is tried again: the other pieces arrive, and no thread waits forever."""
    _, solver = solver_of(tmp_path, monkeypatch, device=DEVICES["at once"])
    of_slab, failures = solver.copies(1, 0), [MemoryError()]
    memory, copies = few(of_slab.staging), of_slab.fields(("u",))
    pieces = [copies.start(0, 1), copies.start(1, 2)]
    pinned = memory.device.pinned

    def fails_once(*size):
        if failures:
            raise failures.pop()
        return pinned(*size)

    monkeypatch.setattr(memory.device, "pinned", fails_once)
    with pytest.raises(MemoryError), pieces[1]:
        pass
    expected = solver.fields(("u",), 0, 1)
    with pieces[0] as values:
        assert np.array_equal(values["u"], expected["u"])
    assert memory.on_host.made == 1


def test_a_block_holds_as_many_planes_as_fit(tmp_path, monkeypatch):
    _, solver = solver_of(tmp_path, monkeypatch)
    of_slab = solver.copies(1, 0)
    memory, copies = of_slab.staging, of_slab.state("")
    plane = solver.read_state("", 0, 1).nbytes
    memory.block_bytes = 4 * plane + staging.ALIGNMENT
    assert copies.blocks(11) == [(0, 4), (4, 8), (8, 11)]
    with pytest.raises(ValueError, match="bytes for a block of"):
        copies.start(0, 5)


def test_a_thread_that_waits_for_a_gpu_leaves_its_core_to_others(monkeypatch):
    """The main thread waits in the driver; other threads sleep between two polls."""

    class Point:
        polls = waits = 0

        @property
        def done(self):
            self.polls += 1
            return self.polls > 3

        def synchronize(self):
            self.waits += 1

    slept, wait, here, there = [], gpu.Waiting(), Point(), Point()
    monkeypatch.setattr(gpu.time, "sleep", slept.append)
    wait(here)
    thread = threading.Thread(target=wait, args=[there])
    thread.start()
    thread.join()
    assert (here.polls, here.waits) == (0, 1)
    assert (there.polls, there.waits) == (4, 0)
    assert slept == [gpu.LONG_PAUSE] * 3
