"""Kernel text is valid C for every compiler, and free of undefined behaviour."""

import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest
from flows import first_lattice
from test_laws_slabs import tables

from mpilbm import codegen
from mpilbm.backends import compiler
from mpilbm.case import parse_case

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


@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_prelude_has_no_undefined_behaviour(precision, tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    prelude = text_of("bgk", precision).partition("/* D2Q9")[0]
    source, program = tmp_path / "prelude.c", tmp_path / "prelude"
    source.write_text(prelude + PROGRAM)
    run("gcc", "-std=gnu11", "-fopenmp-simd", *CHECKED, source, "-o", program, "-lm")
    run(program)
