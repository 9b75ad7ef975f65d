"""C compilers: finding one, and kernel text -> shared object, kept in the cache."""

import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
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
        raise MpilbmError([
            f"{shlex.join(self.command)} could not compile the kernels "
            f"(text: {cache.put('c', key, text.encode())}):",
            *words[:12],
            "If it lacks headers or is too old, set CC to another compiler, "
            f"or install one: {INSTALL}",
        ])  # fmt: skip

    def _run(self, flags, source: Path, target: Path) -> subprocess.CompletedProcess:
        command = [*self.command, *flags, str(source), "-o", str(target), "-lm"]
        return subprocess.run(command, capture_output=True, text=True, errors="replace")


def find(name: str | None = None) -> Compiler:
    """The compiler of this name, else the first of $CC, cc, gcc, clang and the ziglang package.

    Raises CaseError where there is none.
    """
    wanted = [name] if name else [os.environ.get("CC", ""), "cc", "gcc", "clang", "zig"]
    for words in wanted:
        command = _locate(words)
        answer = _version(command) if command else None
        if answer is not None:
            return Compiler(command, answer)
    found = f"the compiler '{name}' is not there" if name else "no C compiler was found"
    raise CaseError(f"{found}; {INSTALL}", where="backend.compiler")


def _locate(words: str) -> tuple[str, ...] | None:
    """The full command behind the words of a compiler, or None."""
    if words == "zig" and importlib.util.find_spec("ziglang"):
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
