"""The forces on bodies in the steps before and after a time."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mpilbm.outputs import Context
from mpilbm.outputs.core.totals import over_bodies

Floats = NDArray[np.float64]
State = tuple[int, int]  # the step, and how often the state was replaced
Sample = Callable[[], Floats | None]  # sums of each weighed body, on rank 0; collective


class ForceSamples:
    """Sums over the links and cells of bodies, in the steps that end and begin at a time.

    The force F(t + 1/2) acts in the step from t to t + 1. At half-way walls a part of it changes
    its sign in every step: lattice Boltzmann schemes conserve a momentum that alternates, and
    sudden starts and eddies give it to the fluid. In even steps alone it looks like a force. The
    mean of two steps is free of it:

        F(t) = (F(t - 1/2) + F(t + 1/2)) / 2

    [Zanetti 1989, Phys. Rev. A 40, 1539; Ladd 1994, J. Fluid Mech. 271, 285]
    """

    def __init__(self, context: Context):
        exchanged = context.solver.exchanged
        assert exchanged is not None, "the case needs forces, see Output.bodies"
        self._exchanged, self._case, self._comm = exchanged, context.case, context.comm
        self._solver = context.solver
        self._last: tuple[State, Sample] | None = None

    def take(self) -> None:
        """Enqueue the sums of the step after the current one, unless they are known; collective."""
        state = self._state
        if self._last is None or self._last[0] != state:
            bodies, sums = self._exchanged.groups[:, 1], self._exchanged.start()

            def totals() -> Floats | None:
                parts = self._comm.gather((bodies, sums()))
                return None if parts is None else over_bodies(self._case, parts)

            self._last = state, cache(totals)

    def around(self) -> list[Sample]:
        """The samples of the steps before and after the current time; collective.

        The former if `take` was called one step ago, and the state was not replaced since.
        """
        before, (step, replaced) = self._last, self._state
        self.take()
        assert self._last, "it was taken"
        found = [before] if before and before[0] == (step - 1, replaced) else []
        return [sample for _, sample in (*found, self._last)]

    def mean(self) -> Floats | None:
        """The mean of the samples of `around`, at once; None on ranks but 0. Collective."""
        totals = [sample() for sample in self.around()]
        known = [each for each in totals if each is not None]
        return np.mean(known, axis=0) if known else None

    @property
    def _state(self) -> State:
        return self._solver.steps, self._solver.replaced
