"""What a run writes, and that it is whole or not there."""

import errno
import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.every_output import case_with, output_of
from support.outputs_cases import BODY, TWO, FakeSolver, make_case, make_context

from mpilbm import storage
from mpilbm.core.errors import CaseError, CommandError, FileSystemError
from mpilbm.core.registry import find, names
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.core.totals import add_planes
from mpilbm.outputs.monitor import Monitor
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.storage import directory, lock, planes

# ------------------------------------------------------------------------------------- snapshot


def snapshot(tmp_path, case, **parameters):
    context = make_context(tmp_path, case, steps=7)
    Snapshot(every=1, **parameters).open(context).write(7)
    context.background.settle(0)
    return context, h5py.File(tmp_path / "snapshot_000000007.vtkhdf")


def test_snapshot_is_a_vtkhdf_image(tmp_path):
    context, file = snapshot(tmp_path, make_case())
    image = file["VTKHDF"].attrs
    assert image["Type"] == b"ImageData"
    assert image.get_id("Type").dtype.kind == "S"
    assert image["Version"].tolist() == [2, 0]
    assert image["WholeExtent"].tolist() == [0, 5, 0, 4, 0, 7]
    assert image["Direction"].tolist() == np.eye(3).ravel().tolist()
    expected = context.solver.fields(("rho", "u"), 0, 7)
    assert set(file["VTKHDF/CellData"]) == {"rho", "u"}
    for name, data in expected.items():
        assert file["VTKHDF/CellData"][name].dtype == np.float32
        assert np.array_equal(file["VTKHDF/CellData"][name], data)
    origin = file["mpilbm"].attrs
    assert (origin["case"], origin["step"], origin["units"]) == (context.case.toml, 7, "lattice")


def test_snapshot_in_two_dimensions_has_one_layer_and_three_components(tmp_path):
    context, file = snapshot(tmp_path, make_case(TWO), fields=("u", "vorticity"))
    cells = file["VTKHDF/CellData"]
    assert file["VTKHDF"].attrs["WholeExtent"].tolist() == [0, 5, 0, 6, 0, 1]
    assert cells["u"].shape == (1, 6, 5, 3)
    expected = context.solver.fields(("u", "vorticity"), 0, 6)
    assert np.array_equal(cells["u"][0, :, :, :2], expected["u"][:, 0])
    assert not cells["u"][..., 2].any()
    assert np.array_equal(cells["vorticity"][0], expected["vorticity"][:, 0])


def test_snapshot_marks_bodies_and_block_size_changes_nothing(tmp_path, monkeypatch):
    case = make_case(body=BODY)
    _, file = snapshot(tmp_path, case)
    assert file["VTKHDF/CellData/solid"][...].sum() == file["VTKHDF/CellData/solid"][2, 0, 1] == 1
    whole = (tmp_path / "snapshot_000000007.vtkhdf").read_bytes()
    monkeypatch.setattr(planes, "BLOCK_BYTES", 1)
    snapshot(tmp_path, case)
    assert (tmp_path / "snapshot_000000007.vtkhdf").read_bytes() == whole


def test_snapshot_of_an_unknown_field_is_refused(tmp_path):
    with pytest.raises(
        CaseError, match=r"'temperature' is not a field; choose from rho, u, vorticity"
    ):
        make_case(outputs=[{"name": "snapshot", "every": 5, "fields": ["rho", "temperature"]}])
    with pytest.raises(CaseError, match=r"output\.0\.fields: 'vortcity' .* mean 'vorticity'"):
        make_case(outputs=[{"name": "snapshot", "every": 5, "fields": ["vortcity"]}])


@pytest.mark.parametrize("name", names("outputs"))
def test_no_two_outputs_write_the_same_files(name):
    one = output_of(name, every=5)
    if "label" in find("outputs", name).model_fields:
        one["label"] = "same"
    case_with(one)
    with pytest.raises(CaseError, match=r"keep one|remove one"):
        case_with(one, one | {"every": 10})


# ----------------------------------------------------------------------------------- full disks


def test_disk_too_small_for_a_file_is_seen_before_hdf5_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0))
    with pytest.raises(FileSystemError, match="No space left"):
        Snapshot(every=1).open(make_context(tmp_path)).write(1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "number"), [("write failed: errno = 27, x", 27), ("", errno.EIO)])
def test_errors_of_hdf5_become_those_of_the_system(text, number):
    with pytest.raises(OSError, match=r"file\.h5") as error, storage.system_errors("file.h5"):
        raise RuntimeError(text)
    assert error.value.errno == number


# -------------------------------------------------------------------------------------- monitor


def rows_of(tmp_path):
    return (tmp_path / "monitor.csv").read_text().splitlines()


def monitor(tmp_path, steps, first_step=0):
    context = make_context(tmp_path, first_step=first_step)
    writer = Monitor(every=1).open(context)
    for step in steps:
        context.solver.steps = step
        writer.write(step)
    context.samples.settle()
    writer.close()
    return context


