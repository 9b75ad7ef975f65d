"""A disk that becomes full during a run: one message, exit code 5, the last checkpoint is kept."""

import errno
import json
import os

import pytest
from PIL import Image
from support.commands import call
from support.full_disk import KINDS, case_of, full_from
from support.mpirun import python, with_mpirun
from support.runs import run_case, summary

import mpilbm
from mpilbm.backends.cpu import compiler
from mpilbm.core import registry
from mpilbm.core.files.file_digest import verify
from mpilbm.core.machine import cache
from mpilbm.outputs.drawing import film
from mpilbm.outputs.monitor import MonitorWriter
from mpilbm.solver.solver import Solver
from mpilbm.storage import PARTIAL
from mpilbm.storage.directory import existing


def test_each_kind_of_output_is_tried():
    own = {
        name
        for kind, name, cls in registry.registered()
        if kind == "outputs" and cls.__module__.startswith("mpilbm.")
    }
    assert set(KINDS) == own


def kept(out):
    """The steps of the checkpoints, all intact; no unfinished file is left."""
    found = existing(out)
    for _, path in found:
        verify(path)
    assert not [path for path in out.iterdir() if path.name.endswith(PARTIAL)]
    return [step for step, _ in found]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_output_on_a_full_disk_is_one_error(kind, tmp_path, monkeypatch, capsys):
    case = case_of(kind, **({"film": True} if kind == "picture" else {}))
    with monkeypatch.context() as patch:
        full_from(patch, Solver, 14)
        with pytest.raises(mpilbm.FileSystemError) as found:
            run_case(case, tmp_path)
        printed = capsys.readouterr()
    assert "No space left on device; free some space" in str(found.value)
    assert len(found.value.problems) == 1
    assert "warning" not in printed.err + printed.out
    assert (summary(tmp_path)["exit_code"], summary(tmp_path)["reason"]) == (5, str(found.value))
    assert kept(tmp_path) in ([10], [5, 10])
    run_case(case, tmp_path, restart="auto")
    assert summary(tmp_path)["status"] == "done"


def test_a_disk_that_is_full_at_the_end_is_one_error(tmp_path, monkeypatch):
    """The table gets its final size when it is closed."""
    with monkeypatch.context() as patch:
        fill = full_from(patch, Solver, 1000)
        sim = mpilbm.Simulation(case_of("probe"), directory=tmp_path)
        sim.run(10)
        fill()
        with pytest.raises(mpilbm.FileSystemError, match=r"probe_0\.h5: No space left") as found:
            sim.close()
    assert len(found.value.problems) == 1
    assert kept(tmp_path) == [10]


def test_a_film_that_ffmpeg_has_not_completed_is_refused(tmp_path):
    """As on a full disk, of which imageio-ffmpeg says nothing."""
    pictures = [tmp_path / f"{number}.png" for number in range(3)]
    for path in pictures:
        Image.new("RGB", (32, 16)).save(path)
    path = tmp_path / "film.mp4"
    film.write_film(path, pictures)
    content = path.read_bytes()
    film._require_complete(path)
    for size in (0, 5, 60, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(OSError, match="not complete"):
            film._require_complete(path)


def test_the_command_prints_one_line_and_ends_with_code_5(case, tmp_path, monkeypatch):
    full_from(monkeypatch, Solver, 7)
    names = ("probe", "spectrum", "picture", "monitor", "snapshot", "checkpoint")
    outputs = [{"name": name, "every": 2} | KINDS[name] for name in names if name != "spectrum"]
    result = call("run", case, "--set", f"output={json.dumps(outputs).replace(': ', '=')}")
    assert result.exit_code == 5, result.output
    assert result.output.count("error:") == 1
    assert "Traceback" not in result.output
    assert "warning" not in result.output
    assert isinstance(result.exception, SystemExit)


def test_a_full_disk_in_a_plug_in_is_an_error_of_a_file(tmp_path, monkeypatch):
    def write(writer, step):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "means.csv")

    monkeypatch.setattr(MonitorWriter, "write", write)
    with pytest.raises(mpilbm.FileSystemError, match=r"means\.csv: No space left on device"):
        run_case(case_of("monitor"), tmp_path)
    assert summary(tmp_path)["exit_code"] == 5


RANKS = """
import json
from pathlib import Path
import pytest
from mpi4py import MPI
import mpilbm
from mpilbm.backends.cpu import compiler
compiler.FLAGS = {flags!r}
from mpilbm.solver.solver import Solver
from support.full_disk import case_of, full_from

found = []
for kind in {kinds!r}:
    with pytest.MonkeyPatch.context() as patch:
        if MPI.COMM_WORLD.rank == {full}:
            full_from(patch, Solver, 14)
        try:
            with mpilbm.Simulation(case_of(kind), directory=Path({out!r}) / kind) as sim:
                sim.run()
        except mpilbm.FileSystemError as error:
            found.append(str(error))
parts = MPI.COMM_WORLD.gather(found)
if parts:
    print(json.dumps(parts))
"""


@with_mpirun
def test_all_ranks_raise_the_error_of_one(tmp_path):
    kinds = ["checkpoint", "monitor", "picture", "probe", "snapshot"]
    text = RANKS.format(kinds=kinds, full=0, out=str(tmp_path), flags=compiler.FLAGS)
    directory = {"MPILBM_CACHE_DIR": str(cache.directory())}
    code, printed, errors = python(text, 2, tmp_path, **directory)
    assert code == 0, errors
    assert "Traceback" not in errors
    first, second = json.loads(printed)
    assert first == second
    for kind, message in zip(kinds, first, strict=True):
        assert "No space left on device" in message
        assert kept(tmp_path / kind) in ([10], [5, 10])
