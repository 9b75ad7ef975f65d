"""Checkpoints: the state back, damaged ones, those of other cases, full disks."""

import errno
import os
import shutil

import h5py
import numpy as np
import pytest
from support.outputs_cases import BODY, TWO, damage, flip_bit, make_case, make_context

from mpilbm.core.errors import CaseError, CommandError, FileSystemError, NonFiniteError
from mpilbm.outputs import Output
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.core import next_multiple, restart
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.solver.populations import Group
from mpilbm.storage.directory import existing
from mpilbm.storage.partial_file import PartialFile


@pytest.fixture
def full_disk(monkeypatch):
    def pwrite(number, data, offset):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return lambda: monkeypatch.setattr(os, "pwrite", pwrite)


def load(paths, context, said=None):
    return restart.load(
        paths,
        context.case,
        context.slab,
        context.solver,
        context.comm,
        ([] if said is None else said).append,
    )[0]


@pytest.mark.parametrize(("first", "last", "times"), [(0, 10, 5), (0, 9, 4), (4, 10, 3), (3, 3, 0)])
def test_an_output_is_due_at_multiples_at_the_start_and_at_the_end(first, last, times):
    steps, step = [0] if first == 0 else [], first
    while step < last:
        step = next_multiple(step, 3, last)
        steps.append(step)
    assert Output(every=3).times(first, last) == len(steps) == times
    assert Checkpoint(every=3).times(first, last) == times - (first == 0)


def test_full_disk_in_mid_write_keeps_earlier_files_whole(tmp_path, full_disk):
    context = make_context(tmp_path)
    writer = Checkpoint(every=1, background=False, keep=1).open(context)
    writer.write(1)
    full_disk()
    with pytest.raises(
        FileSystemError, match=r"000002.h5: No space left.*free some space"
    ) as error:
        writer.write(2)
    assert error.value.exit_code == 5
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_000000001.h5"]
    assert load([tmp_path / "checkpoint_000000001.h5"], context) == 1


def checkpoint(tmp_path, case=None, step=3, **parameters):
    context = make_context(tmp_path, case, steps=step)
    writer = Checkpoint(every=1, background=False, **parameters).open(context)
    writer.write(step)
    return context, writer


@pytest.mark.parametrize("size", [(5, 4, 7), TWO])
def test_checkpoint_gives_the_state_back(tmp_path, size):
    before, writer = checkpoint(tmp_path, make_case(size))
    with h5py.File(writer.path) as file:
        planes_, rows, nx = before.case.shape
        assert file["fluid/f"].shape == (planes_, before.case.lattice.Q, rows, nx)
        assert np.array_equal(file["fluid/f"], before.solver.f)
    after = make_context(tmp_path, make_case(size), steps=99)
    assert load([writer.path], after) == after.solver.steps == 3
    assert np.array_equal(after.solver.f, before.solver.f)


def test_only_the_newest_are_kept_and_later_ones_left_alone(tmp_path):
    context, writer = checkpoint(tmp_path, step=900)
    for step in (1, 2, 3):
        context.solver.steps = step
        writer.write(step)
    assert [step for step, _ in existing(tmp_path)] == [2, 3, 900]


def test_older_checkpoints_stay_when_the_new_one_reads_back_wrong(tmp_path, monkeypatch):
    _, writer = checkpoint(tmp_path, keep=1)
    pwrite = os.pwrite

    def flip_last(number, data, offset):
        return pwrite(number, bytes(data[:-1]) + bytes([data[-1] ^ 1]), offset)

    monkeypatch.setattr(os, "pwrite", flip_last)
    with pytest.raises(FileSystemError, match="the bytes read back differ from those written"):
        writer.write(4)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_000000003.h5"]


def test_metadata_that_reads_back_wrong_is_seen(tmp_path, monkeypatch):
    """HDF5 writes it, so that there are no other bytes in memory to compare it with."""
    _, writer = checkpoint(tmp_path, keep=1)
    original = PartialFile.append_digest

    def append_digest(file):
        flip_bit(file.partial, file.partial.read_bytes().index(b"fluid\0"))
        original(file)

    monkeypatch.setattr(PartialFile, "append_digest", append_digest)
    with pytest.raises(FileSystemError, match="its datasets are not where they were created"):
        writer.write(4)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_000000003.h5"]


