"""The interface of devices to other layers, and the check of the arguments of kernels."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from mpilbm.codegen.program import Kernel, Program

NUMBERS = {"int": "int32", "float": "float32", "double": "float64"}

# A 1-D array in the device's memory: of NumPy, of CuPy (which has no type annotations), or a
# BufferArray of OpenCL.
Array: TypeAlias = Any


class Event(Protocol):
    """A point in a stream."""

    @property
    def done(self) -> bool:
        """Whether the device has reached this point."""

    def synchronize(self) -> None:
        """Wait on the host until the device has reached this point."""

    def seconds_since(self, earlier: Any) -> float:
        """Seconds from another event of the same device; both recorded with `timed`."""


class Stream(Protocol):
    """A queue of a device: its work runs in the order in which it was enqueued."""

    def record(self, timed: bool = False) -> Event:
        """An event after all work enqueued so far."""

    def wait(self, event: Any) -> None:
        """Work enqueued from now on runs after that event of the same device."""

    def flush(self) -> None:
        """Let the enqueued work begin, on devices that need this."""

    def synchronize(self) -> None:
        """Wait on the host until all enqueued work is done."""


class Runner(Protocol):
    """Enqueues work on the planes (or boundary entries) begin, begin + stride, … < end."""

    def __call__(self, stream: Any, begin: int, end: int, stride: int = 1) -> None:
        """Enqueue it in a stream."""


class Launch(Runner, Protocol):
    """A kernel with its arguments."""

    @property
    def joint(self) -> Callable[[Array], Runner] | None:
        """A function that makes the launch exchange edge planes, too; None if it cannot.

        Its argument is `struct Faces` of prelude_flags.h in the device's memory. It returns what
        computes all planes of the slab and exchanges those at the faces, in one launch.
        """

    def set(self, **numbers: float) -> None:
        """Replace numbers among the arguments, for later calls."""


class Resources(NamedTuple):
    """Resources of a GPU that a kernel uses; zeros on a CPU."""

    registers: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0


class CompiledKernel(Protocol):
    """A kernel without arguments."""

    def bind(self, **arguments: Any) -> Launch:
        """Fix all arguments; raises TypeError if one is missing, unknown or of another type."""

    def resources(self) -> Resources:
        """The resources that the kernel uses."""


class Parts(NamedTuple):
    """Planes of the parts of a pass that overlaps its halo exchange.

    edge   edge planes at each face with a neighbour
    block  planes of a block of the bulk, at most
    """

    edge: int
    block: int


class TwoStepsKernel(CompiledKernel, Protocol):
    """A kernel that computes two steps in one pass over memory."""

    def parts(self, planes: int, faces: int, sent: int) -> Parts | None:
        """How a slab is divided so that its exchange overlaps; None: it is not divided.

        `faces`: those with a neighbour; `sent`: bytes sent in an exchange. After the first `bind`.
        """

    def bind_parts(self, parts: Parts, **arguments: Any) -> tuple[Runner, Runner]:
        """What computes the edge planes at both ends of a range, and what computes a range."""


def dtype_of(kind: str, program: Program) -> np.dtype:
    """The number format of a kernel's argument, or of the values that it points to."""
    base = kind.removesuffix("*")
    formats = {"real": program.compute, "store": program.storage, "wide": program.widest, **NUMBERS}
    return np.dtype(formats.get(base, base))


def checked(kernel: Kernel, program: Program, given: Mapping[str, Any]) -> list[Any]:
    """The values of a kernel's arguments in the kernel's order: 1-D arrays and NumPy scalars.

    Raises TypeError if a name is missing or unknown, or a value is not of the argument's type: a
    kernel would read a pointer to another format without an error.
    """
    expected = [argument.name for argument in kernel.arguments]
    if set(expected) != set(given):
        missing, unknown = set(expected) - set(given), set(given) - set(expected)
        raise TypeError(
            f"kernel {kernel.name}: missing {sorted(missing)}, unknown {sorted(unknown)}"
        )
    return [
        _checked_value(
            f"kernel {kernel.name}, argument {argument.name} ({argument.type})",
            argument.type.endswith("*"),
            dtype_of(argument.type, program),
            given[argument.name],
        )
        for argument in kernel.arguments
    ]


def _checked_value(where: str, pointer: bool, dtype: np.dtype, value: Any) -> Any:
    if pointer:
        found = getattr(value, "dtype", type(value).__name__)
        if found != dtype:
            raise TypeError(f"{where}: found {found}, allowed an array of {dtype}")
        if not value.flags.c_contiguous:
            raise TypeError(f"{where}: the array is not contiguous")
        return value
    if dtype.kind == "i" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise TypeError(f"{where}: {value} does not fit {dtype}")
    scalar = dtype.type(value)
    if dtype.kind == "i" and scalar != value:
        raise TypeError(f"{where}: {value} is not a whole number")
    return scalar


def changed(kernel: Kernel, values: list[Any], numbers: Mapping[str, float]) -> list[Any]:
    """The values from `checked` with other numbers."""
    places = {argument.name: k for k, argument in enumerate(kernel.arguments)}
    values = list(values)
    for name, number in numbers.items():
        values[places[name]] = values[places[name]].dtype.type(number)
    return values
