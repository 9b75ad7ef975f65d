"""The current state of a slab: the populations of all fluids and the fields of their coupling."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array, Launch
from mpilbm.solver.context import SlabContext
from mpilbm.solver.coupled_fields import Coupled, Uncoupled
from mpilbm.solver.populations import Populations

BLOCK_BYTES = 2**26  # of rho and u on the device at a time


class FlowState:
    """The arrays that kernels over all fluids read, for diagnostics and initial conditions."""

    def __init__(
        self, context: SlabContext, fluids: list[Populations], coupled: Coupled | Uncoupled
    ):
        self.context, self.fluids, self.coupled = context, fluids, coupled
        self.period = max(context.case.layout.parities, context.case.layout.buffers)

    def current(self) -> dict[str, Any]:
        """The arrays with the outgoing populations of the last step, and the coupling's fields."""
        arrays: dict[str, Array] = {}
        for one in self.fluids:
            arrays |= {f"{name}{one.suffix}": array for name, array in one.current().items()}
        return arrays | self.coupled.arrays()

    def launch(self, name: str, begin: int, **arrays: Any) -> Launch:
        """A kernel over planes of the state, for arrays that begin at plane `begin`.

        It is valid for all steps with the same step % period, unless forces depend on time.
        """
        context = self.context
        if name not in context.program.kernels:
            name = f"{name}_{context.parity}"
        origin = context.grid.ghost + begin
        return context.bind(name, origin=origin, **(self.current() | arrays))

    def enqueue(self, name: str, begin: int, end: int, **arrays: Any) -> None:
        """Enqueue a kernel for planes begin..end of the state in the bulk stream."""
        self.context.over_planes(self.launch(name, begin, **arrays), begin, end)

    def over_block(self, name: str, begin: int, end: int, **arrays: Any) -> None:
        """Run a kernel on planes begin..end of the state, and wait."""
        self.enqueue(name, begin, end, **arrays)
        self.context.device.synchronize()

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges (begin, end) of the slab's planes whose rho and u take few bytes."""
        grid, planes = self.context.grid, self.context.slab.planes
        plane = 8 * (1 + self.context.case.lattice.D) * grid.rows * grid.nx
        step = max(1, BLOCK_BYTES // plane)
        for begin in range(0, planes, step):
            yield begin, min(begin + step, planes)

    def solid(self, begin: int, end: int) -> np.ndarray:
        """True in solid cells, (end - begin, rows, nx)."""
        return self.context.geometry.solid[begin:end] != 0


class StateLaunch:
    """A kernel over planes of the state, bound to its arguments at first use.

    There is a binding for each step of a period, and for each set of the numbers of a call.
    """

    def __init__(self, state: FlowState, name: str, **arguments: Any):
        self._state, self._name, self._arguments = state, name, arguments
        self._launches: dict[tuple[int, ...], Launch] = {}

    def __call__(self, begin: int, end: int, **numbers: int) -> None:
        """Enqueue it for planes begin..end, with these numbers among the arguments."""
        state, context = self._state, self._state.context
        key = (context.clock.steps % state.period, *numbers.values())
        if key not in self._launches or context.forces.timed:
            self._launches[key] = state.launch(self._name, 0, **self._arguments, **numbers)
        context.over_planes(self._launches[key], begin, end)
