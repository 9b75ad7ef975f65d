"""A flipped bit in the values of any file of results is found by verify, and in a table at restart.

The digests of checkpoints and snapshots are tested in test_flipped_bits.py.
"""

import shutil

import h5py
import numpy as np
import pytest
from support.every_output import case_with, output_of
from support.outputs_cases import flip_bit
from support.runs import run_case

import mpilbm
from mpilbm import CommandError
from mpilbm.core.errors import FileSystemError
from mpilbm.core.files.file_digest import TAIL
from mpilbm.core.registry import find, names
from mpilbm.outputs.core.tables import CHECKSUMS, Series, read
from mpilbm.storage import csv_log
from mpilbm.storage.csv_log import Rows, intact_rows
from mpilbm.storage.tables import DamagedRowsError, digests_of


def forms():
    """(name, further keys) of each output, in each of its formats."""
    for name in names("outputs"):
        if not any(
            file.endswith((".csv", ".h5", ".vtkhdf")) for file in find("outputs", name).files
        ):
            continue  # pictures
        field = find("outputs", name).model_fields.get("format")
        for form in getattr(field.annotation, "__args__", ()) if field else ({},):
            yield name, {"format": form} if field else {}


def read_all(folder):
    """Read all results of a run, and return its summary; CommandError if one is damaged."""
    run = mpilbm.open_run(folder, verify=True)
    for name in run.tables:
        run.table(name)
    for name in run.series:
        series = run.part(name)
        for step in series.steps.tolist():
            for field in series.fields:
                series.file(step).field(field)
    assert run.statistics().keys() >= run.profiles.keys()
    return run.summary


def found(folder, summary):
    """The error of `read_all`; "" if the summary is the right one."""
    try:
        return "" if read_all(folder) == summary else "the summary is another one"
    except CommandError as error:
        return str(error)


def is_read(path, tables):
    """Whether `read_all` reads a file of results."""
    if path.suffix == ".h5":
        return path.stem in tables or path.name.startswith("statistics_")
    return path.suffix == ".vtkhdf" or path.name == "summary.json" or path.stem in tables


def places(path, count, random):
    """Random places of a file, not in the marks of its digest, without which it has none."""
    size, marks = path.stat().st_size, range(0)
    if path.suffix in (".h5", ".vtkhdf"):
        marks = range(size - TAIL.size, size - TAIL.size + 8)
    elif path.suffix == ".json":
        marks = range(path.read_bytes().index(b'"crc32"'), size)
    return [int(place) for place in random.integers(size, size=count) if place not in marks]


@pytest.mark.parametrize(("name", "more"), list(forms()), ids=str)
def test_a_flipped_bit_in_results_is_found(name, more, tmp_path):
    case, done = case_with(output_of(name) | more), tmp_path / "done"
    run_case(case, done)
    summary, random = read_all(done), np.random.default_rng(1)
    tables = mpilbm.open_run(done).tables
    files = [path for path in sorted(done.iterdir()) if is_read(path, tables)]
    for path in files:
        for place in places(path, 25, random):
            bit = int(random.integers(8))
            flip_bit(path, place, bit)
            # JSON allows other spaces, and 1E-3 in place of 1e-3
            error = found(done, summary)
            assert path.name in error or (path.suffix == ".json" and not error), place
            flip_bit(path, place, bit)
    assert read_all(done) == summary
    for path in [path for path in files if path.stem in tables]:
        for place in places(path, 3, random):
            again = tmp_path / f"{path.name}.{place}"
            shutil.copytree(done, again)
            flip_bit(again / path.name, place)
            with pytest.raises(FileSystemError, match=f"{path.name}.* is damaged"):
                run_case(case, again, restart="auto")


# ------------------------------------------------------------------------------- tables of rows


def csv(path, first=0, rows=()):
    table = Rows(path, ["step", "mass"], first)
    for step in rows:
        table.add(step, [step / 8])
    table.close()
    return path.read_bytes()


def hdf5(path, first=0, rows=(), capacity=4):
    table = Series(path, {"rho": (2,)}, first, capacity, lambda file: None)
    for step in rows:
        table.add(step, {"time": step, "rho": [step, -step]})
    table.close()
    return path.read_bytes()


FORMS = [("a.csv", csv), ("a.h5", hdf5)]


def intact(path):
    if path.suffix == ".csv":
        return [int(row.partition(",")[0]) for row in intact_rows(path)[1:]]
    return mpilbm.open_run(path.parent, verify=True).table("a")["step"].tolist()


@pytest.mark.parametrize(("name", "write"), FORMS)
def test_a_table_that_continues_has_the_bytes_of_one_written_at_once(name, write, tmp_path):
    whole, parts = tmp_path / name, tmp_path / f"parts_{name}"
    expected = write(whole, rows=range(1, 7))
    write(parts, rows=range(1, 6))
    assert write(parts, 3, range(4, 7)) == expected
    if name == "a.csv":
        assert digests_of(parts).read_bytes() == digests_of(whole).read_bytes()


