"""The last good state of a run, and how a replay from it finds the step and cell of a failure.

```
step    0 ........ 1000 ........ 2000           checks; each copies the state, on the device
                    |-> replayed |              here the state is found to be wrong
                    |--|--|--| first bad step   in strides, then in single steps
```

A copy reads and writes about as many bytes as one step, and needs as much memory as the
populations. It is made if it takes at most half of the free memory on every rank. Without it the
error gives the two checks between which the flow failed, but not the step.
"""

from collections.abc import Sequence
from typing import Any

from mpilbm.core.errors import BodyError, FileSystemError, NonFiniteError
from mpilbm.outputs import Context
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.core.totals import Bad

STRIDES = 32  # of a replay between two steps
ALL = 2**31  # checkpoints that are kept


class LastGood:
    """A copy of the state at the last check; `step` is None if there is none."""

    def __init__(self, context: Context):
        self.context, self.solver = context, context.solver
        self.step: int | None = None
        self._copies: list | None = None  # before the first call of `keep`
        self._bodies: Any = None  # the states of free bodies

    def keep(self, step: int) -> None:
        """Copy the state of this step, whose values are finite; collective."""
        if self._copies is None:
            self._copies = self._allocate()
        if self._copies:
            self._copy(self._arrays(), self._copies)
            self.step = step
            if free := self.solver.moving and self.solver.moving.free:
                self._bodies = free.states(step)

    def forget(self) -> None:
        """Discard the copy, because the state was replaced: a replay would not lead to it."""
        self.step = None

    def _copy(self, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        """Copy device arrays after all work that has been enqueued, and wait."""
        device = self.solver.device
        device.synchronize()
        for source, target in zip(sources, targets, strict=True):
            device.copy(target, source)
        device.synchronize()

    def _arrays(self) -> list:
        states = [state.values for state in self.solver.entry_states]
        return [each.current()["f"] for each in self.solver.all] + states

    def _allocate(self) -> list:
        """Memory for the copies; an empty list on all ranks if one of them has too little."""
        solver, arrays = self.solver, self._arrays()
        room = 2 * sum(array.nbytes for array in arrays) <= solver.diagnostics.spare_bytes
        if not all(self.context.comm.allgather(bool(room))):
            return []
        return [solver.device.allocate(array.size, array.dtype) for array in arrays]

    def _go_back(self, good: int, step: int) -> None:
        """Restore the copy, the state of step `good`, and advance to `step`; collective."""
        solver, copies = self.solver, self._copies or []
        solver.steps = good
        if free := solver.moving and solver.moving.free:
            free.restore(good, self._bodies)
        self._copy(copies, self._arrays())
        solver.resume(good)
        self._copy(copies, self._arrays())  # at step 0 `resume` sets the values of boundaries
        self._advance(step)

    def _advance(self, step: int) -> None:
        self.solver.advance(step - self.solver.steps)
        self.solver.device.synchronize()

    def explain(self, error: NonFiniteError) -> NonFiniteError:
        """The error with the step and cell of the failure; collective.

        The solver has reached error.step, whose values are bad, or is beyond it. Writes the state
        before the failure as a checkpoint. Returns `error` itself if there is no older copy.
        """
        bad, totals, copied = error.step, self.context.totals, self.step
        if copied is None or copied >= bad or isinstance(error, BodyError):
            return error  # of a body: it names the step already
        self.context.say(f"step {bad}: the flow failed; replaying from step {copied}")
        good = copied if totals.checked is None else max(copied, totals.checked)
        first, found = self._first_bad(copied, good, bad)
        if not found:
            return NonFiniteError(f"{error}; a replay did not fail: check the hardware", bad)
        self._go_back(copied, first - 1)
        return NonFiniteError(
            f"step {first}: {found.what} (it was {found.before} at step {first - 1}, noticed at "
            f"step {bad}); {found.advice}; {self._checkpoint(first - 1)}",
            step=first,
        )

    def _first_bad(self, copied: int, good: int, bad: int) -> tuple[int, Bad | None]:
        """The first bad step between a good and a bad one, and what is wrong; None if none fails.

        `copied` is the step of the copy. Each pass replays in smaller strides.
        """
        while True:
            stride = -(-(bad - good) // STRIDES)
            self._go_back(copied, good)
            found = None
            for step in (*range(good + stride, bad, stride), bad):
                self._advance(step)
                found = self.context.totals.first_bad(self.context.totals.now())
                if found:
                    break
                good = step
            bad = step
            if stride == 1 or not found:
                return bad, found

    def _checkpoint(self, step: int) -> str:
        """Write the state of this step as a checkpoint and keep all others.

        Returns a clause for the message.
        """
        context = self.context
        if not context.keeps_files:
            return "without an output folder the last good state is not written"
        context.kept.clear()  # these sums include samples of the steps that failed
        writer = Checkpoint(every=1, keep=ALL).open(context)
        try:
            writer.write(step)
            context.background.settle(0)
        except FileSystemError as error:
            return f"the state of step {step} could not be written: {error}"
        return f"{writer.path} is the last good state"
