"""The cpu backend: compiling and calling kernels, order of deferred work, memory."""

import weakref

import numpy as np
import pytest

from mpilbm.backends import memory
from mpilbm.backends.cpu import Cpu, compiler
from mpilbm.backends.cpu.kernels import unit
from mpilbm.codegen.program import Argument, Kernel, Program
from mpilbm.core.errors import CaseError, MpilbmError

HEAD = "typedef float store; typedef double real; typedef long long int64;"
TEXT = """
void scale(int64 begin, int64 end, int64 stride, store* f, const real* factor, int nx, real shift)
{ for (int64 k = begin; k < end; k += stride) for (int x = 0; x < nx; x++)
    f[k*nx + x] = (store)(factor[0]*f[k*nx + x] + shift); }
"""
COUNT = """
void count(int64 begin, int64 end, int64 stride, int64* sum)
{ for (int64 k = begin; k < end; k += stride) sum[0] += k; }
"""
ARGUMENTS = {
    "scale": (("f", "store*"), ("factor", "real*"), ("nx", "int"), ("shift", "real")),
    "count": (("sum", "int64*"),),
}


def program(text=TEXT):
    kernels = {
        name: Kernel(name, "cells", tuple(Argument(*argument) for argument in arguments))
        for name, arguments in ARGUMENTS.items()
    }
    bodies = dict(zip(ARGUMENTS, (text, COUNT), strict=True))
    return Program(HEAD, bodies, kernels, compute="float64", storage="float32")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture
def device():
    return Cpu().open()


@pytest.fixture
def kernels(device):
    return device.compile(program())


def bound(device, kernels, f, factor=2.0, shift=0.0):
    return kernels["scale"].bind(f=f, factor=device.upload(np.array([factor])), nx=3, shift=shift)


def test_work_in_a_queue_keeps_its_arrays(device, kernels):
    f = device.upload(np.arange(15, dtype=np.float32))
    memory, bulk = weakref.ref(f.base), device.stream("bulk")
    bound(device, kernels, f)(bulk, 0, 5)
    del f
    assert memory() is not None  # the launch is gone, its work is not done
    bulk.flush()
    assert memory() is None


def test_kernel_over_planes(device, kernels):
    f = device.upload(np.arange(15, dtype=np.float32))
    launch, bulk = bound(device, kernels, f, shift=1.0), device.stream("bulk")
    launch(bulk, 1, 5, 2)  # planes 1 and 3
    launch(bulk, 4, 4)
    expected = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert np.array_equal(f.reshape(5, 3), expected)  # deferred
    bulk.flush()
    expected[1::2] = 2 * expected[1::2] + 1
    assert np.array_equal(f.reshape(5, 3), expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"f": np.zeros(3)}, "found float64, allowed an array of float32"),
        ({"factor": np.zeros(1, np.float32)}, "allowed an array of float64"),
        ({"f": np.zeros(6, np.float32)[::2]}, "not contiguous"),
        ({"f": 3}, "found int"),
        ({"nx": 2**31}, "does not fit"),
        ({"nx": 2.5}, "not a whole number"),
        ({"other": 1}, "unknown"),
    ],
)
def test_wrong_arguments(kernels, change, words):
    right = {"f": np.zeros(3, np.float32), "factor": np.zeros(1), "nx": 3, "shift": 0}
    with pytest.raises(TypeError, match=words):
        kernels["scale"].bind(**(right | change))
    with pytest.raises(TypeError, match="missing"):
        kernels["scale"].bind(nx=3)


def test_order_of_two_streams(device):
    done, edge, bulk = [], device.stream("edge"), device.stream("bulk")
    edge.submit(lambda: done.append("edge 1"))
    first = edge.record()
    edge.submit(lambda: done.append("edge 2"))
    bulk.submit(lambda: done.append("bulk 1"))
    bulk.wait(first)
    bulk.submit(lambda: done.append("bulk 2"))
    second = bulk.record()
    bulk.submit(lambda: done.append("bulk 3"))
    edge.wait(second)
    edge.submit(lambda: done.append("edge 3"))
    assert done == []
    first.synchronize()
    assert done == ["edge 1"]
    edge.flush()
    assert done == ["edge 1", "edge 2", "bulk 1", "bulk 2", "edge 3"]
    second.synchronize()
    bulk.flush()
    assert done[-1] == "bulk 3"
    assert second.seconds_since(first) >= 0
    assert second.seconds_since(second) == 0


