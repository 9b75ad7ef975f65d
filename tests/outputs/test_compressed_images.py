"""Compressed files: threads compress while the steps continue; all writers give the same bytes."""

import threading

import pytest
from support import image_cases

from mpilbm import Simulation
from mpilbm.case.case import parse_case
from mpilbm.core.errors import FileSystemError
from mpilbm.storage import compressed, directory, planes

GZIP = [
    {"name": "snapshot", "every": 5, "compression": "gzip", "type": "float32"},
    {"name": "snapshot", "every": 5, "compression": "gzip", "label": "means", "stride": 3},
    {"name": "plane", "every": 5, "normal": "x", "position": 6.5, "compression": "gzip"},
]


def contents(folder):
    """The bytes of all files with fields."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.vtkhdf"))}


def test_threads_write_the_same_bytes_as_rank_0(tmp_path, monkeypatch):
    given, names, compress = image_cases.tables(outputs=GZIP), set(), compressed.compressed

    def watched(plane):
        names.add(threading.current_thread().name.rstrip("0123456789_"))
        return compress(plane)

    monkeypatch.setattr(compressed, "compressed", watched)
    image_cases.run(tmp_path / "own", given=given)
    assert names == {"mpilbm-writer"}
    monkeypatch.setattr(planes, "best_writer", lambda *_: "root")
    image_cases.run(tmp_path / "root", given=given)
    assert names == {"mpilbm-writer", "mpilbm-gzip"}
    found = contents(tmp_path / "own")
    assert len(found) == 3 * 4
    assert found == contents(tmp_path / "root")
    assert not list((tmp_path / "own").glob("*.partial"))


def test_the_steps_do_not_wait_for_the_compression(tmp_path, monkeypatch):
    """The first plane of step 5 is compressed only after step 9."""
    given, compress = image_cases.tables(outputs=GZIP[:1]), compressed.compressed
    done, names = threading.Event(), []

    def look(sim):
        names.extend(path.name for path in tmp_path.glob("*vtkhdf*"))
        done.set()

    monkeypatch.setattr(compressed, "compressed", lambda one: done.wait(60) and compress(one))
    with Simulation(parse_case(given, "x.toml"), directory=tmp_path) as sim:
        sim.run(9, every=9, call=look)
        sim.run()
    part = "snapshot_000000005.vtkhdf"
    assert sorted(names) == [f"{part}.0.partial", f"{part}.partial"]
    assert len(contents(tmp_path)) == 4


def test_an_error_in_a_thread_removes_all_parts(tmp_path, monkeypatch):
    def full(plane):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compressed, "compressed", full)
    with pytest.raises(FileSystemError, match="No space left"):
        image_cases.run(tmp_path, given=image_cases.tables(outputs=GZIP))
    assert not [path for path in tmp_path.iterdir() if "vtkhdf" in path.name]


def test_overwrite_knows_parts_that_a_killed_run_left(tmp_path):
    ours = ["snapshot_000000005.vtkhdf.3.partial", "snapshot_000000005.vtkhdf.partial"]
    others = ["snapshot_000000005.vtkhdf.3", "mine.3.partial"]
    for name in ours + others:
        (tmp_path / name).touch()
    assert [path.name for path in directory.owned(tmp_path)] == ours
