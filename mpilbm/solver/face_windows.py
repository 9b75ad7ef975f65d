"""Single steps next to faces with boundary lists, beside passes of two steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mpilbm.backends.interfaces import Runner
from mpilbm.codegen.program import WHOLE
from mpilbm.halo import Exchange
from mpilbm.layouts.grid import Grid
from mpilbm.solids.windows import Window
from mpilbm.solver.boundary_lists import BoundaryLists, Launched
from mpilbm.solver.context import SlabContext
from mpilbm.solver.exchange_plan import whole_planes
from mpilbm.solver.populations import Populations

STEPS = 2
SWEEP = "collide_stream_0"
BESIDE = "lists", "lists 2", "lists 3"  # the streams of boundary lists
LAUNCH = 16384  # entries of a list that take as long as a launch


def spread(launched: Sequence[Launched], count: int) -> list[list[Launched]]:
    """Launches that do not depend on one another, for so many streams, which end at the same time
    if entries take equal times.
    """
    found: list[list[Launched]] = [[] for _ in range(count)]
    work = [0] * count
    for one in sorted(launched, key=lambda each: each[1] - each[2]):
        least = work.index(min(work))
        found[least].append(one)
        work[least] += one[2] - one[1] + LAUNCH
    return found


class FaceWindow:
    """A window of a slab, see solids/windows.py: a slab with arrays and boundary lists of its own.

    ```
    slab     | array k: step t | ................ pass ............ | array 1 - k: step t + 2 |
    window            | gather | step t, exchange | step t + 1 | scatter
    ```

    The steps, and their bits, are those of a solver: boundary lists, sweep, listed cells again. The
    sweep reads nothing that lists write, so both run at the same time, in several streams. Ghost
    planes of step t are gathered, those of step t + 1 exchanged, unless the window lies across
    planes.
    """

    def __init__(self, fluid: Populations, window: Window, context: SlabContext):
        self._slab, self.window, self._context = fluid, window, context
        self._own = Populations(context, fluid.field, fluid.number)
        self._lists = BoundaryLists(self._own, context.geometry)
        for k in range(STEPS):
            self._lists.prepare(k, 0, **self._own.arrays(k))
        self._rounds = [
            [spread(launched, len(BESIDE)) for launched in self._lists.rounds(k, 0)]
            for k in range(STEPS)
        ]
        self._gathers = [self._copy("gather", k) for k in range(STEPS)]
        self._sweeps = [self._own.bind_step(SWEEP, **self._own.arrays(k)) for k in range(STEPS)]
        self._beside = [context.device.stream(name) for name in BESIDE]
        self._exchange: Exchange | None = None  # set by connect()

    def _copy(self, role: str, k: int) -> Runner:
        """The copy of cells between the window's first array and array k of the slab."""
        strides = replace(self._slab.grid, name=WHOLE, wraps=None).arguments()
        arrays = {"f": self._own.f[0], WHOLE: self._slab.f[k]}
        cut = self.window.cut(self._context.grid.ghost)
        return self._context.bind(role, **arrays, **strides, **cut)

    def connect(self) -> None:
        """Prepare the exchange after the first step; all ranks call it, or none."""
        grid, slab = self._context.grid, self._context.slab
        assert isinstance(grid, Grid)  # of moments
        if slab.ranks > 1:
            plan = whole_planes(grid, 1, 1)
            self._exchange = self._context.exchanger.prepare(plan, self._own.f)

    @property
    def apart(self) -> bool:
        """Whether no pass updates the cells that `scatter` copies."""
        return self.window.axis == 2

    @property
    def waited(self) -> float:
        """Seconds that the host has waited, in total."""
        return self._exchange.waited if self._exchange else 0.0

    def run(self, k: int, steps: int) -> None:
        """Enqueue both steps from array k, which holds the state after so many steps."""
        self._gather(k)
        for one in range(STEPS):
            self._context.clock.steps = steps + one
            self._lists.update()
            self._step(one)
            if one == 0 and self._exchange:
                self._exchange.follow(self._context.bulk)

    def compute(self, k: int) -> None:
        """As `run`, without exchange, and given values as they are."""
        self._gather(k)
        for one in range(STEPS):
            self._step(one)

    def _step(self, one: int) -> None:
        """Enqueue a step."""
        stream, planes = self._context.bulk, self._context.grid.interior
        lead, *others = self._beside
        lead.wait(stream.record())
        for shares in self._rounds[one]:
            begun = lead.record()
            for beside, launched in zip(self._beside, shares, strict=True):
                if beside in others and launched:
                    beside.wait(begun)
                for launch, begin, end in launched:
                    launch(beside, begin, end)
                if beside in others and launched:
                    lead.wait(beside.record())
        self._sweeps[one](stream, *planes)
        stream.wait(lead.record())
        self._lists.again(one, stream, *planes)

    def _gather(self, k: int) -> None:
        first, end = self._context.grid.interior
        self._gathers[k](self._context.bulk, first - 1, end + 1)

    def scatter(self, k: int) -> Runner:
        """The copy to the slab after a pass that read array k, over planes of the slab."""
        launch, window = self._copy("scatter", 1 - k), self.window
        if window.axis > 0:
            return launch
        first = self._context.grid.ghost
        lower, upper = first + window.lower, first + window.count - window.upper

        def run(stream: Any, begin: int, end: int, stride: int = 1) -> None:
            if stride > 1:
                raise ValueError(f"planes one after another; found a stride of {stride}")
            if begin < lower:
                launch(stream, begin, min(end, lower))
            if end > upper:
                launch(stream, max(begin, upper) - window.skipped, end - window.skipped)

        return run
