"""The last good state of a run, and from it the step and cell in which a flow became unstable.

```
step    0 ........ 1000 ........ 2000           checks; each copies the state, on the device
                    |-> replayed |              here the flow is found to be not finite
                    |--|--|--| first bad step   in strides, then in single steps
```

A copy reads and writes about as many bytes as one step, and needs as much memory as the
populations. It is made if it takes at most half of the free memory on every rank. Without it the
error names the two checks between which the flow failed, but not the step.
"""

from mpilbm.errors import FileSystemError, NonFiniteError
from mpilbm.outputs import Context
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.run.progress import say

STRIDES = 32  # of a replay between two steps
ALL = 2**31  # checkpoints that are kept


class LastGood:
    """A copy of the state at the last check; `step` is None where there is no memory for it."""

    def __init__(self, context: Context):
        self.context, self.solver, self.step = context, context.solver, None
        self._copies: list | None = None

    def keep(self, step: int) -> None:
        """Copy the state of this step, whose values are good; collective at the first call."""
        if self._copies is None:
            self._copies = self._allocate()
        if self._copies:
            self._copy(self._arrays(), self._copies)
            self.step = step

    def _copy(self, sources, targets) -> None:
        """Copy arrays, after all that has been enqueued; wait."""
        device = self.solver.device
        device.synchronize()
        for source, target in zip(sources, targets, strict=True):
            device.copy(target, source)
        device.synchronize()

    def _arrays(self) -> list:
        """What the next steps depend on."""
        states = [state.values for state in self.solver.entry_states]
        return [fluid.current()["f"] for fluid in self.solver.fluids] + states

    def _allocate(self) -> list:
        """Room for the copies; empty on all ranks if one of them has too little."""
        solver, arrays = self.solver, self._arrays()
        room = 2 * sum(array.nbytes for array in arrays) <= solver.diagnostics.spare_bytes
        if not all(self.context.comm.allgather(bool(room))):
            return []
        return [solver.device.allocate(array.size, array.dtype) for array in arrays]

    def _go_back(self, step: int) -> None:
        """Put the copy back and advance it to this step; collective."""
        solver = self.solver
        solver.steps = self.step
        self._copy(self._copies, self._arrays())
        solver.resume(self.step)
        self._copy(self._copies, self._arrays())  # at step 0 `resume` sets what boundaries keep
        self._advance(step)

    def _advance(self, step: int) -> None:
        self.solver.advance(step - self.solver.steps)
        self.solver.device.synchronize()

    def explain(self, error: NonFiniteError) -> NonFiniteError:
        """The error with where and when it began; the state before it becomes a checkpoint.

        The solver has come to a step with bad values. Collective. The same error where the copy
        is missing or not older, or if the replay does not fail.
        """
        bad, totals = self.solver.steps, self.context.totals
        if self.step is None or self.step >= bad:
            return error
        say(self.context.comm, f"step {bad}: the flow failed; replaying from step {self.step}")
        first, found = self._first_bad(max(self.step, totals.checked), bad)
        if not found:
            return NonFiniteError(f"{error}; a replay did not fail: check the hardware")
        self._go_back(first - 1)
        return NonFiniteError(
            f"step {first}: {found} (it was finite at step {first - 1}, noticed at step {bad}); "
            f"{totals.advice}; {self._checkpoint(first - 1)}"
        )

    def _first_bad(self, good: int, bad: int) -> tuple[int, str]:
        """The first bad step after a good one, and what is wrong in it; "" if nothing is."""
        stride, found = None, "unknown"
        while stride != 1 and found:
            stride = -(-(bad - good) // STRIDES)
            self._go_back(good)
            for step in (*range(good + stride, bad, stride), bad):
                self._advance(step)
                found = self.context.totals.first_bad(*self.solver.speeds())
                if found:
                    break
                good = step
            bad = step
        return bad, found

    def _checkpoint(self, step: int) -> str:
        """Write the state of this step as a checkpoint and keep all others; returns a clause."""
        context = self.context
        context.kept.clear()  # sums over samples, also of the steps that failed
        writer = Checkpoint(every=1, keep=ALL).open(context)
        try:
            writer.write(step)
        except FileSystemError as error:
            return f"the state of step {step} could not be written: {error}"
        return f"{writer.path} is the last good state"
