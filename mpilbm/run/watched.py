"""What `run.steady` compares: the velocity of all cells, or the numbers of an output.

A comparison is called on all ranks at equal distances in time, and returns how much the flow has
changed, or how well a mean is known; None if that is not known yet.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isnan, nan
from typing import Protocol

import numpy as np

from mpilbm.outputs import Watched
from mpilbm.outputs.core.averages import LEAST, average
from mpilbm.parallel import Communicator
from mpilbm.solver.solver import Solver

Rows = list[tuple[float, ...]]  # the numbers of each comparison


class Comparison(Protocol):
    """A comparison of the flow with that of earlier steps."""

    names: tuple[str, ...]  # of the numbers that it compares

    def __call__(self, step: int) -> float | None:
        """The result on all ranks; None if it is not known. Collective."""


class ChangeOfVelocity:
    """The relative change |u - u'|_2 / |u|_2 over the fluid cells; u' is u at the previous call.

    The device sums the squares of each plane in double precision; the planes are added in their
    order, so that the result does not depend on the number of ranks.
    """

    names: tuple[str, ...] = ()

    def __init__(self, solver: Solver, comm: Communicator):
        self.solver, self.comm, self._first = solver, comm, True

    def __call__(self, step: int) -> float | None:
        """The change on all ranks; None at the first call and if u is 0. Collective."""
        parts, first = self.comm.gather(self.solver.start_change()()), self._first
        self._first, ratio = False, None
        if parts is not None and not first:
            change, norm = np.cumsum(np.concatenate(parts), axis=0)[-1]
            ratio = float(np.sqrt(change / norm)) if norm > 0 else None
        return self.comm.bcast(ratio)


class Numbers:
    """A measure of the series of the numbers of an output, such as `change` or `error`.

    `rows`: the numbers at `steps`, on rank 0. A restart begins with those that the run has written.
    """

    def __init__(self, watched: Watched, measure: Callable[[Rows], float], comm: Communicator):
        self.names, self.numbers = watched
        self.measure, self.comm = measure, comm
        self.steps: list[int] = []
        self.rows: Rows = []

    def continue_from(self, lines: Sequence[str], header: Sequence[str]) -> None:
        """Begin with the rows of a table of an earlier part of the run; on rank 0."""
        for line in lines:
            row = dict(zip(header, line.split(","), strict=True))
            self.steps.append(int(row["step"]))
            self.rows.append(tuple(float(row[name]) for name in self.names))

    def __call__(self, step: int) -> float | None:
        """The measure on all ranks; None if it is nan. Collective."""
        numbers, found = self.numbers(), nan
        if self.comm.rank == 0:
            if step not in self.steps[-1:]:  # as the step from which a restart continues
                self.steps.append(step)
                self.rows.append(tuple(numbers))
            found = self.measure(self.rows)
        found = self.comm.bcast(found)
        return None if isnan(found) else found


def change(rows: Rows) -> float:
    """The largest |k - k'| / |k| of the numbers k, k' those of the row before; nan if a k is 0."""
    if len(rows) < 2:
        return nan
    pairs = zip(*rows[-2:], strict=True)
    return largest(abs(k - before) / abs(k) if k else nan for before, k in pairs)


def error(rows: Rows) -> float:
    """The largest relative error of the means of the numbers over the second half of the rows."""
    half = rows[len(rows) // 2 :]
    if len(half) < LEAST:
        return nan
    return largest(average(column).relative for column in zip(*half, strict=True))


def largest(values: Iterable[float]) -> float:
    """The largest number; nan if one is nan, or if there is none."""
    return float(np.max(list(values) or [nan]))