def test_a_state_that_is_not_finite_is_never_written(tmp_path):
    context, writer = checkpoint(tmp_path)
    context.solver.bad = (4, 2, 1)
    with pytest.raises(NonFiniteError) as error:
        writer.write(5)
    assert error.value.exit_code == 3
    for text in ("step 5", "cell (1, 2, 4) on rank 0", "finite at step 3", "viscosity", "03.h5 is"):
        assert text in str(error.value)
    assert [step for step, _ in existing(tmp_path)] == [3]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("cut short", "has no digest at its end: it is cut short, or"),
        ("no checkpoint", "has no digest at its end"),
        ("empty", "has no digest at its end"),
        ("zeros", "has no digest at its end"),
        ("more", "has no digest at its end"),
        ("no digest", "has no digest at its end"),
        ("folder", "is damaged: it is not a regular file"),
        ("pipe", "is damaged: it is not a regular file"),
        ("solid", "is damaged: bytes .* have a wrong checksum"),
        ("bit", "is damaged: bytes .* have a wrong checksum"),
    ],
)
def test_damaged_checkpoints_are_refused_and_skipped_by_auto(tmp_path, how, message):
    context, writer = checkpoint(tmp_path)
    context.solver.steps = 6
    writer.write(6)
    damage(writer.path, how)
    with pytest.raises(CaseError, match=message) as error:
        load([writer.path], context)
    assert error.value.exit_code == 2
    said = []
    assert load(restart.candidates("auto", tmp_path), context, said) == 3
    assert len(said) == 1
    assert "warning" in said[0]


def test_a_device_that_fails_while_a_checkpoint_is_read_is_no_damage(tmp_path):
    class DeviceError(RuntimeError):
        pass

    _, writer = checkpoint(tmp_path)
    with pytest.raises(DeviceError), restart.opened(writer.path):
        raise DeviceError


def test_auto_with_nothing_but_damaged_checkpoints_is_an_error(tmp_path):
    context, writer = checkpoint(tmp_path)
    shutil.copy(writer.path, tmp_path / "checkpoint_000000004.h5")
    damage(writer.path, "cut short")
    said = []
    with pytest.raises(CaseError, match="none of the 2 checkpoints is intact"):
        load(restart.candidates("auto", tmp_path), context, said)
    assert "holds step 3, but its name says 4; rename it to checkpoint_000000003.h5" in said[0]


def test_swapped_names_are_refused_and_other_names_are_not(tmp_path):
    context, writer = checkpoint(tmp_path)
    first = writer.path.rename(tmp_path / "first.h5")
    context.solver.steps = 6
    writer.write(6)
    writer.path.rename(tmp_path / "checkpoint_000000003.h5")
    assert load([first], context) == 3
    with pytest.raises(CaseError, match="holds step 6, but its name says 3"):
        load([tmp_path / "checkpoint_000000003.h5"], context)


def test_a_checkpoint_that_may_not_be_read_is_skipped(tmp_path, monkeypatch):
    context, writer = checkpoint(tmp_path)
    context.solver.steps = 6
    writer.write(6)
    newest, original = writer.path, os.open

    def refuse(path, *arguments, **more):
        if path == newest:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return original(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)
    said = []
    assert load(restart.candidates("auto", tmp_path), context, said) == 3
    assert "cannot be read: Permission denied" in said[0]


def test_no_label_of_a_fluid_is_another_name_in_the_file(tmp_path):
    context = make_context(tmp_path, steps=3)
    labels = ("boundary", "fluid", "solid_crc32", "statistics")
    context.solver.state_groups = [Group(label, context.solver.Q, "float32") for label in labels]
    writer = Checkpoint(every=1, background=False).open(context)
    writer.write(3)
    assert load([writer.path], context) == 3
    with h5py.File(writer.path) as file:
        assert sorted(file) == sorted([*labels, "solid.crc32"])


def test_another_file_of_ours_is_no_checkpoint(tmp_path):
    context, _ = checkpoint(tmp_path)
    Snapshot(every=1, background=False).open(context).write(9)
    (tmp_path / "snapshot_000000009.vtkhdf").rename(tmp_path / "checkpoint_000000009.h5")
    said = []
    assert load(restart.candidates("auto", tmp_path), context, said) == 3
    assert "found format None, allowed: 2" in said[0]


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("lattice = D3Q19, the case D3Q15", {"lattice": {"name": "D3Q15"}}),
        ("size = ", {"domain": {"size": [5, 4, 8], "periodic": [True] * 3}}),
        ("storage = float32", {"precision": {"storage": "float64", "compute": "float64"}}),
        ("offset = True", {"precision": {"offset": False}}),
        ("bodies are not those .* plane 2", {"body": BODY}),
    ],
)
def test_checkpoint_of_another_case_is_refused(tmp_path, message, change):
    _, writer = checkpoint(tmp_path)
    with pytest.raises(CaseError, match=message):
        load([writer.path], make_context(tmp_path, make_case(**change)))


def test_changed_viscosity_is_reported_and_changed_outputs_are_not(tmp_path):
    _, writer = checkpoint(tmp_path)
    said, case = [], make_case(fluid={"viscosity": 0.2}, layout={"name": "aa"}, title="other")
    load([writer.path], make_context(tmp_path, case), said)
    assert len(said) == 1
    assert "fluid.viscosity has changed from 0.1 to 0.2" in said[0]


def test_missing_checkpoint_names_those_that_exist(tmp_path):
    assert restart.candidates("auto", tmp_path) == []
    checkpoint(tmp_path)
    with pytest.raises(CommandError, match=r"no such file.*checkpoint_000000003\.h5"):
        restart.candidates(tmp_path / "typo.h5", tmp_path)
