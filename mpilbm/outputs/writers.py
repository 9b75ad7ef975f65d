"""All outputs of a run, each written when it is due."""

import time
from contextlib import ExitStack, suppress

from mpilbm.errors import FileSystemError, MpilbmError, NonFiniteError
from mpilbm.outputs import Context, next_due
from mpilbm.outputs.checkpoint import Checkpoint


class Writers:
    """The opened outputs of a case; a context manager.

    Checkpoints come last: where one lies on the disk, the other outputs of its step do too.
    `checkpoint_seconds` is what the last one took on the slowest rank, 0 if there was none, without
    the wait for files in the background.
    """

    def __init__(self, context: Context):
        self.context, self.checkpoint_seconds = context, 0.0
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

    def __exit__(self, kind, error, trace):
        try:
            if isinstance(error, (NonFiniteError, FileSystemError)):  # raised on all ranks alike
                with suppress(MpilbmError):
                    self.finish()
        finally:
            self.context.background.close()
            self._stack.__exit__(kind, error, trace)

    def finish(self) -> None:
        """Wait until all that is written in the background has its name; collective."""
        self.context.background.settle(0)

    def next_due(self, step: int, last: int) -> int:
        """The next step at which anything is due."""
        return min([last, *(next_due(step, output.every, last) for output, _ in self.open)])

    def write(self, step: int, last: int):
        """Write what is due at this step; at step 0 and at the last one all is."""
        self.context.background.settle()
        self.context.last_step = last
        for output, writer in self.open:
            due = step % output.every == 0 or step == last
            if due and (step > 0 or output.at_start):
                self._write(writer, step, isinstance(output, Checkpoint))

    def _write(self, writer, step, checkpoint: bool):
        if checkpoint:
            self.finish()
        begin = time.monotonic()
        writer.write(step)
        self.context.comm.Barrier()  # no GPU waits in a kernel for one whose rank still writes
        if checkpoint:
            self.checkpoint_seconds = time.monotonic() - begin

    def checkpoint(self, step: int):
        """Write a checkpoint, due or not, asked for by the case or not, and return its path."""
        writers = [writer for output, writer in self.open if isinstance(output, Checkpoint)]
        writers = writers or [Checkpoint(every=1).open(self.context)]
        self._write(writers[0], step, True)
        return writers[0].path
