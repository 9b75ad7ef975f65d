"""Checkpoints that are written while the steps go on: their content, and what a kill leaves."""

import errno
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from support.gate import Gate, at_step
from support.outputs_cases import make_context
from support.runs import flow, monitor, run_case, state
from support.settings import tables

from mpilbm.case.case import parse_case
from mpilbm.core.errors import FileSystemError
from mpilbm.core.files.file_digest import verify
from mpilbm.core.machine import cache
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.parallel import launcher
from mpilbm.storage.directory import existing

OUTPUTS = [{"name": "monitor", "every": 5}, {"name": "statistics", "every": 1}]


@pytest.fixture
def gate(monkeypatch):
    return Gate(monkeypatch)


def outlets(layout, **checkpoint):
    """Boundaries that keep values from step to step, and sums of samples."""
    made = tables("D2Q9", layout, "trt", "through", "single")
    made["boundary"][1] = {"name": "grad", "where": made["boundary"][1]["where"]}
    made["body"] = [
        {
            "shape": {"name": "sphere", "centre": [2.5, 6], "radius": 1.2},
            "boundary": {"name": "full_way"},
        }
    ]
    made |= {"run": {"steps": 25}, "backend": {"name": "cpu"}}
    made["output"] = [*OUTPUTS, {"name": "checkpoint", "every": 10, **checkpoint}]
    return parse_case(made, "outlets.toml")


@pytest.mark.parametrize("layout", ["ab", "aa", "indirect"])
def test_the_file_is_that_of_a_run_which_waits(tmp_path, monkeypatch, gate, layout):
    """Populations, values of boundaries and sums are those of its step, in the same bytes."""
    at_step(monkeypatch, 18, lambda solver: gate.open.set())
    run_case(outlets(layout), tmp_path / "behind")
    run_case(outlets(layout, background=False, read_back="disk"), tmp_path / "waiting")
    for name in ("checkpoint_000000020.h5", "checkpoint_000000025.h5"):
        found, expected = (datasets(tmp_path / way / name) for way in ("behind", "waiting"))
        groups = {name.split(".")[0] for name in found}
        assert groups == {"fluid/f", "solid", "statistics", "boundary"}
        assert found == expected


def datasets(path) -> dict:
    """The bytes of all datasets by name."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                found.update({name: item[()].tobytes()}) if isinstance(item, h5py.Dataset) else None
            )
        )
    return found


def test_one_checkpoint_at_a_time_and_older_ones_stay_until_it_has_its_name(tmp_path, gate):
    context = make_context(tmp_path)
    writer = Checkpoint(every=1, keep=1).open(context)
    gate.open.set()
    writer.write(1)
    context.background.settle(0)
    assert writer.seconds > 0
    gate.open.clear()
    writer.write(2)
    context.background.settle()
    assert [step for step, _ in existing(tmp_path)] == [1]
    gate.open.set()
    writer.write(3)
    assert [step for step, _ in existing(tmp_path)] == [2]
    context.background.settle(0)
    assert [step for step, _ in existing(tmp_path)] == [3]


def test_a_snapshot_that_fails_leaves_no_checkpoint_of_its_step(tmp_path, monkeypatch, gate):
    gate.open.set()
    gate.path, gate.error = "snapshot_000000020", errno.ENOSPC
    outputs = [{"name": name, "every": 10} for name in ("checkpoint", "snapshot")]
    with pytest.raises(FileSystemError, match="snapshot_000000020"):
        run_case(flow(100, outputs), tmp_path)
    assert [step for step, _ in existing(tmp_path)] == [10]
    assert not list(tmp_path.glob("*.partial"))


def test_the_disk_is_read_after_its_pages_have_left_memory(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "posix_fadvise", "preadv", "pwrite"):
        original = getattr(os, name)

        def noted(number, *rest, name=name, original=original):
            done.append(name)
            return original(number, *rest)

        monkeypatch.setattr(os, name, noted)
    context = make_context(tmp_path)
    Checkpoint(every=1, background=False, read_back="disk").open(context).write(1)
    assert done.index("fsync") < done.index("posix_fadvise") < done.index("preadv")
    done.clear()
    Checkpoint(every=1, background=False).open(context).write(2)
    assert "posix_fadvise" not in done


KILLED = """
import os, random, signal, sys, time
from support.runs import OUTPUTS, flow, run_case
from mpilbm.storage import planes
pwrite = os.pwrite

def slowly(number, data, offset):
    time.sleep(random.random() / 200)
    return pwrite(number, data, offset)

os.pwrite = slowly
planes.threads_write = lambda _: "in_turns"
run_case(flow(4000, OUTPUTS), {folder!r}, restart="auto")
"""


def test_a_kill_at_any_moment_leaves_complete_files_only(tmp_path):
    text = f"import sys; sys.path[:0] = {sys.path!r}\n" + KILLED.format(
        folder=str(tmp_path / "out")
    )
    environment = launcher.without_launcher() | {"MPILBM_CACHE_DIR": str(cache.directory())}
    reached, random = [], np.random.default_rng(4)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", text], env=environment, stderr=subprocess.DEVNULL
        )
        before, end = newest(tmp_path / "out"), time.monotonic() + 30
        while newest(tmp_path / "out") == before and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(random.random() / 20)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for _, path in existing(tmp_path / "out"):
            verify(path)
        for path in (tmp_path / "out").glob("snapshot_*.vtkhdf"):
            verify(path)
        reached.append(newest(tmp_path / "out"))
    assert sorted(set(reached)) == reached
    last = reached[-1] + 25
    run_case(flow(last), tmp_path / "out", restart="auto")
    run_case(flow(last), tmp_path / "whole")
    assert monitor(tmp_path / "out") == monitor(tmp_path / "whole")
    assert np.array_equal(state(tmp_path / "out", last), state(tmp_path / "whole", last))


def newest(folder) -> int:
    """The step of the newest checkpoint; 0 if there is none."""
    return max((step for step, _ in existing(folder)), default=0) if folder.is_dir() else 0
