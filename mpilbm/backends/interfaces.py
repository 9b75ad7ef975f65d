"""The interface of devices to other layers: arrays, streams, events, kernels and launches."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

# A 1-D array in the device's memory, of NumPy or of CuPy. CuPy has no type annotations.
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
