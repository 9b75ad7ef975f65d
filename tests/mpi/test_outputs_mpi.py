"""Files on several ranks: what one rank writes, and what fails on one fails on all."""

import os
import time
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from support.outputs_cases import BODY, TWO, flip_bit, make_case, make_context

from mpilbm.core.errors import CaseError, FileSystemError, NonFiniteError
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.core import restart
from mpilbm.outputs.core.writers import Writers
from mpilbm.outputs.monitor import Monitor
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.run.watched import ChangeOfVelocity
from mpilbm.storage import file_system, planes
from mpilbm.storage.directory import existing

pytestmark = pytest.mark.mpi


def writers(comm, path):
    """The ways to write that work here, mpio only with an MPI build of h5py."""
    return ["own", "root", *(["mpio"] if file_system.open_together(comm, path) else [])]


def write(output, step, context, kind):
    context.files.writer = kind  # instead of the best one
    writer = output.open(context)
    writer.write(step)
    context.background.settle(0)
    context.comm.barrier()


def test_no_rank_goes_on_while_another_writes(mpi_tmp_path, comm):
    ended = []

    def slowly(step):
        time.sleep(0.3 * (comm.rank == 0))
        ended.append(time.monotonic())

    writers = Writers(make_context(mpi_tmp_path, make_case(TWO), comm))
    writers.open = [(Snapshot(every=1), SimpleNamespace(write=slowly))]
    writers.write(1, last=2)
    went_on = time.monotonic()
    assert went_on >= max(comm.allgather(ended[0]))
    writers.context.background.close()


@pytest.mark.parametrize("size", [(5, 4, 7), TWO])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_files_are_those_of_one_rank(mpi_tmp_path, comm, monkeypatch, size, block_bytes):
    monkeypatch.setattr(planes, "BLOCK_BYTES", block_bytes)
    case = make_case(size, body=BODY if len(size) == 3 else [])
    snapshot, checkpoint = Snapshot(every=1, fields=("u", "rho")), Checkpoint(every=1)
    alone = mpi_tmp_path / "alone"
    if comm.rank == 0:
        alone.mkdir()
        context = make_context(alone, case, steps=2)
        snapshot.open(context).write(2)
        checkpoint.open(context).write(2)
        context.background.settle(0)
    for kind in writers(comm, mpi_tmp_path):
        context = make_context(mpi_tmp_path, case, comm, steps=2)
        write(snapshot, 2, context, kind)
        write(checkpoint, 2, context, kind)
        for name in ("snapshot_000000002.vtkhdf", "checkpoint_000000002.h5"):
            assert (mpi_tmp_path / name).read_bytes() == (alone / name).read_bytes()
        comm.barrier()


def test_restart_reads_own_planes(mpi_tmp_path, comm):
    older, path = (mpi_tmp_path / f"checkpoint_00000000{step}.h5" for step in (3, 4))
    for step in (3, 4) if comm.rank == 0 else ():
        context = make_context(mpi_tmp_path, steps=step)
        Checkpoint(every=1, background=False).open(context).write(step)
    comm.barrier()
    context = make_context(mpi_tmp_path, comm=comm, steps=9)
    said = []
    arguments = (context.case, context.slab, context.solver, comm, said.append)
    assert restart.load([path], *arguments) == (4, path)
    expected = make_context(mpi_tmp_path, comm=comm, steps=4).solver.f
    assert np.array_equal(context.solver.f, expected)
    assert said == []
    comm.barrier()
    if comm.rank == 0:
        with h5py.File(path) as file:
            f = file["fluid/f"]
            place = f.id.get_offset() + f.size // 7 * 6 * f.dtype.itemsize
        flip_bit(path, place)  # in the last rank's plane
    comm.barrier()
    with pytest.raises(CaseError, match=r"damaged: bytes .* have a wrong checksum"):
        restart.load([path], *arguments)
    assert restart.load([path, older], *arguments) == (3, older)
    expected = make_context(mpi_tmp_path, comm=comm, steps=3).solver.f
    assert np.array_equal(context.solver.f, expected)
    (warning,) = said
    assert "have a wrong checksum" in warning
    assert "trying the previous one" in warning


@pytest.mark.parametrize("output", [Checkpoint(every=1), Snapshot(every=1)], ids=lambda o: o.name)
@pytest.mark.parametrize("kind", ["own", "root"])
def test_a_full_disk_is_reported_by_all_ranks(mpi_tmp_path, comm, monkeypatch, kind, output):
    def pwrite(number, data, offset):
        raise OSError(28, os.strerror(28))

    if kind == "root" or comm.rank == comm.size - 1:  # one rank's trouble is that of all
        monkeypatch.setattr(os, "pwrite", pwrite)
    context = make_context(mpi_tmp_path, comm=comm)
    with pytest.raises(FileSystemError, match="No space left"):
        write(output, 1, context, kind)
    comm.barrier()
    assert not list(mpi_tmp_path.iterdir())


def test_a_cell_that_is_not_finite_ends_all_ranks(mpi_tmp_path, comm):
    context = make_context(mpi_tmp_path, comm=comm)
    context.solver.bad = (6, 3, 4)
    with pytest.raises(NonFiniteError, match=rf"cell \(4, 3, 6\) on rank {comm.size - 1}"):
        context.totals.check(8)
    assert not existing(mpi_tmp_path)


def test_monitor_and_steady_do_not_depend_on_the_cut(mpi_tmp_path, comm):
    case = make_case(run={"steps": 9, "steady": {"every": 1, "tolerance": 1e-3}})
    found = []
    for ranks in (comm, comm.Split(comm.rank)):
        folder = mpi_tmp_path / f"{ranks.size}-{comm.rank if ranks.size == 1 else 0}"
        folder.mkdir(exist_ok=True)
        comm.barrier()
        context = make_context(folder, case, ranks)
        writer = Monitor(every=1).open(context)
        change = ChangeOfVelocity(context.solver, ranks)
        changes = []
        for context.solver.steps in (0, 1):
            writer.write(context.solver.steps)
            changes.append(change(context.solver.steps))
        context.samples.settle()
        writer.close()
        comm.barrier()
        found.append((changes, (folder / "monitor.csv").read_text()))
    assert found[0] == found[1]
    assert found[0][0][0] is None
    assert found[0][0][1] > 0


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(
    ("kinds", "own"),
    [(("ext4",), [1]), (("lustre",), [1, 2]), (("ext4", "nfs4"), []), (("",), [])],
)
def test_the_file_system_decides_who_writes(mpi_tmp_path, comm, monkeypatch, kinds, own, nodes):
    """Never ranks on NFS by themselves; parallel HDF5 is used there where h5py can."""
    mine = kinds[comm.rank % len(kinds)]
    monkeypatch.setattr(file_system, "kind", lambda path: mine)
    monkeypatch.setattr(file_system, "local_rank", lambda comm: (0, comm.size // nodes))
    possible = "MPILBM_EXPECT_MPIO" in os.environ or h5py.get_config().mpi
    expected = "own" if nodes in own else "mpio" if possible else "root"
    found = file_system.best_writer(comm, mpi_tmp_path)
    assert found == (expected if comm.size > 1 else "own")
    assert not list(mpi_tmp_path.iterdir())
