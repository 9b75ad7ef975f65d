"""Checks that the mass of a closed flow is constant during a run."""

import numpy as np

from mpilbm.case.case_findings import is_closed, leaking, remedy
from mpilbm.outputs import Context
from mpilbm.verdicts.findings import SERIOUS, WARNING, Finding

NOTICED = 1e-3  # relative change of the mass that is reported, and again at each tenfold of it
WRONG = 1e-2  # relative change from which the finding is serious


class ClosedMass:
    """Compares the mass of a closed flow with that at the first check."""

    def __init__(self, context: Context):
        self.comm, self.solver, self.case = context.comm, context.solver, context.case
        self.applies = is_closed(self.case)
        self.forget()

    def forget(self) -> None:
        """Compare with the mass at the next check, because the state was replaced."""
        self._first: tuple[int, float] | None = None
        self._next = NOTICED

    def check(self, step: int) -> Finding | None:
        """The finding of this step, on rank 0; collective."""
        parts = self.comm.gather(self.solver.mass()) if self.applies else None
        if parts is None:
            return None
        mass = float(np.cumsum(np.concatenate(parts))[-1])
        if self._first is None:
            self._first = step, mass
        begin, before = self._first
        change = mass / before - 1 if before else 0.0
        if abs(change) < self._next:
            return None
        while self._next <= abs(change):
            self._next *= 10
        return self._finding(step, change, begin)

    def _finding(self, step: int, change: float, begin: int) -> Finding:
        names = ", ".join(dict.fromkeys(f"'{b.name}'" for b in leaking(self.case).values()))
        cause, fix = "no boundary of the case explains this", 'use precision.storage = "float64"'
        if names:
            cause, fix = f"{names} does not conserve it", f"set {remedy(self.case)}"
        sentence = (
            f"by step {step} the mass of the closed flow has changed by {change:+.2g} of its value "
            f"at step {begin}: {cause}; {fix}"
        )
        return Finding(SERIOUS if abs(change) >= WRONG else WARNING, "", sentence)