def test_a_wait_reaches_back_through_both_streams(device):
    done, edge, bulk = [], device.stream("edge"), device.stream("bulk")
    for step in range(500):
        edge.submit(lambda step=step: done.append((step, "edge")))
        bulk.wait(edge.record())
        bulk.submit(lambda step=step: done.append((step, "bulk")))
        edge.wait(bulk.record())
    edge.synchronize()
    assert done == [(step, name) for step in range(500) for name in ("edge", "bulk")]


def test_copy_follows_the_bulk_stream(device, kernels):
    f, g = device.upload(np.ones(6, np.float32)), device.allocate(6, np.float32)
    bulk = device.stream("bulk")
    double = bound(device, kernels, f)
    double(bulk, 0, 2)
    device.copy(g[:3], f[3:])
    assert np.array_equal(g, [2, 2, 2, 0, 0, 0])
    double(bulk, 0, 2)
    device.copy(g[3:], f[:3], bulk)
    assert not g[3:].any()
    assert np.array_equal(device.download(g[1:5]), [2, 2, 4, 4])
    with pytest.raises(TypeError, match="3 of float32 into 2"):
        device.copy(g[:2], f[:3])
    with pytest.raises(TypeError, match="float64"):
        device.copy(g[:3], np.zeros(3))


def test_download_is_a_copy(device):
    f = device.upload(np.arange(6).reshape(2, 3))
    device.download(f)[:] = 7
    assert np.array_equal(f, np.arange(6))


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("count", [0, 1, 1001])
def test_arrays_are_aligned_zeros(device, count, dtype):
    for array in (device.allocate(count, dtype), device.pinned(count, dtype)):
        assert array.shape == (count,)
        assert array.dtype == dtype
        assert count == 0 or array.ctypes.data % 128 == 0
        assert count == 0 or 128 <= array.ctypes.data - array.base.ctypes.data < 256
        assert array.base.nbytes >= array.nbytes + 3 * 128
        assert not array.any()


def test_more_than_an_int_counts(device):
    array = device.allocate(2**31 + 5, np.uint8)  # pages that nobody touches cost nothing
    array[2**31 + 4] = 1
    assert device.download(array[2**31 :]).tolist() == [0, 0, 0, 0, 1]


def test_binary_is_kept_and_a_damaged_one_replaced(device, folder, monkeypatch):
    device.compile(program())
    (kept,) = folder.glob("*.so")
    before = kept.stat().st_mtime_ns
    device.compile(program())
    assert kept.stat().st_mtime_ns == before
    other = program(TEXT + "/* not loaded yet by this process */")
    found = compiler.find()
    text = unit(other, list(other.kernels.values())).text
    path = found.build(text)
    path.write_bytes(path.read_bytes()[:1000])
    sums = device.allocate(1, np.int64)
    device.compile(other)["count"].bind(sum=sums)(device.stream("bulk"), 0, 10)
    assert device.download(sums)[0] == 45
    monkeypatch.setattr(compiler, "cpu", lambda: ("another model", ""))
    assert found.build(text) != path


def test_compile_error_shows_words_and_text(device, folder):
    with pytest.raises(MpilbmError, match=r"(?s)could not compile.*kernels\.c:.*error") as error:
        device.compile(program("no sense;" + TEXT))
    (kept,) = folder.glob("*.c")
    assert str(kept) in str(error.value)
    assert "no sense;" in kept.read_text()


def test_no_compiler(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler, "_locate", lambda words: None)
    with pytest.raises(CaseError, match=r"no C compiler.*mpilbm\[cpu\]"):
        Cpu().open()
    with pytest.raises(CaseError, match="'clang-99' is not there"):
        Cpu(compiler="clang-99").open()


@pytest.mark.parametrize(
    "name", ["sh", "/bin/gcc", "gcc -fplugin=x", "gcc;x", "", "../gcc", "gcc\n"]
)
def test_a_case_starts_no_other_program(name):
    with pytest.raises(ValueError, match="CC="):
        Cpu(compiler=name)
    assert Cpu(compiler="gcc-13").compiler == "gcc-13"


