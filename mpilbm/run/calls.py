"""Calls of a user's function between time steps."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from mpilbm.run.ending.interrupts import interrupts


class Calls:
    """Calls `call(sim)` at steps that are multiples of `every`.

    On a single rank Ctrl-C ends the function at once; several ranks agree on a step.
    """

    def __init__(self, sim: Any, every: int, call: Callable[[Any], object]):
        self.sim, self.every, self.call = sim, every, call

    def next_due(self, step: int, last: int) -> int:
        """The next multiple of `every`, at most `last`."""
        return min((step // self.every + 1) * self.every, last)

    def visit(self, step: int, last: int) -> None:
        """Call the function."""
        if step % self.every:
            return
        with interrupts.immediate() if self.sim.comm.size == 1 else nullcontext():
            self.call(self.sim)
