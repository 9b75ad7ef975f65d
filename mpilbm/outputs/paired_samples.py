"""Sums over links in the steps before and after a time: forces on bodies, fluxes of scalars."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpilbm.outputs.core.totals import over_bodies
from mpilbm.parallel import Communicator
from mpilbm.solver.solver import Solver

T = TypeVar("T")
Floats = NDArray[np.float64]
State = tuple[int, int]  # the step, and how often the state was replaced
Sample = Callable[[], Floats | None]  # sums of each body or face, on rank 0; collective


class PairedSamples(Generic[T]):
    """Sums over links and cells in the steps that end and begin at a time.

    The sum F(t + 1/2) belongs to the step from t to t + 1. At walls a part of it changes its sign
    in every step: lattice Boltzmann schemes conserve a momentum, and an amount of each scalar, that
    alternate, and sudden starts and eddies give it to the fluid. In even steps alone it looks like
    a force or a flux. The mean of two steps is free of it:

        F(t) = (F(t - 1/2) + F(t + 1/2)) / 2

    [Zanetti 1989, Phys. Rev. A 40, 1539; Ladd 1994, J. Fluid Mech. 271, 285]

    start  enqueues the sums of the step after the current one; collective

    Several outputs may use the same object: each sum is computed once.
    """

    def __init__(self, solver: Solver, start: Callable[[], Callable[[], T]]):
        self._solver, self._start = solver, start
        self._known: dict[State, Callable[[], T]] = {}

    def take(self) -> None:
        """Enqueue the sums of the step after the current one, unless they are known; collective."""
        (step, replaced), known = self._state, self._known
        if (step, replaced) not in known:
            before = (step - 1, replaced)
            kept = {before: known[before]} if before in known else {}
            self._known = kept | {(step, replaced): cache(self._start())}

    def around(self) -> list[Callable[[], T]]:
        """The samples of the steps before and after the current time; collective.

        The former if `take` was called one step ago, and the state was not replaced since.
        """
        self.take()
        step, replaced = self._state
        states = ((step - 1, replaced), (step, replaced))
        return [self._known[state] for state in states if state in self._known]

    @property
    def _state(self) -> State:
        return self._solver.steps, self._solver.replaced


def of_forces(solver: Solver, comm: Communicator) -> PairedSamples[Floats | None]:
    """The force and torque on each body that is weighed, on rank 0."""
    exchanged, case = solver.exchanged, solver.case
    assert exchanged is not None, "the case needs forces, see Output.bodies"

    def start() -> Sample:
        bodies, sums = exchanged.groups[:, 1], exchanged.start()

        def totals() -> Floats | None:
            parts = comm.gather((bodies, sums()))
            return None if parts is None else over_bodies(case, parts)

        return totals

    return PairedSamples(solver, start)


def mean_of(samples: Sequence[Sample]) -> Sample:
    """The mean of some samples, on rank 0."""

    def found() -> Floats | None:
        known = [each for each in [sample() for sample in samples] if each is not None]
        return np.mean(known, axis=0) if known else None

    return found
