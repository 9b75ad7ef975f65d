"""Compilers of HIP texts for AMD GPUs; they need no GPU."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache as once
from pathlib import Path

import pytest

RUNTIME_COMPILERS = ("libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5")
BITCODE = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")  # of Debian's rocm-device-libs
HEADER = ("-include", "hip/hip_runtime.h")  # which the compiler at run time includes by itself
REPORT = "-Rpass-analysis=kernel-resource-usage"
SCRATCH = re.compile(r"Function Name: (\w+).*?ScratchSize \[bytes/lane\]: (\d+)", re.S)


@once
def command(target: str) -> tuple[str, ...] | None:
    """The first of `hipcc` and newer versions of Clang that compiles for a target, or None.

    Clang before 17 does not know gfx942.
    """
    newer = [shutil.which(f"clang++-{version}") for version in range(30, 16, -1)]
    place = f"--rocm-device-lib-path={bitcode(target).name}"
    clangs = [(name, "-O3", place) for name in newer if name]
    for words in ([(shutil.which("hipcc"),)] if shutil.which("hipcc") else []) + clangs:
        options = (*words, "-x", "hip", *HEADER, f"--offload-arch={target}")
        found = (*options, "--cuda-device-only", "--no-gpu-bundle-output", "-c")
        if compiled(found, "__global__ void nothing() {}").returncode == 0:
            return found
    return None


@once
def bitcode(target: str) -> tempfile.TemporaryDirectory:
    """A folder with the device libraries; that of gfx940 replaces a missing one of gfx942."""
    held = tempfile.TemporaryDirectory()
    folder = Path(held.name)
    for path in BITCODE.glob("*.bc"):
        (folder / path.name).symlink_to(path)
    own = folder / f"oclc_isa_version_{target.removeprefix('gfx')}.bc"
    if not own.exists():
        own.symlink_to(BITCODE / "oclc_isa_version_940.bc")
    return held


def require(found: object, what: str) -> None:
    """Fail the test without a compiler."""
    if found is None:
        pytest.fail(f"no {what}: apt-get install hipcc clang-19 lld-19")


def compiled(words: tuple[str, ...], text: str) -> subprocess.CompletedProcess:
    """The finished compiler for a text."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.hip")
        source.write_text(text)
        return subprocess.run(
            [*words, str(source), "-o", f"{folder}/kernels.o"],
            env=os.environ | {"HIP_PLATFORM": "amd"},  # else an installed nvcc is used
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip


def scratch(report: str) -> dict[str, int]:
    """Bytes of a thread that are not in registers, for each kernel in a report of the compiler."""
    return {name: int(size) for name, size in SCRATCH.findall(report)}


@once
def runtime_compiler() -> ctypes.CDLL | None:
    """HIPRTC, or None."""
    for name in RUNTIME_COMPILERS:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compiled_at_run_time(text: str, *options: str) -> tuple[int, str]:
    """(size of the machine code, the compiler's messages) of HIPRTC; the size is 0 on errors."""
    library, program, size = runtime_compiler(), ctypes.c_void_p(), ctypes.c_size_t()
    words = [option.encode() for option in options]
    library.hiprtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels", 0, None, None)
    error = library.hiprtcCompileProgram(
        program, len(words), (ctypes.c_char_p * len(words))(*words)
    )
    library.hiprtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    library.hiprtcGetProgramLog(program, log)
    size = ctypes.c_size_t()
    if not error:
        library.hiprtcGetCodeSize(program, ctypes.byref(size))
    library.hiprtcDestroyProgram(ctypes.byref(program))
    return size.value, log.value.decode()
