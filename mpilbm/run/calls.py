"""Calls of a user's function between time steps."""

from collections.abc import Callable
from typing import Any


class Calls:
    """Calls `call(sim)` at steps that are multiples of `every`."""

    def __init__(self, sim: Any, every: int, call: Callable[[Any], object]):
        self.sim, self.every, self.call = sim, every, call

    def next_due(self, step: int, last: int) -> int:
        """The next multiple of `every`, at most `last`."""
        return min((step // self.every + 1) * self.every, last)

    def visit(self, step: int, last: int) -> None:
        """Call the function."""
        if step % self.every == 0:
            self.call(self.sim)
