"""The velocity of a slab, a block of planes at a time, for finite differences between cells."""

from collections.abc import Iterator
from typing import Any

from mpilbm.backends.interfaces import Array
from mpilbm.solver import memory_plan
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.fields.plane_sums import PlaneSums
from mpilbm.solver.flow_state import FlowState


class VelocityBlocks:
    """The velocity in blocks of planes, with the planes below and above each block.

    ```
    slab     ghost | 0 1 2 3 4 5 6 7 8 9 | ghost
    edges        x | 0                 9 | x        exchanged with the neighbouring ranks
    blocks       x   0 1 2 3   4                    for differences in planes 0 to 3
                             3 4 5 6 7   8          3 and 4 are copied
                                     7 8 9   x
    ```

    The kernel of `sums` computes it, and also the sums over rows; it takes `numbers`. Kernels find
    plane `plane` of the populations in plane `plane - u_first` of a block, and take `arguments`.
    """

    def __init__(self, state: FlowState, sums: PlaneSums, numbers: dict[str, float]):
        self.context, case = state.context, state.context.case
        self.planes, device = self.context.slab.planes, self.context.device
        self.grid, self.edge_grid = memory_plan.velocity_grids(case, self.planes)
        self.size = self.grid.planes
        needed = memory_plan.velocity_bytes(case, self.planes)
        device.require(needed, "the velocity of a block of planes")
        self.u, self.edges = (
            device.allocate(grid.count, self.context.program.compute)
            for grid in (self.grid, self.edge_grid)
        )
        self.arguments: dict[str, Any] = {"u": self.u, **self.grid.arguments()}
        self._velocity = sums.bound(**self.arguments, **numbers)
        self._of_edges = sums.bound(**{**self.arguments, "u": self.edges}, **numbers)
        kernels = self.context.program.kernels
        reads = (*kernels["q_criterion"].reads, *kernels["enstrophy"].reads)
        plan = exchange_plan(self.edge_grid, (), reads)
        self._exchange = self.context.exchanger.prepare(plan, [self.edges])
        self._step: int | None = None  # of the edge planes

    def forget(self) -> None:
        """Compute the edge planes again, because the populations were replaced."""
        self._step = None

    def prepare(self) -> None:
        """Compute and exchange the edge planes; collective at the first call in a step."""
        if self._step == self.context.clock.steps:
            return
        bulk = self.context.bulk
        for plane, place in {0: 1, self.planes - 1: self.edge_grid.planes}.items():
            self._of_edges(plane, plane + 1, u_first=self._number(plane - place))
        self._exchange.follow(bulk)
        self._step = self.context.clock.steps

    def for_sums(self) -> None:
        """Enqueue the velocity of all planes, for the sums over rows alone."""
        for first, after, number in self._ranges(0, self.planes):
            self._velocity(first, after, u_first=number)

    def blocks(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Blocks of planes begin..end: first plane, end, and u_first; after `prepare`.

        The velocity of a block is enqueued before the block is yielded; the next one overwrites it.
        """
        for first, after, number in self._ranges(begin, end):
            below = first - 1
            if first > begin:
                self._copy(self.u, 0, self.u, self.size, 2)
                below = first + 1
            elif first == 0:
                self._copy(self.u, 0, self.edges, 0)
            self._velocity(max(0, below), min(after + 1, self.planes), u_first=number)
            if after == self.planes:
                self._copy(self.u, after - first + 1, self.edges, self.edge_grid.planes + 1)
            yield first, after, number

    def copies(self, source: Array) -> Iterator[tuple[int, int, int]]:
        """As `blocks`, for all planes of another velocity of the slab, with the populations' ghost
        planes.
        """
        for first, after, number in self._ranges(0, self.planes):
            self._copy(self.u, 1, source, self._number(first), after - first)
            yield first, after, number

    def _ranges(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        for first in range(begin, end, self.size):
            yield first, min(first + self.size, end), self._number(first - 1)

    def _copy(self, target: Array, to: int, source: Array, origin: int, planes: int = 1) -> None:
        """Copy whole planes, numbered in the arrays."""
        plane = self.grid.plane_stride
        into = target[to * plane : (to + planes) * plane]
        piece = source[origin * plane : (origin + planes) * plane]
        self.context.device.copy(into, piece, self.context.bulk)

    def _number(self, plane: int) -> int:
        """The number of a plane of the slab in the arrays of the populations."""
        return self.context.grid.ghost + plane
