"""The commands work in locales whose encoding is not UTF-8.

More than 20 s: each command is a process, in each of the locales.
"""

import os
import subprocess
import sys

import pytest
from support.commands import call
from support.user_runs import CASE

from mpilbm.core import machine
from mpilbm.parallel import launcher

LOCALEDEF = machine.locate("localedef")
TITLE = 'title = "Überströmte Stufe ²"\n'
OUTPUTS = """[[output]]
name = "snapshot"
every = 5
fields = ["u"]
[[output]]
name = "monitor"
every = 1
"""
COMMANDS = ["check fälle.toml", "run fälle.toml", "report fälle.out", "watch --once fälle.out"]


@pytest.fixture(params=["C", "ja_JP.eucJP"])
def locale(request, tmp_path):
    """The environment of a locale without UTF-8; this machine may have to make it."""
    variables = {
        "LC_ALL": request.param,
        "LOCPATH": str(tmp_path),
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    if request.param != "C":
        made = tmp_path / request.param
        words = [LOCALEDEF, "-f", "EUC-JP", "-i", "ja_JP", str(made)]
        if LOCALEDEF:
            subprocess.run(words, capture_output=True)
        if not made.exists():
            pytest.skip("no localedef, or no sources of locales")
    return launcher.without_launcher() | variables | {"PYTHONPATH": os.pathsep.join(sys.path)}


def test_commands_read_and_write_utf8_in_any_locale(locale, tmp_path):
    (tmp_path / "fälle.toml").write_text(TITLE + CASE + OUTPUTS, "utf-8")
    for command in COMMANDS:
        words = [sys.executable, "-m", "mpilbm", *command.split()]
        done = subprocess.run(
            [word.encode() for word in words],
            cwd=tmp_path,
            env=locale,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=200,
        )
        assert done.returncode == 0, f"{command}: {done.stderr.decode(errors='replace')}"
        assert b"Traceback" not in done.stderr, command
    assert TITLE.split('"')[1] in (tmp_path / "fälle.out" / "report.html").read_text("utf-8")


def test_a_folder_name_that_is_not_text_is_escaped(tmp_path, monkeypatch):
    """Such as one in another encoding: it is the title of pictures and pages."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"f\xe4lle")
    (tmp_path / f"{name}.toml").write_text(CASE + OUTPUTS, "utf-8")
    for command in ("run", "report"):
        done = call(command, name + (".toml" if command == "run" else ".out"))
        assert done.exit_code == 0, done.output
    assert r"f\udce4lle.out" in (tmp_path / f"{name}.out" / "report.html").read_text("utf-8")
