"""Values that depend on time: body forces, as kernel arguments or arrays, and boundary values."""

from collections.abc import Callable, Mapping
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array, Event, Launch, Stream
from mpilbm.case.case import Case
from mpilbm.codegen.program import FORCE, Kernel
from mpilbm.core.errors import CaseError, FunctionError
from mpilbm.core.formulas.values import FieldValue
from mpilbm.layouts import AnyGrid
from mpilbm.parallel.slabs import Slab
from mpilbm.solids.build import Geometry
from mpilbm.solver.graph_replay import MARKS_AHEAD, STEPS_AHEAD

BUFFER_BYTES = 2**26  # of the pinned copies of an array
PART_CELLS = 2**20  # whose force the host evaluates together


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
        found: dict[str, float] = {}
        for value in self._values:
            found |= value.evaluate(self._size, max(t, 0))
        return found

    def follow(self, launch: Launch, kernel: Kernel) -> None:
        """From now on `update` sets the arguments of this launch that depend on time.

        Boundary kernels compute incoming populations from the outgoing ones of time t; all other
        kernels collide at t + 1.
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

    ```
    host      | values 0 | … | values 1 | …     | values n (copy 0 is done)
    stream               | copy 0 | lists, step … | copy 1 | lists, step …
    ```

    Each copy has a buffer in pinned host memory, for all steps by which the host may be ahead of
    the device (see graph_replay.StepsAhead); where an array takes megabytes there are fewer
    buffers, and the host may wait. `update` raises FunctionError if a function of a program fails.

    settles: the time from which the values are constant, such as the end of a ramp; they are copied
    once then, because a host needs milliseconds for them and a GPU less for a step.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        target: Array,
        values: Callable[[float], ArrayLike],
        settles: float = inf,
    ):
        self._device, self._stream, self._target, self._values = device, stream, target, values
        self._settles, self._settled = settles, False
        self._buffers: list[tuple[Event | None, np.ndarray]] = []  # (event after the copy, buffer)
        most = (MARKS_AHEAD + 1) * STEPS_AHEAD
        self._most = min(most, max(2, BUFFER_BYTES // max(1, target.nbytes)))
        self._count = 0

    def update(self, t: float) -> None:
        """Enqueue the copy of the values at time t."""
        settled = t >= self._settles
        if settled and self._settled:
            return
        self._settled = settled
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


class ForceField:
    """The force in the cells of a slab and of its ghost planes.

    After t steps the array holds the force at time t; in a step it is replaced between the boundary
    lists and the collision, which uses the force at t + 1. Raises CaseError.

    arguments  the array and the numbers of its memory, by the name of the kernel argument
    timed      whether it changes with time
    """

    def __init__(
        self, case: Case, slab: Slab, geometry: Geometry, grid: AnyGrid, device: Device, type: str
    ):
        self._case, self._slab, self._geometry = case, slab, geometry
        self._grid, self._type = grid.beside(FORCE, case.dimensions), type
        self._values = [value.field for value in case.force_on(0)]
        self.timed = any(value is not None and value.timed for value in self._values)
        self._array: Array = device.upload(self._at(0))
        self._copies = TimedArray(device, device.stream("bulk"), self._array, self._at)
        numbers = self._grid.arguments().items()
        self.arguments = {name: number for name, number in numbers if name.startswith(FORCE)}
        self.arguments[FORCE] = self._array

    def update(self, t: int) -> None:
        """Enqueue the force at time t; before step 0 that at t = 0."""
        if self.timed:
            self._copies.update(max(t, 0))

    def _at(self, t: float) -> np.ndarray:
        """The array at time t."""
        found, slab, ghost = np.zeros(self._grid.count, self._type), self._slab, self._grid.ghost
        beyond = (*range(-ghost, 0), *range(slab.planes, slab.planes + ghost))
        own = [(begin, end - begin) for begin, end in slab.blocks(PART_CELLS)]
        for local, count in [*((plane, 1) for plane in beyond), *own]:
            plane = slab.global_plane(local)
            if plane is None:
                continue
            numbers = self._planes(plane, plane + count, t)
            for k in range(count):
                for place, values in self._grid.planes_of(numbers[:, k], local + k, self._geometry):
                    found[place : place + values.size] = values
        return found

    def _planes(self, begin: int, end: int, t: float) -> np.ndarray:
        """The force in global planes begin … end - 1, (D, n, rows, nx); 0 for other components."""
        found = np.zeros((len(self._values), end - begin, *self._slab.shape[1:]))
        read: dict[int, np.ndarray] = {}  # the numbers of a field, which components share
        for k, value in enumerate(self._values):
            if isinstance(value, FieldValue):
                key = id(value.field)
                if key not in read:
                    read[key] = value.field.planes(begin, end, t)
                found[k] = read[key][..., value.component]
        return found
