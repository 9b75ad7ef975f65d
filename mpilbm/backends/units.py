"""Units of a kernel text: kernels that are compiled together, the units side by side.

The flags allow no compiler to change a result, so the kernels have the same bits as in one unit.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mpilbm.codegen.program import Kernel, Program

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> tuple[int, ...]:
    """The cores on which this process may run; empty where the system does not report them."""
    found = getattr(os, "sched_getaffinity", None)
    return tuple(sorted(found(0))) if found else ()


def side_by_side(action: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The result of an action for each item, in threads, one for each core; the first error."""
    every = list(items)
    most = len(cores()) or os.cpu_count() or 1
    with ThreadPoolExecutor(max(1, min(len(every), most))) as pool:
        return list(pool.map(action, every))


def label(kernel: Kernel) -> str:
    """Equal for kernels of the same unit.

    The kernels over links are short. Those that compute a step take long to compile.
    """
    if kernel.phase == "collide":
        return kernel.name
    if kernel.optional:
        return f"role {kernel.role}, parity {kernel.parity}"
    return f"over links, parity {kernel.parity}" if kernel.over_links else f"role {kernel.role}"


class Units:
    """The compiled units of a program; a unit is compiled at the latest when it is used.

    `compiled(kernels)` compiles and loads the unit of these kernels, in any thread.
    """

    def __init__(self, program: Program, compiled: Callable[[list[Kernel]], Any]):
        self._compiled, self._loaded = compiled, dict[str, Any]()
        self._labels = {name: label(kernel) for name, kernel in program.kernels.items()}
        self._kernels: dict[str, list[Kernel]] = {}
        for name, found in self._labels.items():
            self._kernels.setdefault(found, []).append(program.kernels[name])

    def load(self, names: Iterable[str]) -> None:
        """Compile the units of these kernels side by side; raises the first MpilbmError."""
        wanted = dict.fromkeys(self._labels[name] for name in names)
        missing = [each for each in wanted if each not in self._loaded]
        if missing:
            found = side_by_side(lambda each: self._compiled(self._kernels[each]), missing)
            self._loaded.update(zip(missing, found, strict=True))

    def of(self, name: str) -> Any:
        """What `compiled` returned for the unit of a kernel."""
        self.load([name])
        return self._loaded[self._labels[name]]
