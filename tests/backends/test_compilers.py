"""Kernel text is valid C for every compiler, and free of undefined behaviour.

More than 20 s: kernels are compiled with the optimisation of the package.
"""

import ctypes
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from support import tiny_compiler
from support.flows import first_lattice
from support.pairs import ALL_COMBINATIONS
from support.settings import tables
from support.slabs import Cluster

from mpilbm import codegen
from mpilbm.backends.cpu import compiler
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError, FileSystemError, MpilbmError

COMMANDS = {
    "gcc": ("gcc",),
    "clang": ("clang",),
    "zig": (sys.executable, "-m", "ziglang", "cc"),
}
STRICT = ("-Wall", "-Wextra", "-Werror")
CHECKED = ("-fsanitize=undefined,float-cast-overflow", "-fsanitize-undefined-trap-on-error")
# log2(1 + x) and a / b of usual numbers, of numbers outside the domain, and of no number.
PROGRAM = """
int main(void)
{
  const real values[] = {0, 0.1, -0.1, 0.7, 1e30, -0.999, -1, -2, -1e30, NAN, INFINITY, -INFINITY};
  volatile real sum = 0;
  for (int k = 0; k < 12; k++) sum += log2_of_one_and(values[k]) + reciprocal_of(values[k]);
  return 0;
}
"""


@cache
def text_of(collision: str, precision: str, layout: str = "ab") -> str:
    case = tables(first_lattice(collision), layout, collision, "forced", precision)
    return codegen.generate(parse_case(case, "test.toml")).text


def run(*command) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, f"{command[0]}: {done.returncode}\n{done.stderr[:2000]}"


@pytest.mark.parametrize(
    ("collision", "precision"), [("bgk", "single"), ("bgk", "half"), ("entropic", "single")]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_compiler_accepts_the_text(name, collision, precision, tmp_path):
    command = COMMANDS[name]
    if not (find_spec("ziglang") if name == "zig" else shutil.which(name)):
        pytest.skip(f"{name} is not installed")
    flags = [flag for flag in compiler.FLAGS if flag not in ("-O3", "-shared")]
    source = tmp_path / "kernels.c"
    source.write_text(text_of(collision, precision))
    run(*command, *flags, *STRICT, "-O0", "-c", source, "-o", tmp_path / "kernels.o")


TOO_MANY = """
import os, resource, sys
from mpilbm.backends.cpu import compiler
command = compiler.find().command
limit = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
compiler._version.cache_clear()
try:
    compiler.find()
except Exception as error:
    print(type(error).__name__, error)
"""


def test_too_many_open_files_are_not_a_missing_compiler():
    done = subprocess.run([sys.executable, "-c", TOO_MANY], capture_output=True, text=True)
    assert done.stdout.startswith("MpilbmError"), done.stderr
    assert "too many open files" in done.stdout
    assert "ulimit -n" in done.stdout
    assert "no C compiler" not in done.stdout


REASONS = {
    "echo no licence >&2; exit 3": "exit code 3 (no licence)",
    "exit 0": "exit code 0 (without a message)",
    "exec /bin/sleep 9": "no answer within 1 s",
}


@pytest.mark.parametrize("script", REASONS)
def test_a_compiler_that_cannot_be_used_is_named_with_the_reason(script, tmp_path, monkeypatch):
    (tmp_path / "cc").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "cc").chmod(0o755)
    if "sleep" in script:
        monkeypatch.setattr(compiler, "SECONDS", 1)
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(CaseError) as error:
        compiler.find()
    assert f"{tmp_path / 'cc'} " in str(error.value)
    assert REASONS[script] in str(error.value)
    assert "no C compiler was found" not in str(error.value)


@pytest.mark.parametrize("words", ["./cc", "bin/cc -m64", "cc 'x"])
def test_what_cc_must_not_be(words, monkeypatch):
    monkeypatch.setenv("CC", words)
    with pytest.raises(CaseError, match=f"CC={words}"):
        compiler.find()


