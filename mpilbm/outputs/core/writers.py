"""All outputs of a run, each written when it is due, and the definitions of their files.

The file `outputs.json` in the output folder has, by the names of files, the definition of what they
contain, see Output.contents. A restart with another definition sets the existing files aside, and
the output begins new ones. With a folder of an earlier version, which has no such file, the case in
the checkpoint is compared.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mpilbm.case.case import Case, parse_case
from mpilbm.core.errors import FileSystemError, MpilbmError, NonFiniteError
from mpilbm.core.files.file_digest import sealed, unsealed
from mpilbm.outputs import Context, Output, SamplesAhead, Writer
from mpilbm.outputs.checkpoint import Checkpoint, CheckpointWriter
from mpilbm.outputs.core import next_multiple
from mpilbm.outputs.core.restart import opened
from mpilbm.parallel import file_system_error, on_root, together
from mpilbm.storage import whole
from mpilbm.storage.directory import DEFINITIONS, STEADY, expression
from mpilbm.storage.tables import set_aside

Definition = dict[str, Any]  # as read from JSON
AND = ", "  # between names of files


def prepare_files(context: "Context") -> None:
    """Set files aside whose definition has changed, and record the definitions; on rank 0.

    Called before the outputs are opened. If it is interrupted, the next start does the rest.
    """
    directory, first = context.directory, context.first_step
    now, before = of_case(context.case), _before(context)
    earlier: dict[str, dict[str, str]] = {}
    for output in context.case.outputs:
        earlier |= dict.fromkeys(map(AND.join, output.contents(context.case)), output.earlier)
    for names, definition in now.items():
        present = earlier.get(names, {})
        known = {
            present.get(key, key): value for key, value in before.get(names, definition).items()
        }
        if known != definition:
            keys = (key for key in known | definition if known.get(key) != definition.get(key))
            set_aside(_files(directory, names), first, " and ".join(sorted(keys)))
    if before or now:
        with whole(directory / DEFINITIONS) as file:
            file.write(sealed(before | now))


def of_case(case: Case) -> dict[str, Definition]:
    """The definitions of all files that a restart continues, by the names of these files.

    In the form in which JSON returns them: tuples are lists.
    """
    found: dict[str, Definition] = {}
    for output in case.outputs:
        contents = output.contents(case).items()
        found |= {AND.join(names): definition for names, definition in contents}
    if case.run.steady:
        steady = case.run.steady
        of_error = {} if steady.by == "change" else {"by": steady.by}
        found[STEADY] = {"of": steady.of, "every": steady.every} | of_error
    return json.loads(json.dumps(found))


def _before(context: "Context") -> dict[str, Definition]:
    """The definitions of the files in the folder, as far as they are known."""
    path, checkpoint = context.directory / DEFINITIONS, context.checkpoint
    try:
        return unsealed(path.read_text("utf-8"))
    except FileNotFoundError:
        pass
    except ValueError as error:
        raise FileSystemError(
            f"{path}: is damaged: {error}; if the keys of all [[output]] are those of the files in "
            "this folder, remove it; else move these files elsewhere, too"
        ) from None
    if checkpoint is None or checkpoint.parent.resolve() != context.directory.resolve():
        return {}
    try:
        with opened(checkpoint) as file:
            tables = tomllib.loads(file.attrs["case"])
        return of_case(parse_case(tables, context.case.path))
    except (MpilbmError, tomllib.TOMLDecodeError):  # such as a file that the case names
        return {}


def _files(directory: Path, names: str) -> list[Path]:
    """The existing files with these names, which have <step> for variable parts."""
    form = re.compile("|".join(map(expression, names.split(AND))))
    return sorted(path for path in directory.iterdir() if form.fullmatch(path.name))


class Writers:
    """The open outputs of a case, or those given; a context manager.

    Checkpoints are written last, and files get their names in the order in which they were begun:
    if the checkpoint of a step is on the disk, so are the other outputs of this step.
    """

    def __init__(self, context: Context, outputs: Sequence[Output] | None = None):
        self.context = context
        self.outputs = context.case.outputs if outputs is None else outputs
        self.open: list[tuple[Output, Writer]] = []

    def __enter__(self) -> Self:
        if self.context.keeps_files:
            on_root(self.context.comm, prepare_files, self.context)
        with ExitStack() as stack:
            for output in sorted(self.outputs, key=lambda output: isinstance(output, Checkpoint)):
                writer = output.open(self.context)
                stack.callback(writer.close)
                self.open.append((output, writer))
            stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._end(error)
        except BaseException as found:
            error = found
            raise
        finally:
            self.context.error = error
            self.context.background.close()
            self._close_all(error)

    def _end(self, error: BaseException | None) -> None:
        """Complete all outputs; those that were begun if the flow or a file has failed."""
        if error is None:
            self.finish()
        elif isinstance(error, (NonFiniteError, FileSystemError)):  # raised on all ranks alike
            with suppress(MpilbmError):
                self.context.background.settle(0)

    def _close_all(self, error: BaseException | None) -> None:
        """Close all outputs, even if some fail.

        Raises the first error on all ranks, or reports it if another error ends the run. A disk
        that is full for one file is often full for the next ones: a single message is enough.
        """
        comm = self.context.comm
        if error is None:
            together(comm, self._close)
            return
        try:
            self._close()
        except (OSError, MpilbmError) as found:
            if not isinstance(error, FileSystemError):
                text = file_system_error(found) if isinstance(found, OSError) else found
                self.context.say(f"warning: {text}")

    def _close(self) -> None:
        failed: list[OSError | MpilbmError] = []
        with ExitStack() as stack:
            for _, writer in self.open:
                stack.callback(_close_one, writer, failed)
        if failed:
            raise failed[0]

    def finish(self) -> None:
        """Wait until all rows, and all files that are written in the background, are complete.

        Collective.
        """
        self.context.samples.settle()
        self.context.background.settle(0)

    def next_due(self, step: int, last: int, final: int) -> int:
        """The next step, at most `last`, at which an output is due, or samples the step before.

        final: the step at which all outputs are written
        """
        found, steady = [last], self.context.case.run.steady
        for output, _ in self.open:
            found.append(due := output.next_due(step, last))
            if output.ahead(self.context.case):
                ends = (due, next_multiple(step + 1, steady.every, last)) if steady else (due,)
                later = (k for k in ends if k > step + 1)
                found += [k - 1 for k in later if self._may_be_due(output, k, final)]
        return min(found)

    def _may_be_due(self, output: Output, step: int, last: int) -> bool:
        """Whether an output is due at this step, or will be if the run ends there as steady."""
        steady = self.context.case.run.steady
        may_end = steady is not None and step % steady.every == 0
        return output.due(step, step if may_end else last)

    def prepare(self, step: int, last: int) -> None:
        """Sample this step for outputs that may be due at the next one; collective."""
        for output, writer in self.open:
            if output.ahead(self.context.case) and self._may_be_due(output, step + 1, last):
                assert isinstance(writer, SamplesAhead), output.name
                writer.prepare(step)

    def write(self, step: int, last: int) -> None:
        """Write the outputs that are due at this step; at step 0 and at the last step all are.

        Also samples it for the next step.
        """
        self.context.background.settle()
        self.context.last_step = last
        for output, writer in self.open:
            if output.due(step, last):
                self._write(writer, step)
        self.prepare(step, last)

    def _write(self, writer: Writer, step: int) -> None:
        try:
            writer.write(step)
        except OSError as error:  # of a plug-in; all others raise it on all ranks
            if self.context.comm.size > 1:
                raise
            raise file_system_error(error) from error
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


def _close_one(writer: Writer, failed: list[OSError | MpilbmError]) -> None:
    """Close an output; keeps the error of a file."""
    try:
        writer.close()
    except (OSError, MpilbmError) as error:
        failed.append(error)
