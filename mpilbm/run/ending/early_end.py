"""Ends the loop over time steps early, at a step on which all ranks agree."""

from abc import ABC, abstractmethod

from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.run.ending.interrupts import interrupts
from mpilbm.run.ending.stopping import Stopping, TimeLimit
from mpilbm.run.march import March


class EarlyEnd(ABC):
    """A visitor of the march that ends it at a signal or a time limit.

    A subclass implements `caught` and `end`.
    """

    def __init__(self, march: March, limit: TimeLimit | None = None):
        context = march.context
        self.march = march
        size = Checkpoint(every=1).disk_bytes(context.case, 1)
        self.stopping = Stopping(context.comm, context.clock, limit, size, context.solver.steps)

    @property
    @abstractmethod
    def caught(self) -> str:
        """The name of the signal that this rank has received, or ""."""

    @abstractmethod
    def end(self, step: int, reason: str) -> None:
        """Raise the error that ends the run; collective."""

    def next_due(self, step: int, last: int) -> int:
        """The next step at which the ranks agree whether to end."""
        return min(self.stopping.next_step, last)

    def visit(self, step: int, last: int) -> None:
        """Call `end` on all ranks if the run has to end before `last`."""
        if step != self.stopping.next_step:
            return
        context = self.march.context
        with context.clock.measure("outputs"):
            context.samples.settle()
        context.solver.device.synchronize()
        seconds = self.march.writers.checkpoint_seconds, context.background.left
        reason = self.stopping.agree(step, self.caught, *seconds)
        if reason and step < last:
            self.end(step, reason)


class Interruption(EarlyEnd):
    """Raises KeyboardInterrupt on all ranks when all outputs of the step are complete."""

    @property
    def caught(self) -> str:
        """Ctrl-C, which is delayed in a Python program."""
        return interrupts.caught

    def end(self, step: int, reason: str) -> None:
        """Complete the outputs, and raise KeyboardInterrupt."""
        self.march.finish()
        interrupts.take()
        raise KeyboardInterrupt
