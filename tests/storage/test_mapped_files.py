"""Files in memory (tmpfs), whose planes threads copy to reserved places."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.outputs_cases import make_case
from support.runs import run_case

from mpilbm.storage import file_system, planes, reserve, write_mapped
from mpilbm.storage.file_system import threads_write

SHM = Path("/dev/shm")
OUTPUTS = [{"name": "snapshot", "every": 2}, {"name": "checkpoint", "every": 4}]

in_memory = pytest.mark.skipif(
    not os.access(SHM, os.W_OK) or threads_write(SHM) != "mapped", reason="needs tmpfs in /dev/shm"
)


def test_each_file_system_has_its_way(monkeypatch, tmp_path):
    ways = {}
    for name in ("tmpfs", "lustre", "ext4", "nfs4", ""):
        monkeypatch.setattr(file_system, "kind", lambda *_, name=name: name)
        ways[name] = threads_write(tmp_path)
    assert ways == {
        "tmpfs": "mapped",
        "lustre": "at_once",
        "ext4": "in_turns",
        "nfs4": "in_turns",
        "": "in_turns",
    }


@pytest.mark.parametrize("offset", [0, 1, 4095, 4096, 70001])
def test_bytes_arrive_at_any_place(tmp_path, offset):
    data = os.urandom(20000)
    number = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        reserve(number, offset, memoryview(data))
        write_mapped(number, offset, memoryview(data))
        write_mapped(number, offset, memoryview(b""))
        assert os.pread(number, len(data), offset) == data
        assert os.fstat(number).st_size == offset + len(data)
    finally:
        os.close(number)


@in_memory
def test_the_files_of_a_run_are_the_same_in_memory_and_on_a_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(planes, "BLOCK_BYTES", 1)
    case = make_case((6, 5, 7), OUTPUTS, run={"steps": 4}, initial={"u": ["0.05*sin(y)", 0, 0]})
    with TemporaryDirectory(dir=SHM) as memory:
        run_case(case, tmp_path)
        monkeypatch.setattr(planes, "threads_write", lambda _: "mapped")
        run_case(case, Path(memory))
        names = [path.name for path in tmp_path.iterdir() if path.suffix in (".vtkhdf", ".h5")]
        assert len(names) == 3
        for name in names:
            assert (tmp_path / name).read_bytes() == (Path(memory) / name).read_bytes()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs root: mount")
def test_a_full_memory_file_system_is_an_error_and_no_signal(tmp_path):
    """A write beyond the size of the file system through a map alone would end the process."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)])
    if done.returncode:
        pytest.skip("mount is not permitted here")
    try:
        data = memoryview(bytes(100_000))
        number = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        with pytest.raises(OSError, match="No space"):
            reserve(number, 0, data)
        os.close(number)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