@pytest.mark.parametrize(("name", "write"), FORMS)
def test_a_flipped_bit_in_each_byte_of_the_kept_rows_is_found_at_restart(name, write, tmp_path):
    """Whatever follows the step of the restart."""
    path = tmp_path / name
    write(path, rows=range(1, 5))
    used = range(path.stat().st_size)
    if name == "a.h5":
        with h5py.File(path) as file:
            used = [
                file[key].id.get_offset() + k
                for key, row in (("step", 8), ("time", 8), ("rho", 16), (CHECKSUMS, 16))
                for k in range(2 * row)
            ]
    else:
        used = range(path.read_bytes().index(b"3,"))
    content = path.read_bytes()
    for place in used:
        flip_bit(path, place, place % 8)
        with pytest.raises(FileSystemError, match="is damaged"):
            write(path, 2)
        flip_bit(path, place, place % 8)
    assert path.read_bytes() == content
    write(path, 2)
    assert len(content) > path.stat().st_size


@pytest.mark.parametrize("place", ["step", "crc"])
def test_a_flipped_digest_of_the_last_kept_row_is_found(place, tmp_path):
    path = tmp_path / "a.csv"
    csv(path, rows=range(1, 4))
    for bit in range(8):
        side = digests_of(path).read_bytes()
        begin = side.index(b"\n2 ") + 1
        flip_bit(digests_of(path), begin + (3 if place == "crc" else 0), bit)
        with pytest.raises(FileSystemError, match="is damaged"):
            csv(path, 2)
        digests_of(path).write_bytes(side)


def test_after_kill_9_the_last_row_may_have_no_digest(tmp_path, monkeypatch):
    path, other = tmp_path / "a.csv", tmp_path / "b.h5"
    rows = Rows(path, ["step", "mass"], 0)
    series = Series(other, {"rho": (2,)}, 0, 4, lambda file: None)
    rows.add(1, [0.5])
    series.add(1, {"time": 1, "rho": 0})
    rows.digests.close()
    put = series._put
    monkeypatch.setattr(series, "_put", lambda key, row: put(key, row) if key != CHECKSUMS else 1)
    with pytest.raises(ValueError, match="closed file"):
        rows.add(2, [0.25])
    series.add(2, {"time": 2, "rho": 0})
    assert intact_rows(path) == ["step,mass", "1,0.5", "2,0.25"]
    assert csv(path, 2, [3]).count(b"\n") == 4
    hdf5(other, 2, [3])
    assert read(other)["step"].tolist() == [1, 2, 3]


def test_rows_without_digests_that_a_run_cannot_have_written_are_found(tmp_path):
    path = tmp_path / "a.csv"
    content = csv(path, rows=[1])
    path.write_bytes(content + b"2,0.5\n3,0.5\n")
    with pytest.raises(DamagedRowsError, match="rows have no valid checksum"):
        intact_rows(path)
    path.write_bytes(content[: content.index(b"1,")])
    with pytest.raises(DamagedRowsError, match="the rows from step 1 on are missing"):
        intact_rows(path)


def test_rows_that_are_added_while_a_table_is_verified(tmp_path, monkeypatch):
    """Their digests are read again."""
    path, table = tmp_path / "a.csv", Rows(tmp_path / "a.csv", ["step", "mass"], 0)
    read_bytes = type(path).read_bytes

    def slow(self):
        found = read_bytes(self)
        if self == digests_of(path) and len(found) < 20:
            for step in range(5):
                table.add(step, [0.5])
        return found

    monkeypatch.setattr(type(path), "read_bytes", slow)
    assert len(intact_rows(path)) == 6
    table.close()


def test_a_restart_that_was_killed_before_it_wrote_its_digests(tmp_path, monkeypatch):
    """The rows that it removed are not missed."""
    path = tmp_path / "a.csv"
    csv(path, rows=[1, 2, 3])
    whole = csv_log.whole

    def killed(target, *more):
        if target == digests_of(path):
            raise KeyboardInterrupt
        return whole(target, *more)

    with monkeypatch.context() as patch:
        patch.setattr(csv_log, "whole", killed)
        with pytest.raises(KeyboardInterrupt):
            csv(path, 2)
    assert intact(path) == [1, 2]
    csv(path, 2, [3])
    assert intact(path) == [1, 2, 3]


def test_a_row_without_a_step_hides_no_other_rows(tmp_path):
    path = tmp_path / "a.h5"
    hdf5(path, rows=[1, 2, 3])
    with h5py.File(path) as file:
        place = file["step"].id.get_offset()
    flip_bit(path, place + 8 + 7, 7)  # the sign of the second step
    assert read(path)["step"].tolist() == [1]
    with pytest.raises(FileSystemError, match="row 1 is damaged"):
        hdf5(path, 3)
