"""Values that depend on time: body forces as kernel arguments, and arrays of boundary values."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array, Event, Launch, Stream
from mpilbm.case.case import Case
from mpilbm.codegen.program import Kernel
from mpilbm.core.errors import CaseError, FunctionError
from mpilbm.solver.graph_replay import MARKS_AHEAD, STEPS_AHEAD

BUFFER_BYTES = 2**26


class ForceNumbers:
    """The numbers of forces on fluids and of sources of scalars, as kernel arguments."""

    def __init__(self, case: Case):
        self._size = case.domain.size
        self._values = case.kernel_values
        self._timed = {name for value in self._values for name in value.timed}
        self._launches: list[tuple[Launch, bool, set[str]]] = []  # launch, whether at t + 1, names

    @property
    def timed(self) -> bool:
        """Whether any component depends on time."""
        return bool(self._timed)

    def at(self, t: int) -> dict[str, float]:
        """The arguments at time t; before step 0 those at t = 0."""
        found = [value.evaluate(self._size, max(t, 0)) for value in self._values]
        return {name: number for numbers in found for name, number in numbers.items()}

    def follow(self, launch: Launch, kernel: Kernel) -> None:
        """From now on `update` sets the arguments of this launch that depend on time.

        Boundary kernels compute incoming populations from the outgoing populations of time t; all
        other kernels collide at t + 1.
        """
        names = self._timed & {argument.name for argument in kernel.arguments}
        if names:
            self._launches.append((launch, kernel.phase != "boundary", names))

    def update(self, t: int) -> None:
        """Set the arguments for the step from t to t + 1."""
        if not self._launches:
            return
        now, then = self.at(t), self.at(t + 1)
        for launch, later, names in self._launches:
            numbers: Mapping[str, float] = then if later else now
            launch.set(**{name: numbers[name] for name in names})


class TimedArray:
    """A 1-D device array that is set to `values(t)` in the order of a stream, asynchronously.

    `update` raises FunctionError if a function of a program fails.

    ```
    host      | values 0 | … | values 1 | …     | values n (copy 0 is done)
    stream               | copy 0 | lists, step … | copy 1 | lists, step …
    ```

    Each copy has a buffer in pinned host memory. There are buffers for all steps by which the host
    may be ahead of the device (see graph_replay.StepsAhead); where an array takes megabytes there
    are fewer, and the host may wait for the oldest copy.
    """

    def __init__(
        self, device: Device, stream: Stream, target: Array, values: Callable[[float], ArrayLike]
    ):
        self._device, self._stream, self._target, self._values = device, stream, target, values
        self._buffers: list[tuple[Event | None, np.ndarray]] = []  # (event after the copy, buffer)
        most = (MARKS_AHEAD + 1) * STEPS_AHEAD
        self._most = min(most, max(2, BUFFER_BYTES // max(1, target.nbytes)))
        self._count = 0

    def update(self, t: float) -> None:
        """Enqueue the copy of the values at time t."""
        k, target = self._count % self._most, self._target
        if k == len(self._buffers):
            self._buffers.append((None, self._device.pinned(target.size, target.dtype)))
        copied, host = self._buffers[k]
        if copied is not None:
            copied.synchronize()
        try:
            host[:] = np.reshape(self._values(t), -1)
        except CaseError as error:  # of a function of a program, on this rank
            raise FunctionError("; ".join(error.problems)) from error
        self._device.copy(target, host, self._stream)
        self._buffers[k] = self._stream.record(), host
        self._count += 1