def test_a_compiler_that_is_killed_did_not_refuse_the_text(tmp_path, monkeypatch):
    (tmp_path / "cc").write_text('#!/bin/sh\n[ "$1" = --version ] && echo 1 || kill -9 $$\n')
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path / "kernels"))
    with pytest.raises(MpilbmError, match=r"killed by signal 9.*memory"):
        compiler.find().build("int x;")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(FileSystemError, match="TMPDIR"):
        compiler.find().build("int y;")


OPTIMISED = [
    ("D2Q9", "aa", "trt", "walls", "single"),
    ("D2Q9", "indirect", "regularized", "forced", "half"),
    ("D2Q9", "ab", "central_moment", "forced", "mixed"),
    ("D3Q19", "moments", "regularized", "through", "double"),
    ("D2Q9", "esopull", "entropic", "through", "single"),
]
if ALL_COMBINATIONS:  # the longest text
    OPTIMISED.append(("D3Q27", "ab", "cumulant", "forced", "mixed"))


def state_with(monkeypatch, flags, choice) -> np.ndarray:
    monkeypatch.setattr(compiler, "FLAGS", flags)
    return Cluster(tables(*choice)).start().run(9).state()


@pytest.mark.parametrize("choice", OPTIMISED, ids="-".join)
def test_optimising_changes_no_bit(choice, monkeypatch, request):
    """Hence other tests may compile their kernels by tcc or with -O0, in one unit (conftest.py)."""
    given = compiler.FLAGS
    flags = [flag for flag in given if flag != "-O0" and "TINY_COMPILER" not in flag]
    state = state_with(monkeypatch, given, choice)
    assert np.array_equal(state, state_with(monkeypatch, (*flags, "-O0"), choice))
    request.getfixturevalue("own_units")
    assert np.array_equal(state, state_with(monkeypatch, (*flags, "-O3"), choice))


# Numbers from x, y and n: x and y of any kind, n a whole one.
OPERATIONS = """
x + y, x - y, x * y, x / y, x * R(0.1) + y, R(1) / R(3) - x, 0.1 * x, x / 3, x - 1e-9f, R(-2) * x,
fmin(x, y), fmax(x, y), smaller(x, y), larger(x, y), fabs(x), sqrt(x), floor(x), copysign(x, y),
x < y, x <= y, x > y, x >= y, x == y, x != y, x != x, !(x < y), x < y && x == x, x ? y : x,
exp(x), log(x), pow(x, y), sin(x), cos(x), tanh(x), cbrt(x), fmod(x, y), exp(n), pow(n, 2),
log2_of_one_and(x), reciprocal_of(fabs(x)), power_of_two(x), (float)x * y, (double)x * y,
(uint32)n, (int64)n << 33, n >> 3, n / 7, n % 7, (uint32)n >> 3, (uint64)(int64)n / 7,
(real)(uint64)(int64)n, (int32)(R(0.37) * n), POPCOUNT((uint32)n), (real)n / 3, n < 7u, ~n & 255,
(unsigned char)n, (short)n, n * (int64)2000000011, MAD(x, y, x), NMAD(x, y, x)
"""
NEGATED = "-x, x - -y, -x * y, -(x * y)"
APPLY = """
int apply(const real* values, int count, real* found)
{
  BEGIN
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++) {
      const real x = values[i], y = values[j];
      const int32 n = (i - count / 2) * 92821 + j;
      const real all[] = {OPERATIONS};
      memcpy(found + ((int64)i * count + j) * 100, all, sizeof all);
    }
  END
  return 0;
}
"""


