"""Calls of a user's function between time steps."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpilbm.errors import UsageError


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


def require_count(name: str, found: int | None, least: int) -> None:
    """UsageError unless a number of steps is a whole number."""
    if found is None:
        return
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or found < least:
        raise UsageError(f"run: {name} = {found!r}; allowed: whole numbers >= {least}")
