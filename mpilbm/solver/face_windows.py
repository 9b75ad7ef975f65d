"""Single steps next to faces with boundary lists, beside passes of two steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mpilbm.backends.interfaces import Array, Ends, Runner, Stream
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

    If `joined`, the pass reads the cells that it does not update from the window, and also writes
    the others that the window has there. Then cells are gathered before the first pass and
    scattered after the last one only: each copies a few cells of all rows, which takes longer than
    a step of the window.

    ```
    slab     | gather | pass ................. | pass ................. | scatter |
    window            | t | t + 1 | t + 2, keep | t + 2 | t + 3 | t + 4, keep |
    ```
    """

    def __init__(self, fluid: Populations, window: Window, context: SlabContext, joined: bool):
        self._slab, self._window, self._context = fluid, window, context
        self.joined = joined
        self._own = own = Populations(context, fluid.field, fluid.number)
        first, middle = own.f
        self._inputs, self._result = [first, first], first  # inputs of passes that read array k
        if joined:
            more = [context.device.allocate(first.size, first.dtype) for _ in range(STEPS)]
            self._inputs, self._result = [first, more[0]], more[1]
        self._lists = BoundaryLists(own, context.geometry)
        self._rounds: dict[tuple[int, int], list[list[list[Launched]]]] = {}  # for each stream
        self._sweeps: list[list[Runner]] = []
        for k, source in enumerate(self._inputs):
            steps = (source, middle), (middle, self._result)
            self._sweeps.append([self._prepare(k, one, *steps[one]) for one in range(STEPS)])
        self._gathers, self._keeps = [], []
        for own_input, of_slab in zip(self._inputs, fluid.f, strict=True):
            self._gathers.append(self._copy("gather", own_input, of_slab))
            self._keeps.append(self._copy("scatter", self._result, own_input, inside=True))
        self._beside = [context.device.stream(name) for name in BESIDE]
        self._exchange: Exchange | None = None  # set by connect()

    def _prepare(self, k: int, one: int, source: Array, target: Array) -> Runner:
        """The sweep of a step between two arrays; its lists have the key (k, one)."""
        arrays = {"f": source, "f_in": source, "f_out": target}
        self._lists.prepare((k, one), 0, **arrays)
        rounds = self._lists.rounds((k, one), 0)
        self._rounds[k, one] = [spread(launched, len(BESIDE)) for launched in rounds]
        return self._own.bind_step(SWEEP, **arrays)

    def _copy(self, role: str, own: Array, other: Array, inside: bool = False) -> Runner:
        """The copy of cells between an array of the window and one of the slab.

        inside: the other one is an array of the window, too
        """
        grid = self._context.grid if inside else self._slab.grid
        assert isinstance(grid, Grid)  # of moments
        strides = replace(grid, name=WHOLE, wraps=None).arguments()
        cut = self._window.cut(self._context.grid.ghost)
        if inside:
            cut |= {name: 0 for name in cut if name.startswith("skipped")}
        return self._context.bind(role, **{"f": own, WHOLE: other}, **strides, **cut)

    def ends(self, k: int) -> Ends | None:
        """The cells that the pass which reads array k finds in the window."""
        if not self.joined:
            return None
        grid, window = self._context.grid, self._window
        assert isinstance(grid, Grid)  # of moments
        return Ends(self._inputs[k], self._inputs[1 - k], grid, window.lower, window.upper)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of moments."""
        arrays = {id(array): array for array in (*self._own.f, *self._inputs, self._result)}
        return sum(array.nbytes for array in arrays.values())

    def connect(self) -> None:
        """Prepare the exchange after the first step; all ranks call it, or none."""
        grid, slab = self._context.grid, self._context.slab
        assert isinstance(grid, Grid)  # of moments
        if slab.ranks > 1:
            plan = whole_planes(grid, 1, 1)
            self._exchange = self._context.exchanger.prepare(plan, self._own.f)

    @property
    def apart(self) -> bool:
        """Whether `scatter` follows each run of the window: no pass updates its cells."""
        return self._window.axis == 2 and not self.joined

    @property
    def waited(self) -> float:
        """Seconds that the host has waited, in total."""
        return self._exchange.waited if self._exchange else 0.0

    def run(self, k: int, steps: int) -> None:
        """Enqueue both steps from array k, which holds the state after so many steps."""
        self._before(k)
        for one in range(STEPS):
            self._context.clock.steps = steps + one
            self._lists.update()
            self._step(k, one)
            if one == 0 and self._exchange:
                self._exchange.follow(self._context.bulk)
        self._after(k)

    def compute(self, k: int) -> None:
        """As `run`, without exchange, and given values as they are."""
        self._before(k)
        for one in range(STEPS):
            self._step(k, one)
        self._after(k)

    def _before(self, k: int) -> None:
        if not self.joined:
            self.gather(k, self._context.bulk)

    def _step(self, k: int, one: int) -> None:
        """Enqueue a step."""
        stream, planes = self._context.bulk, self._context.grid.interior
        lead, *others = self._beside
        lead.wait(stream.record())
        for shares in self._rounds[k, one]:
            begun = lead.record()
            for beside, launched in zip(self._beside, shares, strict=True):
                if beside in others and launched:
                    beside.wait(begun)
                for launch, begin, end in launched:
                    launch(beside, begin, end)
                if beside in others and launched:
                    lead.wait(beside.record())
        self._sweeps[k][one](stream, *planes)
        stream.wait(lead.record())
        self._lists.again((k, one), stream, *planes)

    def _after(self, k: int) -> None:
        """Keep the cells that no pass updates for the next pass."""
        if self.joined:
            self._keeps[1 - k](self._context.bulk, *self._context.grid.interior)

    def gather(self, k: int, stream: Stream) -> None:
        """Enqueue the copy of all cells from array k of the slab."""
        first, end = self._context.grid.interior
        self._gathers[k](stream, first - 1, end + 1)

    def scatter(self, k: int) -> Runner:
        """The copy to the slab after a pass that read array k, over planes of the slab."""
        found = self._inputs[1 - k] if self.joined else self._result
        launch, window = self._copy("scatter", found, self._slab.f[1 - k]), self._window
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