def test_monitor_rows_read_back_as_they_were(tmp_path):
    context = monitor(tmp_path, [0, 5])
    header, _, last = rows_of(tmp_path)
    assert header == "step,time,mass,momentum_x,max_speed,glups"
    names = context.solver.sum_names
    expected = add_planes(names, context.solver.start_sums()())
    values = dict(zip(header.split(","), map(float, last.split(",")), strict=True))
    assert values["step"] == values["time"] == 5
    assert {name: values[name] for name in names[:3]} == {n: expected[n] for n in names[:3]}


def test_monitor_goes_on_behind_the_step_of_the_restart(tmp_path):
    monitor(tmp_path, [0, 5, 10, 15])
    whole = rows_of(tmp_path)
    with open(tmp_path / "monitor.csv", "a") as file:
        file.write("20,2")  # a row that a crash cut short
    monitor(tmp_path, [15], first_step=10)
    assert rows_of(tmp_path) == whole
    monitor(tmp_path, [0])
    assert len(rows_of(tmp_path)) == 2


def test_rows_are_on_the_disk_before_a_checkpoint_has_its_name(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda n: (done.append(Path(os.readlink(f"/proc/self/fd/{n}")).name), fsync(n))
    )
    monkeypatch.setattr(
        os, "replace", lambda a, b: (done.append(f"named {Path(b).name}"), replace(a, b))
    )
    context = make_context(tmp_path)
    rows, checkpoint = Monitor(every=1).open(context), Checkpoint(every=1).open(context)
    names = ["monitor.csv", "monitor.csv.digests"]
    assert done == [each for name in names for each in (f"{name}.partial", f"named {name}")]
    rows.write(0)
    context.samples.settle()
    checkpoint.write(1)
    context.background.settle(0)
    for name in names:
        assert done.count(name) == 1
        assert done.index(name) < done.index("named checkpoint_000000001.h5")


def test_sums_are_added_in_plane_order():
    values = np.array([[1e16, 3.0], [1.0, 7.0], [-1e16, 5.0]])
    assert add_planes(("mass", "max_speed"), values) == {"mass": 0.0, "max_speed": 7.0}


# ------------------------------------------------------------------------------------ directory


def claim(path, case=None, **options):
    folder = directory.RunDirectory(path)
    folder.claim(case or make_case(), **options)
    return folder


def test_another_runs_files_are_not_touched_unasked(tmp_path):
    for name in ("summary.json", "snapshot_000000001.vtkhdf", "checkpoint_000000002.h5.partial"):
        (tmp_path / name).write_text("")
    with pytest.raises(CommandError, match=r"the files of an earlier run.*--overwrite") as error:
        claim(tmp_path)
    assert error.value.exit_code == 2
    claim(tmp_path, restart="auto").release()
    assert (tmp_path / "summary.json").exists()
    assert not (tmp_path / "checkpoint_000000002.h5.partial").exists()


def test_a_directory_in_use_is_refused_and_a_dead_lock_taken_over(tmp_path):
    folder = claim(tmp_path / "new")
    with pytest.raises(CommandError, match=f"in use by process {os.getpid()}"):
        claim(tmp_path / "new", overwrite=True)
    folder.release()
    assert not (tmp_path / "new").exists()
    (tmp_path / lock.LOCK).write_text('{"pid": 4194999, "host": "gone"}')
    folder = claim(tmp_path)
    assert folder.notes == ["took over the lock of process 4194999 on gone, which has ended"]
    folder.release()
    assert not list(tmp_path.iterdir())


def test_without_locks_of_the_system_the_process_decides(tmp_path, monkeypatch):
    def none(*arguments):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(lock.fcntl, "flock", none)
    claim(tmp_path)
    with pytest.raises(CommandError, match="in use"):
        claim(tmp_path)


def test_a_directory_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="cannot write to the output directory"):
        claim(tmp_path / "file" / "run.out")


def test_too_little_disk_is_reported_before_the_run(tmp_path, monkeypatch):
    case = make_case(
        outputs=[{"name": "snapshot", "every": 10}, {"name": "checkpoint", "every": 5}]
    )
    cells = 5 * 4 * 7 * 4
    assert directory.disk_bytes(case) == 10 * 4 * cells + 3 * 19 * cells
    assert directory.disk_bytes(case, 95) == 4 * cells + 19 * cells
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 9))
    with pytest.raises(CaseError, match=r"files.toml: output: the outputs need .* free") as error:
        claim(tmp_path / "run.out", case)
    assert error.value.exit_code == 2
    assert not (tmp_path / "run.out").exists()


def test_default_directory_is_in_the_current_folder():
    assert str(directory.default_directory("cases/pipe.toml")) == "pipe.out"


def test_fake_solver_is_the_same_however_it_is_cut():
    case = make_case()
    from mpilbm.parallel.slabs import split

    parts = [FakeSolver(case, slab).f for slab in split(case.shape, 3, True)]
    assert np.array_equal(np.concatenate(parts), make_context("", case).solver.f)
