"""An emulated GPU: CUDA texts compiled as C++20 and launched as in backends/cuda.py."""

import ctypes
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from functools import cache as once
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from mpilbm.backends import cpu, cuda
from mpilbm.backends.cpu import compiler, kernels
from mpilbm.core.machine import cache
from support import TESTS, precompiled

HEADER = TESTS / "emulation" / "cuda_emulation.h"
LAUNCHER = HEADER.with_suffix(".cpp")
FLAGS = ("-std=c++20", "-O0", "-ffp-contract=off", "-fPIC", "-pthread")
UNUSED = '#pragma GCC diagnostic ignored "-Wunused-parameter"'
KERNEL = re.compile(r"(?:KERNEL|__launch_bounds__)\([^)]*\)\s+(\w+)\([\s\S]*?\)\n{\n  (\w+)")
# Launch macros of kernels in which no thread waits for another:
INDEPENDENT = {"FOR_CELLS", "FOR_CELLS_SENT", "FOR_PAIRS", "FOR_PAIRS_SENT", "FOR_ENTRIES"}
INDEPENDENT |= {"FOR_NODES", "FOR_NODE_LINES"}
DYNAMIC = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+) (\w+)\[\];")


# Whether a compiler converts 16-bit floating-point numbers without a library that may be missing.
PROBE = """
#include <cmath>
#if defined(__clang__) && __clang_major__ < 15
using half = __fp16;
#else
using half = _Float16;
#endif
float converted(half* value) { return *value; }
"""
PROBED = "-Wl,--no-undefined"


@once
def command() -> tuple[str, ...] | None:
    """The command of $CXX or of a C++ compiler, or None; the first use of Zig takes a minute.

    Clang takes half of the time of GCC. Before version 15 it converts halves by instructions of
    this CPU alone.
    """
    if words := os.environ.get("CXX"):
        return tuple(shlex.split(words))
    for name, *flags in (("clang++", "-march=native"), ("c++",), ("g++",), ("clang++",)):
        found = shutil.which(name)
        version = compiler._version((found,))[0] if found else ""
        if version and not compiler.problem_of((found, *flags, PROBED), version, PROBE):
            return (found, *flags)
    return (sys.executable, "-m", "ziglang", "c++") if find_spec("ziglang") else None


@once
def macros_of(text: str) -> dict[str, str]:
    """The launch macro of each kernel of a text."""
    return dict(KERNEL.findall(text))


@once
def launched(text: str) -> str:
    """A text with a function that launches each of its kernels."""
    ends = "".join(f"LAUNCH({name})\n" for name in macros_of(text))
    return DYNAMIC.sub(r"DYNAMIC_SHARED(\1, \2);", text) + f"\n{ends}"


def build(text: str, *defined: str) -> Path:
    """The shared object of a CUDA text, from the cache or compiled."""
    text = launched(text)
    header, family = HEADER.read_text(), precompiled.family(command())
    if family:
        precompiled.load_libraries(digest("libraries"), compiled)
    key = digest(header, text, LAUNCHER.read_text(), *defined)
    if found := cache.path("emulated.so", key):
        return found
    flags, after = ["-shared", *defined], ()
    if family:
        text = f"{UNUSED}\n{text}"  # a precompiled header does not keep it
        flags += precompiled.header(family, header, digest(header), compiled)
        after = precompiled.WITHOUT_LIBRARIES
    else:
        text = f"{header}\n{text}"
    return cache.put("emulated.so", key, compiled(text, flags, launcher(), after=after))


def digest(*parts: str) -> str:
    return cache.digest(*parts, *FLAGS, *command(), *compiler._version(command()))


@once
def launcher() -> bytes:
    """The object file shared by all texts, from the cache or compiled."""
    text = LAUNCHER.read_text().replace(f'#include "{HEADER.name}"', HEADER.read_text())
    flags = "-c", "-O2"  # compiled once, and it copies what kernels load
    return precompiled.kept("emulated.o", digest(text, *flags), lambda: compiled(text, flags))


