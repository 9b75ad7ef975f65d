"""A run that is killed when a checkpoint has its name: all that was due before is on the disk."""

import os
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from support.runs import flow, monitor, run_case

import mpilbm
from mpilbm.backends.cpu import compiler
from mpilbm.core.machine import cache
from mpilbm.outputs.core.tables import read
from mpilbm.storage.directory import existing

KINDS = [
    {"name": "picture", "every": 10},
    {"name": "snapshot", "every": 10},
    {"name": "snapshot", "every": 10, "label": "small", "compression": "gzip"},
    {"name": "line", "every": 10, "from": [0, 2.5], "to": [7, 2.5]},
    {"name": "monitor", "every": 5},
    {"name": "probe", "every": 2, "points": [[3, 3]]},
    {"name": "probe", "every": 2, "points": [[3, 3]], "format": "csv", "label": "rows"},
    {"name": "spectrum", "every": 5},
    {"name": "statistics", "every": 2, "write": 10, "average": ["x"]},
    {"name": "higher_moments", "every": 2, "write": 10, "average": ["x"]},
    {"name": "checkpoint", "every": 10},
]
STEPS, KILLED = 30, 20

# The thread that draws waits for the checkpoint of its step, or until that waits for the picture.
CHILD = """
import os, signal, sys, threading
from pathlib import Path
from mpilbm.backends.cpu import compiler
from mpilbm.outputs.checkpoint import CheckpointWriter
from mpilbm.outputs.picture import PictureWriter
from mpilbm.storage.partial_file import PartialFile

compiler.FLAGS = {flags!r}
from support.runs import flow, run_case
publish, save, sync = PartialFile.publish, PictureWriter._save, CheckpointWriter._sync_rows
last = threading.Event()

def published(file):
    publish(file)
    if file.path.name == "checkpoint_{killed:09d}.h5":
        os.kill(os.getpid(), signal.SIGKILL)

def saved(writer, step, *given):
    if step == {killed}:
        last.wait()
        threading.Event().wait(0.5)
    save(writer, step, *given)

def synced(writer):
    if writer.step == {killed} or writer.context.solver.steps >= {killed}:
        last.set()
    sync(writer)

PartialFile.publish, PictureWriter._save, CheckpointWriter._sync_rows = published, saved, synced
run_case(flow({steps}, {kinds!r}), Path({out!r}))
"""


def child(**values):
    text = CHILD.format(flags=compiler.FLAGS, kinds=KINDS, steps=STEPS, killed=KILLED, **values)
    environment = os.environ | {
        "MPILBM_CACHE_DIR": str(cache.directory()),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.run([sys.executable, "-c", text], env=environment, timeout=200).returncode


def numbers(path):
    """All datasets of an HDF5 file."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: found.update({name: item[...]} if hasattr(item, "shape") else {})
        )
    return found


def content(path):
    """The part of a file that does not depend on times of the machine."""
    if path.name in ("summary.json", "monitor.csv.digests"):
        return ""
    if path.name == "monitor.csv":
        return monitor(path.parent)
    return path.read_bytes()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    out = tmp_path_factory.mktemp("killed") / "out"
    assert child(out=str(out)) == -signal.SIGKILL
    assert existing(out)[-1][0] == KILLED
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    run_case(flow(STEPS, KINDS), out)
    return out


def step_of(path):
    """The step in the name of a file; 0 without one."""
    return int((re.findall("_([0-9]{9})", path.name) or [0])[-1])


def test_all_files_of_earlier_steps_are_there_after_a_kill(killed, whole):
    found = {path.name for path in killed.iterdir()}
    due = {path.name for path in whole.iterdir() if step_of(path) <= KILLED}
    assert due <= found
    assert sum(name.startswith("picture") for name in due) == KILLED // 10
    assert (read(killed / "probe_5.h5")["step"][: KILLED // 2] == np.arange(2, KILLED + 1, 2)).all()
    assert f"\n{KILLED}," in (killed / "probe_rows.csv").read_text()


def test_a_checkpoint_of_a_program_has_all_outputs_before_it(tmp_path):
    """Also rows that the device may still compute, and the picture that is being drawn."""
    outputs = [{"name": "picture", "every": 4}, {"name": "monitor", "every": 1}]
    found = []

    def save(sim):
        sim.checkpoint(tmp_path / "state.h5")
        rows = monitor(tmp_path / "out")[1:]
        pictures = sorted(map(step_of, (tmp_path / "out").glob("*.png")))
        found.append((sim.step, len(rows) - 1, pictures[-1]))

    with mpilbm.Simulation(flow(12, outputs), directory=tmp_path / "out") as sim:
        sim.run(every=4, call=save)
    assert found == [(4, 4, 4), (8, 8, 8), (12, 12, 12)]


def test_a_restart_leaves_the_files_of_a_run_that_was_not_killed(killed, whole):
    run_case(flow(STEPS, KINDS), killed, restart="auto")
    expected = {path.name: path for path in whole.iterdir()}
    found = {path.name: path for path in killed.iterdir()}
    assert found.keys() == expected.keys()
    for name in found:
        if content(found[name]) != content(expected[name]):
            assert h5py.is_hdf5(found[name]), name
            mine, other = numbers(found[name]), numbers(expected[name])
            assert all(np.array_equal(mine[key], other[key]) for key in other), name


FALLING = """
[lattice]
name = "D2Q9"

[domain]
size = [24, 40]
periodic = [true, false]

[fluid]
viscosity = 0.1

[[boundary]]
name = "bounce_back"
where = ["y-", "y+"]

[[body]]
label = "seed"
shape = {name = "tilted_ellipsoid", centre = [11.3, 30.2], radii = [5, 3], rotate = [0, 0, 30]}
boundary = {name = "partially_saturated"}
motion = {name = "free", density = 1.5, gravity = 5e-4}

[backend]
name = "cpu"

[run]
steps = 240

[[output]]
name = "body_forces"
every = 10

[[output]]
name = "checkpoint"
every = 20
"""


def test_a_body_that_moves_freely_continues_after_a_kill(tmp_path):
    """A run that is killed after its second checkpoint gives the bits of a whole run."""
    case = tmp_path / "falling.toml"
    case.write_text(FALLING)
    start = f"from mpilbm.backends.cpu import compiler; compiler.FLAGS = {compiler.FLAGS!r}; "
    start += "from mpilbm.cli import main; main()"
    environment = os.environ | {
        "MPILBM_CACHE_DIR": str(cache.directory()),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }

    def begun(folder, *options):
        command = ["run", str(case), "--output", str(tmp_path / folder), *options]
        run = [sys.executable, "-c", start, *command]
        return subprocess.Popen(run, env=environment, stdout=subprocess.DEVNULL)

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert begun("whole").wait(200) == 0
    with begun("parts") as process:
        while len(existing(parts)) < 2 and process.poll() is None:
            time.sleep(0.002)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert existing(parts)[-1][0] < 240
    assert begun("parts", "--restart", "auto").wait(200) == 0
    text = (whole / "forces_seed.csv").read_text()
    assert (parts / "forces_seed.csv").read_text() == text
    expected, found = (numbers(each / "checkpoint_000000240.h5") for each in (whole, parts))
    assert all(np.array_equal(found[key], expected[key]) for key in expected)
    assert expected["free.bodies"][0, 1] < 30  # it fell
