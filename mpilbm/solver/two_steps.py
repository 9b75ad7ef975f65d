"""Passes over memory that compute two steps each, and single steps next to faces with lists."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from functools import partial
from math import prod
from typing import Any

from mpilbm.backends.interfaces import Event, Runner, TwoStepsKernel
from mpilbm.backends.tuning import SMALL, fastest_way
from mpilbm.codegen.program import SHARE
from mpilbm.halo import Exchange, Plan
from mpilbm.layouts.grid import Grid
from mpilbm.solids.windows import covered, windows_of
from mpilbm.solver.boundary_lists import in_turn
from mpilbm.solver.context import SlabContext
from mpilbm.solver.exchange_plan import (
    TWO_STEPS_REACH,
    allows_two_steps,
    ghost_planes,
    whole_planes,
)
from mpilbm.solver.face_windows import STEPS, FaceWindow
from mpilbm.solver.moving_bodies import MovingBodies
from mpilbm.solver.passes import Pass, StepWork
from mpilbm.solver.populations import Populations


def at_ends(launch: Runner, edge: int) -> Runner:
    """A launch over so many planes at both ends of a range."""

    def run(stream: Any, begin: int, end: int, stride: int = 1) -> None:
        launch(stream, begin, begin + edge)
        launch(stream, end - edge, end)

    return run


GROUP = 4  # steps of two passes of two steps: from the first array to the second one and back
BESIDE = "edge"  # the stream of windows, whose kernels alone leave most of a device idle


class TwoSteps:
    """Passes over memory that compute two steps each.

    ```
    array 0   | state t |                         | state t + 4 |
    array 1             | pass | state t + 2 | pass |
    ```

    The state after t steps is in array t % 2. A pass reads one array and writes the other one, so
    passes come in pairs: four steps from an even t on. On several ranks a pass reads two planes of
    each neighbour, which are exchanged after it, and before the first pass after single steps;
    there with solid shares. All ranks take such passes, or none (Solver.take_two_steps). The
    exchange before the first pass waits until the neighbours have reached theirs, so passes
    alternate as in Plan.alternating. At the same time as a pass, `windows` compute the cells near
    faces with boundary lists from the same array, in a stream of their own; afterwards they
    overwrite these cells, in which a pass is wrong.
    """

    def __init__(
        self, fluid: Populations, kernel: TwoStepsKernel, windows: Sequence[FaceWindow] = ()
    ):
        context, name = fluid.context, "collide_stream_0"
        self._fluid, self._context = fluid, context
        self._kernel, self._windows = kernel, windows
        self._given = [
            context.arguments(name, **fluid.numbers(), **fluid.arrays(k)) for k in range(2)
        ]
        self._beside = context.device.stream(BESIDE)
        self._apart = [[each.scatter(k) for each in windows if each.apart] for k in range(STEPS)]
        self._done: Event | None = None  # recorded after the windows of a pass
        self._launches = [
            self._followed(kernel.bind(**arguments), k) for k, arguments in enumerate(self._given)
        ]
        self._passes: list[Pass] = []  # set by connect(), with the exchange before the first one
        self._before = Exchange()
        self._moving: MovingBodies | None = None
        self._last: int | None = None  # the steps that were done after the last pass

    def _scatters(self, k: int) -> list[Runner]:
        """What follows the pass that reads array k: windows overwrite their cells."""

        def wait(stream: Any, begin: int, end: int, stride: int = 1) -> None:
            assert self._done, "windows are enqueued before the pass"
            stream.wait(self._done)

        found = [window.scatter(k) for window in self._windows if not window.apart]
        return [wait, *found] if self._windows else []

    def _run_windows(self, k: int, run: Callable[[FaceWindow], None]) -> None:
        """Enqueue the windows of the pass that reads array k, after the work in the bulk stream."""
        if self._windows:
            self._beside.wait(self._context.bulk.record())
            for window in self._windows:
                run(window)
            for scatter in self._apart[k]:
                scatter(self._beside, *self._context.grid.interior)
            self._done = self._beside.record()

    @classmethod
    def of(cls, fluids: Sequence[Populations], work: Sequence[StepWork]) -> "TwoSteps | None":
        """The passes of a slab, None where not possible or not faster than single steps.

        `work`: the work of single steps. Both ways are measured without exchanges, which overwrites
        the populations; small slabs are not measured.
        """
        small = prod(_size(fluids[0].context)) < SMALL
        two = None if small else cls.possible(fluids)
        return two if two and two._faster_than(work) else None

    @classmethod
    def possible(cls, fluids: Sequence[Populations]) -> "TwoSteps | None":
        """The passes of a slab; None without `allows_two_steps`, or kernels for the slab and its
        windows.
        """
        fluid, context = fluids[0], fluids[0].context
        grid, case, slab = context.grid, context.case, context.slab
        if not isinstance(grid, Grid) or not allows_two_steps(case, slab):
            return None
        windows, lists = windows_of(case, slab) or (), context.geometry.lists
        shape = slab.planes, *slab.shape[1:]
        walls = context.body_walls
        reflecting = walls.owners if walls else frozenset()
        if grid.ghost < ghost_planes(case, slab):
            return None
        if not covered(windows, lists, shape, reflecting):
            return None
        columns = next((each.between for each in windows if each.axis == 2), (0, grid.nx))
        kernel = context.device.two_steps(context.kernels, grid, columns)
        inner = [context.of_window(each, BESIDE) for each in windows] if kernel else []
        known = [each for each in inner if each is not None]
        if kernel is None or len(known) < len(windows):
            return None
        pairs = zip(windows, known, strict=True)
        return cls(fluid, kernel, [FaceWindow(fluid, *pair) for pair in pairs])

    def _followed(self, launch: Runner, k: int) -> Runner:
        """A launch that reads array k, and the copies from the windows."""
        return in_turn(launch, *self._scatters(k))

    def _faster_than(self, work: Sequence[StepWork]) -> bool:
        """Whether a group takes less time than as many single steps."""
        context, size = self._context, _size(self._context)

        def single() -> None:
            for k in range(GROUP):
                work[k % len(work)].compute()

        def two() -> None:
            for k in range(GROUP // 2):
                self._run_windows(k, partial(FaceWindow.compute, k=k))
                self._launches[k](context.bulk, *context.grid.interior)

        ways: dict[str, Callable[[], None]] = {"single steps": single, "two steps": two}
        return fastest_way(context.device, self._facts(), prod(size), ways) == "two steps"

    def _facts(self) -> list[Any]:
        """What the times of single steps and of passes depend on, apart from the device."""
        context = self._context
        geometry, kernels = context.geometry, (context.kernels["collide_stream_0"], self._kernel)
        return [
            context.program.text,
            context.program.sweep,
            _size(context),
            geometry.fluid_cells.tolist(),
            [each.cells.size for each in geometry.lists],
            [(each.name, *each.where) for each in context.case.boundaries],
            [astuple(each.window) for each in self._windows],
            [kernel.resources() for kernel in kernels],
        ]

    def connect(self, moving: MovingBodies | None = None) -> None:
        """Prepare the exchanges; all ranks call it, or none. It waits for no other rank.

        moving: the bodies that move, if there are some; their shares are not exchanged.
        """
        self._moving = moving
        context, fluid, grid = self._context, self._fluid, self._context.grid
        assert isinstance(grid, Grid)  # see possible()
        prepare = context.exchanger.prepare
        before, arrays = whole_planes(grid, TWO_STEPS_REACH), list(fluid.f)
        if SHARE in context.tables and not moving:
            shares = whole_planes(grid.beside(SHARE, 1), TWO_STEPS_REACH, len(arrays))
            before, arrays = before.joined(shares), [*arrays, context.tables[SHARE]]
        self._before = prepare(before, arrays)
        for window in self._windows:
            window.connect()
        for k in range(len(self._launches)):
            plan = whole_planes(grid, TWO_STEPS_REACH, (k + 1) % 2)
            exchange = prepare(replace(plan, alternating=True), fluid.f)
            self._passes.append(self._pass(k, grid, plan, exchange))

    def _pass(self, k: int, grid: Grid, plan: Plan, exchange: Exchange) -> Pass:
        """The pass that reads array k; the edge planes are all planes if it is not divided."""
        context, slab = self._context, self._context.slab
        faces = sum(peer is not None for peer in (slab.lower, slab.upper))
        sent = sum(piece.count for piece in plan.sends) * self._fluid.f[0].itemsize
        parts = self._kernel.parts(grid.planes, faces, sent) if plan.sends and faces else None
        if parts is None:
            return Pass(context, grid, self._launches[k], exchange, edge=grid.planes)
        ends, bulk = self._kernel.bind_parts(parts, **self._given[k])
        edge, copies = parts.edge, self._scatters(k)
        both = in_turn(ends, *(at_ends(copy, edge) for copy in copies))
        return Pass(context, grid, self._followed(bulk, k), exchange, edge=edge, both=both)

    @property
    def waited(self) -> float:
        """Seconds that the host has waited, in total."""
        waited = self._before.waited + sum(one.waited for one in self._passes)
        return waited + sum(one.waited for one in self._windows)

    def begin(self, steps: int, count: int) -> None:
        """Enqueue what a pass needs after so many steps, unless the last work was a pass.

        count: the steps that follow.
        """
        if self._moving:
            self._moving.begin_pairs(steps, count)
        if self._last != steps and not all(one.alone for one in self._passes):
            self._before.follow(self._context.bulk)

    def forget(self) -> None:
        """Exchange two planes before the next pass: the populations were replaced."""
        self._last = None

    def enqueue(self, steps: int) -> None:
        """Enqueue so many steps, a multiple of GROUP, from an even step on."""
        for k in range(steps // 2):
            done = self._context.clock.steps + 2 * k
            self._run_windows(k % 2, partial(FaceWindow.run, k=k % 2, steps=done))
            if self._moving:
                self._moving.enqueue_pair()
            self._passes[k % 2].run()

    def ended(self, steps: int) -> None:
        """Note that so many steps are done, the last ones by `enqueue`."""
        self._last = steps


def _size(context: SlabContext) -> tuple[int, int, int]:
    """Planes, rows and cells in a row of a slab."""
    return context.slab.planes, *context.slab.shape[1:]
