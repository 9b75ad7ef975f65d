"""All outputs of a run, each written when it is due."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from mpilbm.errors import FileSystemError, MpilbmError, NonFiniteError
from mpilbm.outputs import Context, Output, Writer
from mpilbm.outputs.checkpoint import Checkpoint, CheckpointWriter
from mpilbm.outputs.core.definitions import prepare_files
from mpilbm.parallel.agree import on_root


class Writers:
    """The open outputs of a case, or those given; a context manager.

    Checkpoints are written last, and files get their names in the order in which they were begun:
    if the checkpoint of a step is on the disk, so are the other outputs of this step.
    """

    def __init__(self, context: Context, outputs: Sequence[Output] | None = None):
        self.context, self._stack = context, ExitStack()
        self.outputs = context.case.outputs if outputs is None else outputs
        self.open: list[tuple[Output, Writer]] = []

    def __enter__(self) -> Self:
        context = self.context
        if context.keeps_files:
            on_root(context.comm, prepare_files, context)
        with self._stack:
            for output in sorted(self.outputs, key=lambda output: isinstance(output, Checkpoint)):
                writer = output.open(context)
                self._stack.callback(writer.close)
                self.open.append((output, writer))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if isinstance(error, (NonFiniteError, FileSystemError)):  # raised on all ranks alike
                with suppress(MpilbmError):
                    self.context.background.settle(0)
        finally:
            self.context.background.close()
            self._stack.__exit__(kind, error, trace)

    def finish(self) -> None:
        """Wait until all rows, and all files that are written in the background, are complete.

        Collective.
        """
        self.context.samples.settle()
        self.context.background.settle(0)

    def next_due(self, step: int, last: int) -> int:
        """The next step at which an output is due."""
        return min([last, *(output.next_due(step, last) for output, _ in self.open)])

    def write(self, step: int, last: int) -> None:
        """Write the outputs that are due at this step; at step 0 and at the last step all are."""
        self.context.background.settle()
        self.context.last_step = last
        for output, writer in self.open:
            if output.due(step, last):
                self._write(writer, step)

    def _write(self, writer: Writer, step: int) -> None:
        writer.write(step)
        # no kernel of another rank waits for this rank's planes while this rank still writes
        self.context.comm.barrier()

    @property
    def checkpoint_seconds(self) -> float | None:
        """The time of the last checkpoint until it had its name, on rank 0; None before it."""
        found = [writer.seconds for _, writer in self.open if isinstance(writer, CheckpointWriter)]
        return found[0] if found else None

    def checkpoint(self, step: int) -> Path | None:
        """Write a checkpoint, even if none is due or configured; its path, when it is complete."""
        writers = [writer for _, writer in self.open if isinstance(writer, CheckpointWriter)]
        writer = writers[0] if writers else Checkpoint(every=1).open(self.context)
        self._write(writer, step)
        self.finish()
        return writer.path
