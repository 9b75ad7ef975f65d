"""C compilers: finds one, and compiles kernel text to a shared object in the cache."""

import contextlib
import functools
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from mpilbm.core import machine
from mpilbm.core.errors import CaseError, FileSystemError, MpilbmError
from mpilbm.core.machine import cache
from mpilbm.core.machine.activity import activity

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-fopenmp-simd",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",  # else GCC does not put conditional terms into vectors
    "-shared",
    "-fPIC",
)
# GCC and Clang halve the width of vectors on many CPUs that have AVX-512.
WIDE = "-mprefer-vector-width=512"
NAMES = ("cc", "gcc", "clang", "icx", "zig")
TRIED = ("cc", "gcc", "clang", "zig")  # in this order, after $CC
PROBE = "#include <math.h>\n#include <stdint.h>\ndouble f(double x) { return exp(x); }\n"
SECONDS = 60
INSTALL = "pip install 'mpilbm[cpu]', or apt-get install gcc libc6-dev, or dnf install gcc"


def valid_name(name: str) -> bool:
    """Whether a case may name this compiler: a case must not start any other program."""
    return re.fullmatch(rf"({'|'.join(NAMES)})(-\d+)?", name) is not None


@dataclass(frozen=True)
class Compiler:
    """A compiler: a command that accepts the options of cc, and its version."""

    command: tuple[str, ...]
    version: str

    def build(self, text: str, more: tuple[str, ...] = ()) -> Path:
        """The shared object of a kernel text for this CPU, from the cache if it is there.

        `more`: flags that reduce the time to compile, for compilers that accept them. Raises
        MpilbmError with the compiler's first lines and the file that holds the text.
        """
        wide = (WIDE,) if "avx512f" in cpu()[1].split() else ()
        flags = (*FLAGS, *wide, *more)
        key = cache.digest(text, *flags, *self.command, self.version, *cpu())
        return cache.path("so", key) or self._compile(text, key, flags)

    def _compile(self, text: str, key: str, flags: tuple[str, ...]) -> Path:
        with temporary_folder() as folder:
            source, target = Path(folder, "kernels.c"), Path(folder, "kernels.so")
            source.write_text(text, encoding="utf-8")
            done = self._run(flags, source, target)
            if done.returncode and flags != FLAGS:
                done = self._run(FLAGS, source, target)
            if done.returncode == 0:
                return cache.put("so", key, target.read_bytes())
            lines = done.stderr.replace(str(source), "kernels.c").splitlines()
        kept = cache.put("c", key, text.encode()).resolve()
        lead = f"{shlex.join(self.command)} could not compile the kernels (text: {kept}):"
        raise MpilbmError([lead, *lines[:12], _fix(done.returncode)])

    def _run(
        self, flags: tuple[str, ...], source: Path, target: Path
    ) -> subprocess.CompletedProcess:
        command = [*self.command, *flags, str(source), "-o", str(target), "-lm"]
        return machine.run(command, cwd=source.parent, env=environment())


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A temporary folder; MpilbmError if none can be written."""
    try:
        with tempfile.TemporaryDirectory(prefix="mpilbm-") as folder:
            yield folder
    except OSError as error:
        machine.refuse_if_exhausted(error, "the kernels cannot be compiled")
        raise FileSystemError(
            f"the kernels cannot be compiled: {error}; if it is the folder for temporary files "
            "that is full or read-only, set TMPDIR to another one"
        ) from error


def _fix(code: int) -> str:
    """The advice for an exit code of a compiler; a negative one is that of a signal."""
    if code < 0:
        return f"It was killed by signal {-code}; perhaps memory ran out: use fewer ranks a node"
    return (
        f"If it lacks headers or is too old, set CC to another compiler, or install one: {INSTALL}"
    )


def find(name: str | None = None) -> Compiler:
    """The compiler `name`; by default the first of $CC, cc, gcc, clang and the ziglang package.

    A compiler that the user has not named is used only if it compiles a test. Raises CaseError if
    there is none, with the reason why each compiler that was found cannot be used.
    """
    chosen = os.environ.get("CC", "")
    refused = []
    for words in [name] if name else [chosen, *TRIED]:
        if command := _locate(words):
            with activity(f"testing the C compiler {shlex.join(command)}"):
                answer, problem = _version(command)
                if answer and words not in (name, chosen):
                    problem = problem_of(command, answer)
            if not problem:
                return Compiler(command, answer)
            refused.append(f"{shlex.join(command)} {problem}")
    if refused:
        found = f"no C compiler can be used: {'; '.join(dict.fromkeys(refused))}"
    else:
        found = f"the compiler '{name}' is not there" if name else "no C compiler was found"
    raise CaseError(f"{found}; {INSTALL}", where="backend.compiler")


def problem_of(command: tuple[str, ...], version: str, text: str = PROBE) -> str:
    """Why a compiler cannot compile a text to a library, such as missing headers; "" if it can."""
    key = cache.digest(text, *command, version)
    if cache.get("compiler", key) is not None:
        return ""
    with temporary_folder() as folder:
        source = Path(folder, "probe.c")
        source.write_text(text, "utf-8")
        flags = ["-shared", "-fPIC", "probe.c", "-o", "probe.so", "-lm"]
        done = machine.run([*command, *flags], cwd=folder, env=environment())
    if done.returncode == 0:
        cache.put("compiler", key, b"")
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return f"cannot compile ({lines[0] if lines else f'exit code {done.returncode}'})"


def environment() -> dict[str, str]:
    """The environment of a compiler. Zig gets a writable folder: its own, or one in the cache."""
    name, found = "ZIG_GLOBAL_CACHE_DIR", machine.environment()
    folder = Path(platformdirs.user_cache_dir("zig"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    return {name: str(folder if usable else cache.subfolder("zig"))} | found


def _locate(words: str) -> tuple[str, ...] | None:
    """The command of a compiler with the full path of the program; None if it is not found."""
    if words == "zig" and find_spec("ziglang"):
        return (sys.executable, "-P", "-m", "ziglang", "cc")
    try:
        command = shlex.split(words)
    except ValueError as error:
        raise CaseError(f"CC={words}: {error}; write it as in a shell", "environment") from None
    if command and os.path.dirname(command[0]) and not os.path.isabs(command[0]):
        raise CaseError(
            f"CC={words}: {command[0]} depends on the current folder; give its absolute path, "
            "or the name of a program in PATH",
            "environment",
        )
    program = machine.locate(command[0]) if command else None
    if program is None:
        return None
    return (program, *(("cc",) if words == "zig" else command[1:]))


@functools.cache
def _version(command: tuple[str, ...]) -> tuple[str, str]:
    """The first line of a compiler's --version, or "" and the reason why it cannot be used."""
    try:
        done = machine.run([*command, "--version"], cwd="/", timeout=SECONDS, env=environment())
    except OSError as error:
        return "", f"cannot be started ({error.strerror})"
    except subprocess.TimeoutExpired:
        return "", f"--version gives no answer within {SECONDS} s"
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return lines[0], ""
    lines = done.stderr.strip().splitlines() or ["without a message"]
    return "", f"--version ends with exit code {done.returncode} ({lines[-1]})"


@functools.cache
def cpu() -> tuple[str, str]:
    """Model and instruction-set flags of this machine's CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine(), ""
    entries = [[part.strip() for part in line.partition(":")[::2]] for line in reversed(lines)]
    known = dict(entries)
    name = known.get("model name") or platform.machine()
    return name, known.get("flags") or known.get("Features", "")
