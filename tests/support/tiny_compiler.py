"""The Tiny C Compiler, which compiles a kernel text in a twentieth of the time of GCC with -O0.

It ignores the words that only make kernels fast: alignment, restrict, pragmas. The headers and
words of GCC that it lacks are in support/tcc, also the conversions of 16-bit floating-point
numbers. The usual compiler compiles the texts that it does not accept.
backends/test_compilers.py compares the bits of both.
"""

import shutil
import subprocess
from functools import cache as once
from pathlib import Path

from mpilbm.backends.cpu import compiler
from mpilbm.core.machine import cache
from support import TESTS

HEADERS = TESTS / "support" / "tcc"
FLAGS = ("-Werror", "-Wimplicit-function-declaration", "-DNO_VECTORS", "-shared", f"-I{HEADERS}")
USUAL = compiler.Compiler._run
HALVES = {  # what a kernel text says of 16-bit numbers, and what halves.h has for it
    "typedef _Float16 half;": "typedef store half;",
    "(float)((half_bits){.bits = bits}).value": "float_of_half(bits)",
    "((half_bits){.value = (half)value}).bits": "half_of_float(value)",
}


@once
def command() -> tuple[str, ...] | None:
    """The command that compiles kernels; None where there is no such compiler or no C library."""
    program = shutil.which("tcc")
    version = compiler._version((program,))[0] if program else ""
    usable = version and not compiler.problem_of((program,), version)
    return (program, *FLAGS) if usable else None


@once
def mark() -> str:
    """A definition that no kernel text uses, among the flags of kernels that tcc compiles.

    It puts the compiler and its headers into the key of the kernel cache.
    """
    headers = (path.read_text() for path in sorted(HEADERS.iterdir()))
    words = [*command(), *map(":".join, HALVES.items())]
    key = cache.digest(*words, *compiler._version(command()[:1]), *headers)
    return f"-DTINY_COMPILER=0x{key[:8]}"


@once
def default() -> compiler.Compiler:
    """The compiler that cases without `backend.compiler` use."""
    return compiler.find()


def use() -> None:
    """Compile kernels whose flags contain `mark()` by tcc, in place of the default compiler."""
    default()
    compiler.Compiler._run = run


def run(
    self: compiler.Compiler, flags: tuple[str, ...], source: Path, target: Path
) -> subprocess.CompletedProcess:
    """Replaces `Compiler._run`."""
    if mark() in flags and self == default():
        text = source.read_text("utf-8")
        for word, meaning in HALVES.items():
            text = text.replace(word, meaning)
        tiny = source.with_name("tiny.c")
        tiny.write_text(text, "utf-8")
        words = [*command(), tiny, "-o", target, "-lm"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == 0:
            return done
    return USUAL(self, flags, source, target)
