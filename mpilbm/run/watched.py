"""What `run.steady` compares: the velocity of all cells, or the numbers of an output.

A comparison is called on all ranks at equal distances in time, and returns how much the flow has
changed, or how well a mean is known; None if that is not known yet.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from math import isnan, nan
from typing import Protocol, TypeAlias

import numpy as np

from mpilbm.outputs import Watched
from mpilbm.outputs.core.averages import average
from mpilbm.parallel import Communicator
from mpilbm.solver.solver import Solver

Column: TypeAlias = "array[float]"  # a number at each comparison


class Comparison(Protocol):
    """A comparison of the flow with that of earlier steps."""

    names: tuple[str, ...]  # of the numbers that it compares
    prepare: Callable[[], None] | None  # called at the step before; collective

    def __call__(self, step: int) -> float | None:
        """The result on all ranks; None if it is not known. Collective."""


class ChangeOfVelocity:
    """The relative change |u - u'|_2 / |u|_2 over the fluid cells; u' is u at the previous call.

    The device sums the squares of each plane in double precision; the planes are added in their
    order, so that the result does not depend on the number of ranks.
    """

    names: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None

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

    `columns`: the numbers of all calls, on rank 0. A restart begins with those that the run has
    written up to its step.
    """

    def __init__(
        self, watched: Watched, measure: Callable[[Sequence[Column]], float], comm: Communicator
    ):
        self.names, self.numbers, self.prepare = watched
        self.measure, self.comm = measure, comm
        self.columns = [array("d") for _ in self.names]
        self._last = -1  # the last step of the series

    @property
    def last(self) -> list[float]:
        """The numbers of the last call, on rank 0."""
        return [column[-1] for column in self.columns]

    def continue_from(self, lines: Sequence[str], header: Sequence[str]) -> None:
        """Begin with the rows of a table of an earlier part of the run; on rank 0."""
        places = [header.index(name) for name in self.names]
        for line in lines:
            row = line.split(",")
            self._add(int(row[0]), [float(row[place]) for place in places])

    def __call__(self, step: int) -> float | None:
        """The measure on all ranks; None if it is nan. Collective."""
        numbers, found = self.numbers(), nan
        if self.comm.rank == 0:
            if step != self._last:  # not the step from which a restart continues
                self._add(step, numbers)
            found = self.measure(self.columns)
        found = self.comm.bcast(found)
        return None if isnan(found) else found

    def _add(self, step: int, numbers: Sequence[float]) -> None:
        self._last = step
        for column, number in zip(self.columns, numbers, strict=True):
            column.append(number)


def change(columns: Sequence[Column]) -> float:
    """The largest |k - k'| / |k| of the last two numbers k', k of the columns; nan if a k is 0."""
    pairs = [tuple(column[-2:]) for column in columns if len(column) > 1]
    return largest(abs(k - before) / abs(k) if k else nan for before, k in pairs)


def error(columns: Sequence[Column]) -> float:
    """The largest relative error of the means over the second half of the columns."""
    halves = (np.asarray(column)[len(column) // 2 :] for column in columns)
    return largest(average(half).relative for half in halves)


def largest(values: Iterable[float]) -> float:
    """The largest number; nan if one is nan, or if there is none."""
    return float(np.max(list(values) or [nan]))
