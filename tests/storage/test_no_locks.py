"""A run on a file system whose locks fail, such as NFS without a lock daemon."""

import os
import socket
import subprocess
import sys

import h5py
import pytest
from support.user_runs import CASE

from mpilbm.backends.cpu import compiler
from mpilbm.core.errors import MpilbmError
from mpilbm.core.files.hdf5 import open_file
from mpilbm.parallel import launcher
from mpilbm.storage import file_system
from mpilbm.storage.lock import LOCK

SHIM = """
#include <errno.h>
int flock(int file, int operation) { (void)file; (void)operation; errno = ENOLCK; return -1; }
"""
OUTPUTS = """[[output]]
name = "snapshot"
every = 5
fields = ["u"]
compression = "gzip"
[[output]]
name = "probe"
every = 1
points = [[3, 3]]
format = "h5"
"""


@pytest.fixture
def mpilbm(tmp_path):
    """Run a command with a C library whose `flock` fails: (exit code, output)."""
    try:
        cc = compiler.find().command
    except MpilbmError:
        pytest.skip("no C compiler")
    (tmp_path / "shim.c").write_text(SHIM)
    subprocess.run([*cc, "-shared", "-fPIC", "shim.c", "-o", "shim.so"], cwd=tmp_path, check=True)
    (tmp_path / "box.toml").write_text(CASE + OUTPUTS)
    variables = {"LD_PRELOAD": str(tmp_path / "shim.so"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def call(*words):
        done = subprocess.run(
            [sys.executable, "-m", "mpilbm", *words],
            cwd=tmp_path,
            timeout=200,
            env=launcher.without_launcher() | variables,
            capture_output=True,
            encoding="utf-8",
        )
        return done.returncode, done.stdout + done.stderr

    return call


def test_files_are_written_and_read_without_locks(mpilbm, tmp_path):
    code, text = mpilbm("run", "box.toml")
    assert code == 0, text
    assert "this file system has no file locks (No locks available)" in text
    for words in ("run box.toml --restart auto --set run.steps=15", "report box.out"):
        code, text = mpilbm(*words.split())
        assert code == 0, text
    assert not (tmp_path / "box.out" / LOCK).exists()


def test_the_holder_on_another_host_is_believed(mpilbm, tmp_path):
    (tmp_path / "box.out").mkdir()
    (tmp_path / "box.out" / LOCK).write_text(f'{{"pid": 1, "host": "not {socket.gethostname()}"}}')
    code, text = mpilbm("run", "box.toml")
    assert code == 2
    assert f"remove box.out/{LOCK} if it has ended" in text


def test_a_program_opens_the_same_file_with_h5py(tmp_path):
    """HDF5 refuses to open a file twice with different flags for locks."""
    with open_file(tmp_path / "a.h5", "w") as file:
        file["u"] = [1.0]
    with open_file(tmp_path / "a.h5"), h5py.File(tmp_path / "a.h5") as other:
        assert other["u"][0] == 1.0


def test_mpi_io_requires_locks(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert file_system._has_locks(tmp_path / "file")

    def none(*arguments):
        raise OSError("No locks available")

    monkeypatch.setattr(file_system.fcntl, "lockf", none)
    assert not file_system._has_locks(tmp_path / "file")
