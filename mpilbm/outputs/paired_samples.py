"""Sums over links in the steps before and after a time: forces on bodies, fluxes of scalars."""

from collections.abc import Callable
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mpilbm.outputs import Context
from mpilbm.outputs.core.totals import over_bodies
from mpilbm.solver.solver import Solver

Floats = NDArray[np.float64]
State = tuple[int, int]  # the step, and how often the state was replaced
Sample = Callable[[], Floats | None]  # sums of each body or face, on rank 0; collective


class PairedSamples:
    """Sums over links and cells in the steps that end and begin at a time.

    The sum F(t + 1/2) belongs to the step from t to t + 1. At walls a part of it changes its sign
    in every step: lattice Boltzmann schemes conserve a momentum, and an amount of each scalar, that
    alternate, and sudden starts and eddies give it to the fluid. In even steps alone it looks like
    a force or a flux. The mean of two steps is free of it:

        F(t) = (F(t - 1/2) + F(t + 1/2)) / 2

    [Zanetti 1989, Phys. Rev. A 40, 1539; Ladd 1994, J. Fluid Mech. 271, 285]

    start  enqueues the sums of the step after the current one; collective
    """

    def __init__(self, solver: Solver, start: Callable[[], Sample]):
        self._solver, self._start = solver, start
        self._last: tuple[State, Sample] | None = None

    @classmethod
    def of_forces(cls, context: Context) -> Self:
        """The force and torque on each body that is weighed."""
        exchanged, case, comm = context.solver.exchanged, context.case, context.comm
        assert exchanged is not None, "the case needs forces, see Output.bodies"

        def start() -> Sample:
            bodies, sums = exchanged.groups[:, 1], exchanged.start()

            def totals() -> Floats | None:
                parts = comm.gather((bodies, sums()))
                return None if parts is None else over_bodies(case, parts)

            return totals

        return cls(context.solver, start)

    def take(self) -> None:
        """Enqueue the sums of the step after the current one, unless they are known; collective."""
        state = self._state
        if self._last is None or self._last[0] != state:
            self._last = state, cache(self._start())

    def around(self) -> list[Sample]:
        """The samples of the steps before and after the current time; collective.

        The former if `take` was called one step ago, and the state was not replaced since.
        """
        before, (step, replaced) = self._last, self._state
        self.take()
        assert self._last, "it was taken"
        found = [before] if before and before[0] == (step - 1, replaced) else []
        return [sample for _, sample in (*found, self._last)]

    def mean(self) -> Sample:
        """The mean of the samples of `around`."""
        samples = self.around()

        def found() -> Floats | None:
            known = [each for each in [sample() for sample in samples] if each is not None]
            return np.mean(known, axis=0) if known else None

        return found

    @property
    def _state(self) -> State:
        return self._solver.steps, self._solver.replaced
