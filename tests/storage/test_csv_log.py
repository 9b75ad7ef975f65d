"""Files of rows go on after a restart."""

import pytest

from mpilbm.core.errors import FileSystemError
from mpilbm.storage.csv_log import Rows


def written(path, header, first, *rows):
    file = Rows(path, header, first)
    for step, value in rows:
        file.add(step, [value])
    file.close()
    return path.read_text().splitlines()


def test_rows_up_to_the_restart_are_kept(tmp_path):
    path = tmp_path / "monitor.csv"
    written(path, ["step", "mass"], 0, (1, 0.5), (2, 0.25), (3, 0.125))
    assert written(path, ["step", "mass"], 2, (3, 7)) == ["step,mass", "1,0.5", "2,0.25", "3,7.0"]


@pytest.mark.parametrize("end", [b"3,0.", b"3", b"\0" * 99, b"2,0.25\n\0\0"])
def test_an_end_that_a_crash_leaves_is_dropped(tmp_path, end):
    path = tmp_path / "monitor.csv"
    written(path, ["step", "mass"], 0, (1, 0.5))
    path.write_bytes(path.read_bytes() + end)
    kept = ["1,0.5", "2,0.25"] if end.startswith(b"2") else ["1,0.5"]
    assert written(path, ["step", "mass"], 2) == ["step,mass", *kept]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (b"2x,0.25", "'2x,0.25'"),
        ("²,0.25".encode(), "'²,0.25'"),
        (b"2,0.2\xff5", r"'2,0.2\\xff5'"),
        (b"2,0.25,1", "'2,0.25,1'"),
        (b"2", "'2'"),
        (b"", "''"),
        (b"2,0.25=", "'2,0.25='"),
        (b"1,0.25", "'1,0.25'"),
        (b"\x002,0.25", r"'\x002,0.25'"),
    ],
)
def test_a_damaged_row_is_an_error_with_its_line(tmp_path, row, found):
    path = tmp_path / "monitor.csv"
    path.write_bytes(b"step,mass\n1,0.5\n" + row + b"\n3,0.125\n")
    before = path.read_bytes()
    with pytest.raises(FileSystemError) as error:
        Rows(path, ["step", "mass"], 3)
    expected = f"{path}: line 3 is damaged: found {found}, allowed: 2 numbers, the first a step"
    assert expected in str(error.value)
    assert path.read_bytes() == before
    assert written(path, ["step", "mass"], 0) == ["step,mass"]


def test_what_follows_the_step_of_the_restart_may_be_damaged(tmp_path):
    path = tmp_path / "monitor.csv"
    path.write_bytes(b"step,mass\n1,0.5\n2,0.25\n\0\0\n4,0.5\n")
    assert written(path, ["step", "mass"], 2) == ["step,mass", "1,0.5", "2,0.25"]


def test_a_header_that_is_no_text_is_put_aside(tmp_path):
    path = tmp_path / "monitor.csv"
    path.write_bytes(b"step,m\xffss\n1,0.5\n")
    assert written(path, ["step", "mass"], 2) == ["step,mass"]
    assert (tmp_path / "monitor_before_000000002.csv").read_bytes() == b"step,m\xffss\n1,0.5\n"


def test_rows_of_other_columns_are_put_aside_and_reported(tmp_path, capsys):
    path = tmp_path / "monitor.csv"
    before = written(path, ["step", "mass"], 0, (1, 0.5), (2, 0.25))
    assert written(path, ["step", "energy"], 2, (3, 7)) == ["step,energy", "3,7.0"]
    aside = tmp_path / "monitor_before_000000002.csv"
    assert aside.read_text().splitlines() == before
    assert str(aside) in capsys.readouterr().err
