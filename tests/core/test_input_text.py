"""Text files of the user: what is read, and what is refused before it is read."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.user_runs import CASE, assert_reported

from mpilbm.cli import cli
from mpilbm.core.files import MOST, NotATextFile, read_text

PIPE, DEVICE, LARGE = "pipe.toml", "/dev/zero", "large.toml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("box.toml").write_text(CASE)
    os.mkfifo(PIPE)
    Path(LARGE).touch()
    os.truncate(LARGE, MOST + 1)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli, arguments)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("verb", ["check", "run"])
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (PIPE, "is not a regular file; allowed: a text file on a disk; name a case file"),
        (DEVICE, "is not a regular file; allowed: a text file on a disk; name a case file"),
        (LARGE, "is too large; allowed: at most 16 MiB; name a case file"),
        (".", "cannot be read: Is a directory; name a case file"),
    ],
)
def test_a_case_is_a_regular_file_that_is_not_too_large(folder, verb, path, problem):
    result = call(verb, path)
    assert_reported(result.exit_code, result.output, 2, f"{path}: {problem}")


@pytest.mark.timeout(20)
def test_plugins_and_references_are_such_files(folder):
    os.rename(LARGE, "large.py")
    result = call("--plugin", "large.py", "list")
    assert_reported(result.exit_code, result.output, 2, "--plugin large.py: is too large")
    settings = ("--set", "output=[{name='snapshot', every=5}]")
    assert call("run", "box.toml", *settings).exit_code == 0
    for path in (PIPE, DEVICE, "large.py"):
        result = call("plot", "box.out", "--reference", path)
        assert_reported(
            result.exit_code, result.output, 2, f"{path}: cannot be read as a reference"
        )


def test_a_file_of_the_largest_size_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_text(path, most=100) == "x" * 100
    (tmp_path / "link").symlink_to(path)
    assert len(read_text(tmp_path / "link")) == 100
    with pytest.raises(NotATextFile, match="too large"):
        read_text(path, most=99)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        (f"title='{'t' * 201}'", r"title: found \"t{58}…; allowed: 200 or fewer characters"),
        (
            "body=[{label='%s', mask='a.npy', boundary={name='bounce_back'}}]" % ("b" * 65),
            r"body.b+.label: found \"b{58}…; allowed: 64 or fewer characters",
        ),
    ],
)
def test_titles_and_labels_have_a_longest_length(folder, setting, problem):
    result = call("check", "box.toml", "--set", setting)
    assert_reported(result.exit_code, result.output, 2, f"box.toml: {problem}")


def test_of_many_problems_the_first_are_reported(folder):
    Path("box.toml").write_text(CASE + "".join(f"k{k} = 1\n" for k in range(1000)))
    result = call("check", "box.toml")
    lines = result.output.splitlines()
    assert (result.exit_code, len(lines)) == (2, 51)
    assert lines[-1] == "mpilbm: error: box.toml: 950 more problems; correct these first"


@pytest.mark.timeout(20)
def test_a_report_reads_no_pipe(folder):
    os.rename(PIPE, "pipe.json")
    result = call("report", ".")
    assert_reported(result.exit_code, result.output, 2, "pipe.json: cannot be read as JSON")