def test_order_of_compilers(tmp_path, monkeypatch):
    for name in ("cc", "clang", "mine"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho version of {name} $1\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CC", f"{tmp_path / 'mine'} -m64")
    assert compiler.find().command == (str(tmp_path / "mine"), "-m64")
    assert compiler.find().version == "version of mine -m64"
    assert compiler.find("clang").command == (str(tmp_path / "clang"),)
    monkeypatch.setenv("CC", "not-there")
    assert compiler.find().command == (str(tmp_path / "cc"),)


def test_a_compiler_without_headers_is_passed_over(tmp_path, monkeypatch, folder):
    (tmp_path / "cc").write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo cc 12 && exit\n"
        "echo 'x.c:1: fatal error: no math.h' >&2\nexit 1\n"
    )
    (tmp_path / "gcc").write_text("#!/bin/sh\necho gcc 12\n")
    for name in ("cc", "gcc"):
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CC", raising=False)
    assert compiler.find().command == (str(tmp_path / "gcc"),)
    assert compiler.find("cc").command == (str(tmp_path / "cc"),)
    monkeypatch.setattr(compiler, "TRIED", ("cc",))
    with pytest.raises(CaseError, match=r"cc cannot compile \(.*no math\.h\).*pip install"):
        compiler.find()


@pytest.mark.parametrize("home", ["/dev/null", None])
def test_ziglang_needs_no_home(home, folder, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("ZIG_GLOBAL_CACHE_DIR", raising=False)
    if home is None:  # and none in the list of users
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr(compiler.platformdirs, "user_cache_dir", lambda name: f"/proc/{name}")
    else:
        monkeypatch.setenv("HOME", home)
    assert compiler.environment()["ZIG_GLOBAL_CACHE_DIR"] == str(folder / "zig")
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", "/mine")
    assert compiler.environment()["ZIG_GLOBAL_CACHE_DIR"] == "/mine"


def test_ziglang_compiles_the_same(kernels, device):
    pytest.importorskip("ziglang")
    zig = Cpu(compiler="zig").open()
    x = np.random.default_rng(1).random(3001 * 3).astype(np.float32)
    results = []
    for one, kernel in ((device, kernels), (zig, zig.compile(program()))):
        f = one.upload(x)
        bound(one, kernel, f, 1 / 3, 0.1)(one.stream("bulk"), 0, 3001)
        results.append(one.download(f))
    assert np.array_equal(*results)


def test_a_field_that_does_not_fit(device, monkeypatch):
    device.require(2**20, "the field")
    monkeypatch.setattr(device, "memory", lambda: (2**30, 2**31))
    device.sharing = 4
    device.require(2**28, "the field")
    with pytest.raises(
        CaseError, match=r'field needs 0\.25 GiB.*1 GiB of 2 GiB.*4 ranks.*"aa"'
    ) as error:
        device.require(2**28 + 1, "the field")
    assert error.value.exit_code == 2


def test_memory_of_a_job(tmp_path):
    for name, files in {
        "slurm": {
            "memory.max": "1000",
            "memory.current": "700",
            "memory.stat": "inactive_file 100",
        },
        "slurm/step": {"memory.max": "max", "memory.current": "5", "memory.stat": ""},
        "memory/job": {
            "memory.limit_in_bytes": "50",
            "memory.usage_in_bytes": "60",
            "memory.stat": "cache 3\ntotal_inactive_file 5",
        },
    }.items():
        (tmp_path / name).mkdir(parents=True)
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    own = "4:cpu,memory:/job\n3:pids:/x\n0::/slurm/step\n"
    assert memory.of_groups(tmp_path, own) == [(0, 50), (400, 1000)]
    free, total = memory.of_machine()
    assert 0 < free <= total


@pytest.mark.parametrize("groups", [[], [(5, 10)], [(5, 10), (3, 99)]])
def test_least_memory_of_any_number_of_control_groups(groups, monkeypatch):
    """A laptop has no control group with a limit."""
    monkeypatch.setattr(memory, "of_groups", lambda: groups)
    monkeypatch.setattr(memory, "of_machine", lambda: (7, 8))
    assert memory.least() == min([(7, 8), *groups])


def test_copy_bandwidth(device, monkeypatch):
    monkeypatch.setattr(device, "memory", lambda: (2**27, 2**30))
    assert 1e8 < device.copy_bandwidth() < 1e13
