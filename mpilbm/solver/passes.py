"""The passes of a time step: edge planes first, their exchange overlapped with the other planes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mpilbm.backends.interfaces import Event, Runner
from mpilbm.codegen.program import Access
from mpilbm.halo import Exchange
from mpilbm.layouts import AnyGrid
from mpilbm.layouts.grid import Grid
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.context import SlabContext
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.populations import Populations

Events = tuple[Event | None, ...]  # of each pass: ready to send, all planes computed, arrived


class Pass:
    """A kernel over the cells of a slab, edge planes first, and the halo exchange after it.

    ```
    bulk stream   | lists |   bulk planes ..........................|        | next lists …
                          |                                                  |
    edge stream           | edge planes |ready                               |
                                        |                                    |
    exchange                      start |========== arrival() =======|arrived|
    ```

    The edge stream has priority; on devices without priorities the bulk planes wait for `ready`.
    There are `edge` edge planes at a face, by default as many as a step reads beyond it; none at
    walls and where planes wrap around: there all planes are computed in one launch. `both`: what
    computes the edge planes at both ends of a range, in one launch. No cell accesses values that
    another cell writes in the same pass, so the result does not depend on their order. Edge planes
    run after all work that is in the bulk stream when the pass is enqueued, later work there after
    the pass.

    `offered`: whether the launch is offered to the exchange (Exchange.join). If the exchange has
    become a part of it, the pass is one launch in the bulk stream, except in timed steps.
    """

    def __init__(
        self,
        context: SlabContext,
        grid: AnyGrid,
        launch: Runner,
        exchange: Exchange,
        offered: bool = False,
        edge: int | None = None,
        both: Runner | None = None,
    ):
        self.offered, self.planes = offered, grid.interior
        self.edge, self.bulk = context.device.stream("edge"), context.bulk
        self.in_order = not context.device.prioritizes
        self.launch, self.exchange = launch, exchange
        first, end = grid.interior
        beside = context.slab.lower, context.slab.upper
        lower, upper = (peer is not None and not grid.wraps for peer in beside)
        edge = edge or context.case.ghost
        begin = min(first + edge * lower, end)
        self.inner = begin, max(begin, end - edge * upper)
        self.edges = [(launch, (first, self.inner[0], 1)), (launch, (self.inner[1], end, 1))]
        if lower and upper and edge == 1:
            self.edges = [(launch, (first, end, max(1, end - 1 - first)))]
        elif lower and upper and both:
            self.edges = [(both, (first, end, 1))]
        self.alone = not (lower or upper)

    @property
    def waited(self) -> float:
        """Seconds that the host has waited for the device and other ranks, in total."""
        return self.exchange.waited

    def run(self, timed: bool = False, followed: bool = False) -> Events:
        """Compute all planes and exchange the edge planes.

        If `timed`, returns three events: the edge planes are ready to be sent, all planes are
        computed, the ghost layers have arrived. `followed`: the next work in the bulk stream is the
        next step's pass.
        """
        if self.offered and self.exchange.joint is not None and not timed:
            self.exchange.joint(self.bulk, *self.planes)
            if not followed:  # its successor awaits the ghost planes itself; other work cannot
                self.exchange.await_joint()
            return None, None, None
        return (self._compute if self.alone else self._compute_and_exchange)(timed)

    def _compute(self, timed: bool) -> Events:
        begin = self.bulk.record(timed) if timed else None
        self.launch(self.bulk, *self.inner)
        done = self.bulk.record(timed) if timed else None
        self.exchange.wait(self.bulk.flush)
        return begin, done, begin  # nothing is exchanged

    def _compute_and_exchange(self, timed: bool) -> Events:
        self.edge.wait(self.bulk.record())
        for launch, planes in self.edges:
            launch(self.edge, *planes)
        ready = self.edge.record(timed)
        if self.in_order:
            self.bulk.wait(ready)  # otherwise the bulk kernel could occupy the device first
        self.launch(self.bulk, *self.inner)
        done = self.bulk.record(timed) if timed else None
        self.exchange.start(ready)
        self.exchange.wait(self._flush)
        arrived = self.exchange.arrival()
        if arrived is not None:
            self.bulk.wait(arrived)
        if timed:
            if arrived is not None:
                self.edge.wait(arrived)
            arrived = self.edge.record(timed)
            self.edge.flush()
        return ready, done, arrived

    def _flush(self) -> None:
        self.edge.flush()
        self.bulk.flush()


def collide_stream(
    fluid: Populations, lists: BoundaryLists, k: int, reads: Iterable[Access], **fields: Any
) -> Pass:
    """The pass of a fluid in all steps t with t % period = k, with the exchange before step k + 1.

    `reads`: the accesses by which the coupling reads this fluid's populations in step k + 1;
    `fields`: the arguments by which the kernel reads the fields of the coupling.
    """
    parities, buffers = fluid.layout.parities, fluid.layout.buffers
    name, following = (f"collide_stream_{t % parities}" for t in (k, k + 1))
    kernels = fluid.program.kernels
    reads = [*kernels[following].reads, *fluid.list_reads((k + 1) % parities), *reads]
    writes, array = kernels[name].writes, (k + 1) % buffers
    plan, arrays = exchange_plan(fluid.grid, writes, reads, array), list(fluid.f)
    for each in fluid.carried:
        own = [*reads, *each.list_reads((k + 1) % parities)]
        plan = plan.joined(exchange_plan(each.grid, writes, own, len(arrays) + array))
        arrays += each.f
    if buffers > 1 and not any(access.offset[0] for access in writes):
        plan = replace(plan, alternating=True)
    exchange = fluid.context.exchanger.prepare(plan, arrays)
    launch, grid = fluid.bind_step(name, **fluid.arrays(k), **fields), fluid.grid
    offered = not lists.count and not fields and not fluid.carried
    if offered and isinstance(grid, Grid):
        exchange.join(launch, grid)
    return Pass(fluid.context, grid, lists.followed(launch, k), exchange, offered)


class Moving(Protocol):
    """Bodies that move, see solver/moving_bodies.py."""

    def prepare(self, t: int, steps: int) -> None:
        """Provide what so many steps from t on need of the host. Raises CaseError."""

    def begin_step(self, t: int) -> None:
        """Enqueue what precedes the boundary lists of the step from t to t + 1."""

    def enqueue(self) -> None:
        """Enqueue the shares and the motion at t + 1, between the boundary lists and the passes."""


@dataclass(frozen=True)
class StepWork:
    """The work of all steps t with t % period = k: the boundary lists, then each pass in turn."""

    context: SlabContext
    k: int
    lists: list[BoundaryLists]
    passes: list[Pass]
    moving: Moving | None = None

    @property
    def waited(self) -> float:
        """Seconds that the host has waited, in total."""
        return sum(one.waited for one in self.passes)

    @property
    def in_streams(self) -> bool:
        """Whether streams alone do all of it, so that it can be recorded."""
        return all(one.exchange.in_streams for one in self.passes)

    def prepare(self, steps: int) -> None:
        """Provide what so many steps need of the host. Raises CaseError."""
        if self.moving:
            self.moving.prepare(self.context.clock.steps, steps)

    def enqueue(self, timed: bool = False, followed: bool = False) -> Events:
        """Enqueue all; if `timed`, the events of each pass in turn; `followed`: see Pass.run."""
        self.context.forces.update(self.context.clock.steps)
        if self.moving:
            self.moving.begin_step(self.context.clock.steps)
        for lists in self.lists:
            lists.run(self.k)
        if self.moving:
            self.moving.enqueue()
        if self.context.force_field:
            self.context.force_field.update(self.context.clock.steps + 1)
        return tuple(event for one in self.passes for event in one.run(timed, followed))

    def compute(self) -> None:
        """Enqueue the kernels alone: no exchange, and given values as they are."""
        for lists in self.lists:
            lists.compute(self.k)
        for one in self.passes:
            one.launch(self.context.bulk, *one.planes)