def applied(text: str, values: np.ndarray) -> np.ndarray:
    """The results of the operations for each pair of values."""
    found = np.zeros((len(values), len(values), 100), values.dtype)
    library = ctypes.CDLL(str(compiler.find().build(text)))
    pointers = (ctypes.c_void_p(each.ctypes.data) for each in (values, found))
    first, last = pointers
    library.apply(first, len(values), last)
    return found


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_tcc_computes_as_the_usual_compiler(precision, flushed, tmp_path, monkeypatch):
    """With zeros of both signs, denormals, infinities and NaN, of which the sign may differ.

    Where denormals are flushed, tcc, which subtracts from -0, flushes what it negates.
    """
    if not tiny_compiler.works():
        pytest.skip("tcc is not installed")
    tiny_compiler.use()
    words = {"BEGIN": "FLUSH_DENORMALS" * flushed, "END": "RESTORE_DENORMALS" * flushed}
    words["OPERATIONS"] = OPERATIONS + f", {NEGATED}" * (not flushed)
    text = text_of("bgk", precision).partition("/* D2Q9")[0] + APPLY
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    real = np.dtype(np.float32 if precision == "single" else np.float64)
    limits = np.finfo(real)
    kinds = [0, 1, 2, 0.1, 7.5, 1234.5678, 1e-9, 1e9, limits.tiny, limits.tiny / 3, limits.max]
    drawn = np.random.default_rng(5).standard_normal(20)
    values = np.concatenate([kinds, np.negative(kinds), [np.inf, -np.inf, np.nan, -0.0], drawn])
    flags = [flag for flag in compiler.FLAGS if "TINY_COMPILER" not in flag]
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path))
    found = []
    for last in ((tiny_compiler.mark(),), ()):
        monkeypatch.setattr(compiler, "FLAGS", (*flags, "-O0", "-DNO_VECTORS", *last))
        with monkeypatch.context() as patch:
            if last:
                patch.setattr(tiny_compiler, "USUAL", None)  # tcc accepts the text
            found.append(applied(text, values.astype(real)))
    np.testing.assert_array_equal(*found)
    assert np.array_equal(*(np.signbit(each) | np.isnan(each) for each in found))


CONVERT = """
int convert(const unsigned short* halves, float* found,
            const float* values, unsigned short* nearest, int64 count)
{
  for (int64 i = 0; i < 65536; i++) found[i] = half_to_float(halves[i]);
  for (int64 i = 0; i < count; i++) nearest[i] = float_to_half(values[i]);
  return 0;
}
"""


def test_tcc_converts_16_bit_numbers_as_the_usual_compiler(tmp_path, monkeypatch):
    """All of them, and floats: these, the middles between them, and the floats next to both."""
    if not tiny_compiler.works():
        pytest.skip("tcc is not installed")
    tiny_compiler.use()
    text = text_of("bgk", "half").partition("/* D2Q9")[0] + CONVERT
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path))
    halves = np.arange(65536, dtype=np.uint16)
    exact = halves.view(np.float16).astype(np.float32).view(np.uint32)
    places = np.concatenate([exact + np.uint32(step) for step in (0, 0x800, 0x1000, 0x1800)])
    tiny = np.arange(0, 1 << 31, 99991, dtype=np.uint32)  # also denormals, and above 65504
    bits = np.concatenate([places - np.uint32(1), places, places + np.uint32(1), tiny])
    values = bits.view(np.float32)
    flags = [flag for flag in compiler.FLAGS if "TINY_COMPILER" not in flag]
    results = []
    for last in ((tiny_compiler.mark(),), ()):
        monkeypatch.setattr(compiler, "FLAGS", (*flags, "-O0", "-DNO_VECTORS", *last))
        with monkeypatch.context() as patch:
            if last:
                patch.setattr(tiny_compiler, "USUAL", None)  # tcc accepts the text
            library = ctypes.CDLL(str(compiler.find().build(text)))
        found, nearest = np.zeros(65536, np.float32), np.zeros(len(values), np.uint16)
        pointers = (ctypes.c_void_p(each.ctypes.data) for each in (halves, found, values, nearest))
        library.convert(*pointers, ctypes.c_int64(len(values)))
        results.append((found, nearest.view(np.float16)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)  # NaN equals NaN
        assert np.array_equal(np.signbit(one), np.signbit(other))


@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_prelude_has_no_undefined_behaviour(precision, tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    prelude = text_of("bgk", precision).partition("/* D2Q9")[0]
    source, program = tmp_path / "prelude.c", tmp_path / "prelude"
    source.write_text(prelude + PROGRAM)
    run("gcc", "-std=gnu11", "-fopenmp-simd", *CHECKED, source, "-o", program, "-lm")
    run(program)
