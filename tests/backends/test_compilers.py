"""Kernel text is valid C for every compiler, and free of undefined behaviour.

More than 20 s: kernels are compiled with the optimisation of the package.
"""

import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from support.flows import first_lattice
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
    ("D3Q19", "ab", "regularized", "forced", "half"),
    ("D3Q27", "indirect", "cumulant", "forced", "mixed"),
    ("D3Q19", "moments", "regularized", "through", "double"),
    ("D2Q9", "esopull", "entropic", "through", "single"),
]


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


@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_prelude_has_no_undefined_behaviour(precision, tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    prelude = text_of("bgk", precision).partition("/* D2Q9")[0]
    source, program = tmp_path / "prelude.c", tmp_path / "prelude"
    source.write_text(prelude + PROGRAM)
    run("gcc", "-std=gnu11", "-fopenmp-simd", *CHECKED, source, "-o", program, "-lm")
    run(program)
