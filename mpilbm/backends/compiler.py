"""C compilers: finding one, and kernel text -> shared object, kept in the cache."""

import functools
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mpilbm import cache
from mpilbm.errors import CaseError, MpilbmError

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-fopenmp-simd",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-shared",
    "-fPIC",
)
# GCC and Clang halve the width of vectors on many CPUs that have AVX-512.
WIDE = "-mprefer-vector-width=512"
NAMES = ("cc", "gcc", "clang", "icx", "zig")
TRIED = ("cc", "gcc", "clang", "zig")  # in this order, after $CC
PROBE = "#include <math.h>\n#include <stdint.h>\ndouble f(double x) { return exp(x); }\n"
INSTALL = "pip install 'mpilbm[cpu]', or apt-get install gcc libc6-dev, or dnf install gcc"


def valid_name(name: str) -> bool:
    """Whether a case may name this compiler: a case must not make us start any other program."""
    return re.fullmatch(rf"({'|'.join(NAMES)})(-\d+)?", name) is not None


@dataclass(frozen=True)
class Compiler:
    """A command that takes the options of cc, and what it says of its version."""

    command: tuple[str, ...]
    version: str

    def build(self, text: str) -> Path:
        """The shared object of a kernel text, compiled for this CPU unless the cache has it.

        Raises MpilbmError with the compiler's first words and the file that holds the text.
        """
        flags = (*FLAGS, WIDE) if "avx512f" in cpu()[1].split() else FLAGS
        key = cache.digest(text, *flags, *self.command, self.version, *cpu())
        return cache.path("so", key) or self._compile(text, key, flags)

    def _compile(self, text: str, key: str, flags: tuple[str, ...]) -> Path:
        with tempfile.TemporaryDirectory(prefix="mpilbm-") as folder:
            source, target = Path(folder, "kernels.c"), Path(folder, "kernels.so")
            source.write_text(text, encoding="utf-8")
            done = self._run(flags, source, target)
            if done.returncode and WIDE in flags:
                done = self._run(FLAGS, source, target)
            if done.returncode == 0:
                return cache.put("so", key, target.read_bytes())
            words = done.stderr.replace(str(source), "kernels.c").splitlines()
        raise MpilbmError(
            "\n".join([
                f"{shlex.join(self.command)} could not compile the kernels "
                f"(text: {cache.put('c', key, text.encode())}):",
                *words[:12],
                "If it lacks headers or is too old, set CC to another compiler, "
                f"or install one: {INSTALL}",
            ])
        )  # fmt: skip

    def _run(self, flags, source: Path, target: Path) -> subprocess.CompletedProcess:
        command = [*self.command, *flags, str(source), "-o", str(target), "-lm"]
        return subprocess.run(command, capture_output=True, text=True, errors="replace")


def find(name: str | None = None) -> Compiler:
    """The compiler of this name, else the first of $CC, cc, gcc, clang and the ziglang package.

    Those that nobody named are used only if they can compile. Raises CaseError if none is found.
    """
    problems = []
    for words in [name] if name else [os.environ.get("CC", ""), *TRIED]:
        command = _locate(words)
        answer = _version(command) if command else None
        if answer is None:
            continue
        problem = "" if words in (name, os.environ.get("CC")) else problem_of(command, answer)
        if not problem:
            return Compiler(command, answer)
        problems.append(f"{command[0]} cannot compile ({problem})")
    found = f"the compiler '{name}' is not there" if name else "no C compiler was found"
    raise CaseError("; ".join([*problems, found, INSTALL]), where="backend.compiler")


def problem_of(command: tuple[str, ...], version: str, text: str = PROBE) -> str:
    """Why a compiler cannot make a library of a text, such as missing headers; "" if it can."""
    key = cache.digest(text, *command, version)
    if cache.get("compiler", key) is not None:
        return ""
    with tempfile.TemporaryDirectory(prefix="mpilbm-") as folder:
        source, target = Path(folder, "probe.c"), Path(folder, "probe.so")
        source.write_text(text)
        flags = ["-shared", "-fPIC", source, "-o", target, "-lm"]
        done = subprocess.run([*command, *flags], capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        cache.put("compiler", key, b"")
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line] or [version]
    return lines[0].removeprefix(f"{source}:")


def _locate(words: str) -> tuple[str, ...] | None:
    """The full command behind the words of a compiler, or None."""
    if words == "zig" and find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "cc")
    command = shlex.split(words)
    program = shutil.which(command[0]) if command else None
    if program is None:
        return None
    return (program, *(("cc",) if words == "zig" else command[1:]))


@functools.cache
def _version(command: tuple[str, ...]) -> str | None:
    """First line of what a compiler says of itself; None if it does not run."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    return lines[0] if done.returncode == 0 and lines else None


@functools.cache
def cpu() -> tuple[str, str]:
    """Model and instruction-set flags of this machine's CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine(), ""
    entries = [[part.strip() for part in line.partition(":")[::2]] for line in reversed(lines)]
    known = dict(entries)
    name = known.get("model name") or platform.machine()
    return name, known.get("flags") or known.get("Features", "")