def compiled(text: str, flags, *objects: bytes, after=()) -> bytes:
    """The output file of the compiler for a text and object files; `after`: flags behind these."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "kernels.cpp"), Path(folder, "kernels.out")
        source.write_text(text, encoding="utf-8")
        sources = [source, *(Path(folder, f"{k}.o") for k in range(len(objects)))]
        for path, data in zip(sources[1:], objects, strict=True):
            path.write_bytes(data)
        words = [*command(), *FLAGS, *flags, *sources, *after, "-o", target]
        done = subprocess.run(words, capture_output=True, text=True, env=compiler.environment())
        if done.returncode:
            kept = cache.put("cpp", digest(text), text.encode()).resolve()
            raise AssertionError("\n".join([f"see {kept}", *done.stderr.splitlines()[:12]]))
        return target.read_bytes()


class Stream(kernels.Stream):
    """A queue that receives the launches within `with stream.cupy`."""

    def __init__(self, device: "EmulatedDevice"):
        super().__init__()
        self._device, self.cupy = device, self

    def __enter__(self):
        self._device.current = self

    def __exit__(self, *error):
        self._device.current = None


class Module:
    """Replaces `cupy.RawModule`."""

    def __init__(self, device: "EmulatedDevice", code: str, backend: str, options: tuple[str, ...]):
        self._device, self._code = device, code
        self._defined = [option for option in options if option.startswith("-D")]

    def compile(self) -> None:
        self._library = ctypes.CDLL(str(build(self._code, *self._defined)))
        self._macros = macros_of(self._code)

    def get_function(self, name: str) -> "Function":
        together = self._macros[name] not in INDEPENDENT or "-DJOINT" in self._defined
        return Function(self._device, getattr(self._library, f"launch_{name}"), name, together)


class Function:
    """A kernel of a module; calls have a grid, a block and arguments."""

    local_size_bytes, num_regs = 0, 0

    def __init__(self, device: "EmulatedDevice", launch, name: str, together: bool):
        self._device, self._launch, self._name, self._together = device, launch, name, together
        launch.restype = ctypes.c_bool

    def __call__(self, grid, block, values, *, shared_mem: int = 0) -> None:
        """Enqueue a launch."""
        sizes = [*(*grid, 1, 1)[:3], *(*block, 1, 1)[:3], shared_mem, self._together]
        held = [_held(value) for value in values]
        addresses = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
        shape = (ctypes.c_uint * len(sizes))(*sizes)
        self._device.current.submit(partial(self._run, shape, addresses, held))

    def _run(self, shape, addresses, held) -> None:
        assert self._launch(shape, addresses), f"kernel {self._name} failed, see stderr"


def _held(value):
    """The ctypes object of an argument; a structure is passed by value, as by CuPy."""
    if value.dtype.kind == "V":
        return (ctypes.c_ubyte * value.nbytes).from_buffer(value)
    return kernels._as_ctypes(value)


class Array(np.ndarray):
    """An array with the attribute `data.ptr`, as CuPy's arrays have."""

    data = property(lambda self: SimpleNamespace(ptr=self.ctypes.data))


STREAMS = "edge", "bulk", "copy", "special", "lists", "lists 2", "lists 3"  # of CudaDevice


class EmulatedDevice(cpu.CpuDevice, cuda.CudaDevice):
    """A device with the memory of a CPU and the kernels and launches of a GPU."""

    capability, shared_memory, processors = 90, 227 * 1024, 4

    def __init__(self, fused: bool = False):
        super().__init__(compiler.find())
        errors = SimpleNamespace(compiler=SimpleNamespace(CompileException=OSError))
        self._cupy = SimpleNamespace(RawModule=partial(Module, self), cuda=errors)
        self._fused, self.current = fused, None
        self._streams = {name: Stream(self) for name in STREAMS}

    def allocate(self, count: int, dtype) -> Array:
        """A 1-D array of zeros."""
        return super().allocate(count, dtype).view(Array)

    def attach(self) -> None:
        """There is only one device."""

    compile, apply_walls = cuda.CudaDevice.compile, cuda.CudaDevice.apply_walls
    two_steps, sweep_of = cuda.CudaDevice.two_steps, cuda.CudaDevice.sweep_of


def encode_tiled(found, kind, rank, address, sizes, strides, box, steps, *modes) -> int:
    """Emulates cuTensorMapEncodeTiled for a box without gaps, with the checks of CUDA's manual."""
    value_bytes = {6: 2, 7: 4, 8: 8}[kind.value]
    good = rank.value == 4 and list(steps) == [1, 1, 1, 1] and found.value % 64 == 0
    good &= address.value % 16 == 0 and not any(stride % 16 for stride in strides)
    good &= max(box) <= 256 and box[0] * value_bytes % 16 == 0
    numbers = address.value, *sizes, *strides, *box, value_bytes
    ctypes.memmove(found, struct.pack("=QQQQQQQQIIIII", *numbers), 84)
    return 0 if good else 1
