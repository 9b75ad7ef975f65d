"""Units of a kernel text: parts that a C compiler compiles on their own, side by side.

The flags allow no compiler to change a result, so the kernels have the same bits as in one unit. A
unit is kept in the cache by its text: cases that differ in the collision share most of their units.
"""

import ctypes
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpilbm.backends.workers import cores
from mpilbm.codegen.program import Kernel, Program
from mpilbm.core.errors import MpilbmError

# The bodies of these kernels are long lists of addresses, with which this part of GCC takes most of
# the time, for code that is not faster.
COPY_FLAGS = ("-fno-ivopts",)

Build = Callable[[str, tuple[str, ...]], Path]  # a text and further flags to a shared object


@dataclass(frozen=True)
class Unit:
    """Kernels that are compiled together: their text, and flags besides those of all kernels."""

    text: str
    flags: tuple[str, ...] = ()


def units(program: Program) -> dict[str, Unit]:
    """The unit of each kernel, by its name."""
    labels = {name: _label(kernel) for name, kernel in program.kernels.items()}
    found = {}
    for label in dict.fromkeys(labels.values()):
        kernels = [program.kernels[name] for name in labels if labels[name] == label]
        found[label] = _unit(program, kernels)
    return {name: found[label] for name, label in labels.items()}


def _label(kernel: Kernel) -> str:
    """Equal for kernels of the same unit.

    The kernels over links are short. Those that compute a step take long to compile.
    """
    if kernel.phase == "collide":
        return kernel.name
    if kernel.optional:
        return f"role {kernel.role}, parity {kernel.parity}"
    return f"over links, parity {kernel.parity}" if kernel.over_links else f"role {kernel.role}"


def _unit(program: Program, kernels: list[Kernel]) -> Unit:
    collide = any(kernel.phase == "collide" for kernel in kernels)
    copy = any(kernel.phase == "copy" for kernel in kernels)
    head = program.head if collide else f"#define NO_LINES\n{program.head}"
    bodies = (program.bodies[kernel.name] for kernel in kernels)
    return Unit("\n".join([head, *bodies]), COPY_FLAGS if copy else ())


class Library:
    """The compiled kernels of a program; a unit is compiled at the latest when it is used."""

    def __init__(self, program: Program, build: Build):
        self._units, self._build = units(program), build
        self._loaded: dict[Unit, ctypes.CDLL] = {}

    def load(self, names: Iterable[str]) -> None:
        """Compile the units of these kernels side by side; raises the first MpilbmError."""
        wanted = dict.fromkeys(self._units[name] for name in names)
        missing = [unit for unit in wanted if unit not in self._loaded]
        most = len(cores()) or os.cpu_count() or 1
        with ThreadPoolExecutor(max(1, min(len(missing), most))) as pool:
            for unit, library in zip(missing, pool.map(self._open, missing), strict=True):
                self._loaded[unit] = library

    def function(self, name: str) -> Any:
        """The function of a kernel."""
        self.load([name])
        return getattr(self._loaded[self._units[name]], name)

    def _open(self, unit: Unit) -> ctypes.CDLL:
        path = self._build(unit.text, unit.flags)
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            message = str(error).replace(str(path), str(path.resolve()))
            raise MpilbmError(
                f"the kernels just compiled cannot be loaded: {message}; if "
                f"{path.resolve().parent} is on a file system mounted with noexec, set "
                "MPILBM_CACHE_DIR to another directory"
            ) from error
