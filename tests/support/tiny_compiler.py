"""The Tiny C Compiler, which compiles a kernel text in a twentieth of the time of GCC with -O0.

It ignores the words that only make kernels fast: alignment, restrict, pragmas. The headers and
words of GCC that it lacks are in support/tcc, also the conversions of 16-bit floating-point
numbers. The usual compiler compiles the texts that it does not accept.
backends/test_compilers.py compares the bits of both.

`use()` is for this process, `use_in_commands()` for those that tests start: they find it in $CC,
with the compiler that they would use without it.
"""

import os
import shlex
import shutil
import subprocess
from functools import cache as once
from pathlib import Path

from mpilbm.backends.cpu import compiler
from mpilbm.core.machine import cache
from support import TESTS

HEADERS = TESTS / "support" / "tcc"
PROGRAM = str(HEADERS / "cc")
COMMAND = PROGRAM, "false", "--"  # no other compiler for texts that it does not accept
USUAL, FIND = compiler.Compiler._run, compiler.find


@once
def works() -> bool:
    """Whether there are such a compiler and a C library."""
    if not shutil.which("tcc") or not shutil.which("bash"):
        return False
    version = compiler._version(COMMAND)[0]
    return bool(version) and not compiler.problem_of(COMMAND, version)


@once
def mark() -> str:
    """A definition that no kernel text uses, among the flags of kernels that tcc compiles.

    It puts the compiler and its headers into the key of the kernel cache.
    """
    return f"-DTINY_COMPILER=0x{cache.digest(compiler._version(COMMAND)[0])[:8]}"


@once
def default() -> compiler.Compiler:
    """The compiler that cases without `backend.compiler` use, but for `use_in_commands()`."""
    return compiler.find()


def use() -> None:
    """Compile kernels whose flags contain `mark()` by tcc, in place of the default compiler."""
    default()
    compiler.Compiler._run = run


def chosen() -> bool:
    """Whether $CC was set by `use_in_commands()`, perhaps of the process that started this one."""
    return PROGRAM in os.environ.get("CC", "")


def use_in_commands() -> None:
    """Let the processes that tests start compile kernels by tcc; this process ignores its $CC."""
    if chosen():
        del os.environ["CC"]
    os.environ["CC"] = shlex.join([PROGRAM, *default().command, "--"])
    compiler.find = find


def find(name: str | None = None) -> compiler.Compiler:
    """Replaces `compiler.find`."""
    return default() if name is None and chosen() else FIND(name)


def run(
    self: compiler.Compiler, flags: tuple[str, ...], source: Path, target: Path
) -> subprocess.CompletedProcess:
    """Replaces `Compiler._run`."""
    if mark() in flags and self == default():
        words = [*COMMAND, source, "-o", target]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == 0:
            return done
    return USUAL(self, flags, source, target)
