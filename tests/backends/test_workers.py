"""Threads of a rank on a CPU: the same bits for any number of threads, and their shares."""

import gc
import json
import os
import threading
import weakref

import h5py
import numpy as np
import pytest
from support import coupled, settings
from support.body_forces import flow, rotor, sample
from support.runs import run_case
from support.sampled_flows import FLOWS, KINDS, sampled
from support.slabs import Cluster, box

from mpilbm.backends import cpu
from mpilbm.backends.cpu import Cpu, kernels, workers
from mpilbm.backends.cpu.workers import Workers, places, shares, too_many
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import names

THREADS = (2, 3)


@pytest.fixture
def divided(monkeypatch):
    """Divide even the smallest launches and arrays; yields the numbers of parts that ran."""
    ran, run = [], Workers.run

    def noted(self, works):
        ran.append(sum(work is not None for work in works))
        run(self, works)

    monkeypatch.setattr(kernels, "LEAST_ACCESSES", 1)
    monkeypatch.setattr(cpu, "LEAST_BYTES", 1)
    monkeypatch.setattr(Workers, "run", noted)
    return ran


def cluster(tables, threads, slabs=1):
    return Cluster(tables, slabs, open_device=Cpu(threads=threads).open).start()


CASES = {
    layout: lambda layout=layout: settings.tables("D3Q19", layout, "regularized", "walls", "single")
    for layout in names("layouts")
} | {
    "planes of a row": lambda: settings.tables("D2Q9", "aa", "bgk", "forced", "double"),
    "16 bits, inflow": lambda: settings.tables("D3Q19", "ab", "trt", "through", "half"),
    "staggered": lambda: settings.tables("D3Q13", "esopull", "mrt", "forced", "single"),
}


@pytest.mark.parametrize("name", CASES)
def test_threads_do_not_show(name, divided):
    tables = CASES[name]()
    one = cluster(tables, 1).run(7)
    expected, fields = one.state(), one.fields("rho", "u", "vorticity", "q_criterion")
    assert not divided
    for threads in THREADS:
        for slabs in (1, 2):
            many = cluster(tables, threads, slabs).run(7)
            assert max(divided) == threads
            assert np.array_equal(many.state(), expected)
            assert np.array_equal(many.sums()[1], one.sums()[1])
            for key, values in many.fields(*fields).items():
                assert np.array_equal(values, fields[key])


def test_threads_do_not_show_in_coupled_fluids(divided):
    tables = coupled.two_fluids("D2Q9")
    expected = coupled.state(cluster(tables, 1).run(5))
    for threads in THREADS:
        assert np.array_equal(coupled.state(cluster(tables, threads).run(5)), expected)
    assert max(divided) == max(THREADS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["two arrays", "nodes"])
def test_threads_do_not_show_in_statistics(name, kind, divided):
    def sums(threads):
        (kept,) = sampled(cluster(FLOWS[name](), threads), kind)
        return kept.read(0, kept.planes)

    expected = sums(1)
    for threads in THREADS:
        assert np.array_equal(sums(threads), expected)
    assert max(divided) == max(THREADS)


@pytest.mark.parametrize(
    "tables", [flow("D3Q19", layout={"name": "ab"}), rotor("aa")], ids=["3D", "2D"]
)
def test_threads_do_not_show_in_forces(tables, divided):
    def forces(threads):
        return sample(cluster(tables, threads).run(3))

    expected = forces(1)
    assert np.abs(expected).max() > 0
    for threads in THREADS:
        assert np.array_equal(forces(threads), expected)
    assert max(divided) == max(THREADS)


OUTPUTS = [
    {"name": "checkpoint", "every": 10, "keep": 2},
    {"name": "snapshot", "every": 10, "fields": ["rho", "u", "vorticity"]},
    {"name": "monitor", "every": 5},
    {"name": "statistics", "every": 2, "average": ["x"]},
    {"name": "body_forces", "every": 5},
]


def run_of(threads):
    tables = flow("D2Q9", layout={"name": "aa"}, output=OUTPUTS)
    backend = {"name": "cpu", "threads": threads}
    return parse_case(tables | {"run": {"steps": 20}, "backend": backend}, "test.toml")


def contents(folder) -> dict:
    """The numbers in the files of a run, without times and speeds."""
    found = {}
    for path in sorted(folder.rglob("*.h5")):
        with h5py.File(path) as file:

            def keep(name, item, path=path):
                if isinstance(item, h5py.Dataset):
                    found[path.name, name] = item[...].tobytes()

            file.visititems(keep)
    for path in sorted(folder.rglob("*.csv")):
        rows = path.read_text().splitlines()
        found[path.name] = [
            row.rpartition(",")[0] if path.stem == "monitor" else row for row in rows
        ]
    return found


