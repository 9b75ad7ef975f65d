"""All outputs of a run, each written when it is due."""

from contextlib import ExitStack

from mpilbm.outputs import Context, next_due
from mpilbm.outputs.checkpoint import Checkpoint


class Writers:
    """The opened outputs of a case; a context manager.

    Checkpoints come last: where one lies on the disk, the other outputs of its step do too.
    """

    def __init__(self, context: Context):
        self.context = context
        self.open, self._stack = [], ExitStack()

    def __enter__(self):
        outputs = self.context.case.outputs
        with self._stack:
            for output in sorted(outputs, key=lambda output: isinstance(output, Checkpoint)):
                writer = output.open(self.context)
                self._stack.callback(writer.close)
                self.open.append((output, writer))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def next_due(self, step: int, last: int) -> int:
        """The next step at which anything is due."""
        return min([last, *(next_due(step, output.every, last) for output, _ in self.open)])

    def write(self, step: int, last: int):
        """Write what is due at this step; at step 0 and at the last one all is."""
        self.context.last_step = last
        for output, writer in self.open:
            due = step % output.every == 0 or step == last
            if due and (step > 0 or output.at_start):
                writer.write(step)

    def checkpoint(self, step: int):
        """Write a checkpoint, due or not, asked for by the case or not, and return its path."""
        writers = self._checkpoints() or [Checkpoint(every=1).open(self.context)]
        writers[0].write(step)
        return writers[0].path

    def _checkpoints(self):
        return [writer for output, writer in self.open if isinstance(output, Checkpoint)]

    @property
    def checkpoint_seconds(self) -> float:
        """What the last checkpoint took, 0 if there was none."""
        return max([writer.seconds for writer in self._checkpoints()], default=0.0)