def test_threads_do_not_show_in_files_and_restarts(tmp_path, divided):
    run_case(run_of(1), tmp_path / "one")
    expected = contents(tmp_path / "one")
    assert {"monitor.csv"} < expected.keys()
    for threads in THREADS:
        run_case(run_of(threads), tmp_path / f"{threads}")
        assert contents(tmp_path / f"{threads}") == expected
        again = tmp_path / f"{threads} again"
        checkpoint = tmp_path / "one" / "checkpoint_000000010.h5"
        run_case(run_of(threads), again, restart=checkpoint)
        last = {key: data for key, data in expected.items() if "000000020" in key[0]}
        found = contents(again)
        assert last
        assert {key: found[key] for key in last} == last
    assert max(divided) == max(THREADS)
    about = json.loads((tmp_path / "3" / "summary.json").read_text())
    assert ", 3 threads per rank, " in about["device"]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("planes", [(0, 1, 1), (1, 9, 1), (3, 20, 4), (0, 5, 2)])
def test_shares_cover_all_planes_in_order(planes, count):
    parts = [part for part in shares(*planes, count) if part]
    assert [plane for part in parts for plane in range(*part, planes[2])] == list(range(*planes))
    sizes = [len(range(*part, planes[2])) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_each_thread_has_its_own_work():
    team, where = Workers(3), [[], [], []]
    for _ in range(20):
        team.run([lambda k=k: where[k].append(threading.get_ident()) for k in range(3)])
    assert [len(set(one)) for one in where] == [1, 1, 1]
    assert where[0][0] == threading.get_ident()
    assert len({one[0] for one in where}) == 3
    team.run([None, None, lambda: where[2].append(0)])
    assert where[2][-1] == 0


def test_errors_of_threads_are_raised_after_all_have_ended():
    team, done = Workers(3), []

    def fails():
        raise ValueError("in a thread")

    for works in (
        [done.clear, fails, lambda: done.append(1)],
        [fails, None, lambda: done.append(2)],
    ):
        with pytest.raises(ValueError, match="in a thread"):
            team.run(works)
    assert done == [1, 2]


def test_a_limit_of_threads_is_reported(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(CaseError, match=r"backend.threads: 4 threads .* started 0 only"):
        Cpu(threads=4).open()


def test_threads_end_with_the_device_and_keep_no_arrays(divided):
    before = set(threading.enumerate())
    many = cluster(box("D2Q9"), 3)
    device = many.solvers[0].device
    memory = weakref.ref(many.solvers[0].fluids[0].f[0].base)
    mine = set(threading.enumerate()) - before
    assert len(mine) == 2
    many.run(3).state()
    many.solvers[0].exchanger.close()
    gc.collect()
    del many
    assert memory() is None
    del device
    for thread in mine:
        thread.join(10)
        assert not thread.is_alive()


def test_small_launches_and_arrays_stay_on_one_thread(monkeypatch):
    monkeypatch.setattr(Workers, "run", lambda *_: pytest.fail("divided"))
    cluster(box("D3Q19"), 3).run(2).state()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="requires Linux")
def test_all_threads_but_the_first_are_bound_to_their_place():
    own, found = workers.cores(), []
    team = Workers(2, [{own[0]}, {own[-1]}])
    team.run([None, lambda: found.append(os.sched_getaffinity(0))])
    assert found == [{own[-1]}]
    assert set(os.sched_getaffinity(0)) == set(own)  # files are written by threads of this one
    for free in (Workers(2), Workers(2, [set(), set()]), Workers(2, [set(), {10**4}])):
        free.run([None, lambda: found.append(os.sched_getaffinity(0))])
        assert found[-1] == set(own)


def test_threads_are_placed_next_to_a_memory(tmp_path):
    for node, cores in enumerate(("0-3,8-11", "4-7,12-15", "")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}/cpulist").write_text(cores + "\n")
    low, high = {0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}
    assert places(4, range(16), tmp_path) == [low, low, high, high]
    assert places(3, range(16), tmp_path) == [low, low, high]
    assert places(4, (2, 3, 4, 5), tmp_path) == [{2, 3}, {2, 3}, {4, 5}, {4, 5}]
    assert places(4, (2, 3, 8, 9), tmp_path) == [set()] * 4  # one memory
    assert places(5, (2, 3, 4, 5), tmp_path) == [set()] * 5  # too many threads
    assert places(2, (0, 1), tmp_path / "none") == [set()] * 2


def test_too_many_threads():
    assert too_many(1, 2, 8, 2) == ""  # a run without threads is not judged
    assert too_many(16, 16, 8, 128) == ""  # bound by the launcher
    assert too_many(16, 128, 8, 128) == ""  # not bound: they share the machine
    assert too_many(4, 0, 1, 0) == ""
    words = too_many(16, 128, 16, 128)
    assert "8 of the 128 cores" in words
    assert "backend.threads = 8" in words
    assert "1 of the 128 cores" in too_many(4, 1, 2, 128)


def test_pieces_run_at_the_same_time():
    team, both = Workers(2), threading.Barrier(2, timeout=20)
    team.run([both.wait, both.wait])  # raises if one waits for the end of the other
