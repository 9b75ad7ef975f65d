"""A CSV file to which a run appends one row at a time, and continues after a restart."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Protocol

from mpilbm.errors import FileSystemError
from mpilbm.storage.files import sync, system_errors, whole
from mpilbm.system import terminal
from mpilbm.system.input_text import is_number

# Rows are passed to the system at once, so that other programs see them. They are written to the
# disk after this time and with each checkpoint; it limits what a power failure can take.
SYNC_SECONDS = 30.0


class Synced(Protocol):
    """An open file with rows, or files that a thread writes, for which a checkpoint waits."""

    def sync(self) -> None:
        """Write all of it to the disk and wait for it; in any thread."""


def lines(content: bytes) -> list[str]:
    """The complete lines of a file.

    A crash or power failure can leave an incomplete line at the end, or zeros in place of bytes
    that did not reach the disk; these are omitted.
    """
    complete, _, _ = content.rstrip(b"\0").rpartition(b"\n")
    return complete.decode(errors="backslashreplace").split("\n") if complete else []


def up_to(last: int, rows: list[str], columns: int, path: Path, each: int = 1) -> list[str]:
    """The rows up to the step `last`; FileSystemError for a row that `Rows` cannot have written.

    `each`: the rows of a step. A last step with fewer rows is omitted.
    """
    kept: list[str] = []
    previous: int | None = None
    for number, row in enumerate(rows, 2):
        complete = len(kept) % each == 0
        if previous == last and complete:
            break  # the rows that follow are not needed, and a power failure may have damaged them
        values = row.split(",")
        step = int(values[0]) if re.fullmatch("[0-9]{1,18}", values[0]) else None
        grows = previous is None or (step is not None and step > previous)
        follows = step is not None and (grows if complete else step == previous)
        if not follows or len(values) != columns or not all(map(is_number, values)):
            above = "a step" if previous is None else f"a step above {previous}"
            above = above if complete else f"the step {previous}"
            raise FileSystemError(
                f"{path}: line {number} is damaged: found {row[:80]!r}, allowed: {columns} "
                f"numbers, the first {above}; correct or remove it, or move the "
                "file elsewhere"
            )
        if step is None or step > last:
            break
        previous = step
        kept.append(row)
    return kept[: len(kept) // each * each]


class Rows:
    """An open CSV file, on one rank, with `each` rows a step. Numbers are written with all digits.

    `last` is the last row that a restart keeps, "" if there is none.
    """

    def __init__(self, path: Path, header: list[str], first_step: int, each: int = 1):
        self.path, self.header, self.each = path, ",".join(header), each
        rows = self._to_keep(first_step) if first_step else []
        self.last = rows[-1] if rows else ""
        with whole(path) as file:
            file.writelines(f"{row}\n" for row in [self.header, *rows])
        # unbuffered: if the disk is full, closing the file does not try to write again
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115 (open for the whole run)
        self._synced = monotonic()

    def _to_keep(self, last: int) -> list[str]:
        """The rows up to the step of the restart; a file with other columns is renamed."""
        if not self.path.exists():
            return []
        header, *rows = lines(self.path.read_bytes()) or [""]
        if rows and header != self.header:
            aside = self.path.with_stem(f"{self.path.stem}_before_{last:09d}")
            os.replace(self.path, aside)
            name = self.path.name
            terminal.print_line(
                f"{name} starts again, with other columns; its previous rows: {aside}"
            )
            return []
        return up_to(last, rows, self.header.count(",") + 1, self.path, self.each)

    def add(self, step: int, values: Iterable[float]) -> None:
        """Write the row of a step; OSError with the name of the file if that fails."""
        self.add_all(step, [values])

    def add_all(self, step: int, rows: Iterable[Iterable[float]]) -> None:
        """Write the rows of a step; OSError with the name of the file if that fails."""
        numbers = ([str(step), *(repr(float(value)) for value in row)] for row in rows)
        rest = "".join(",".join(row) + "\n" for row in numbers).encode()
        with system_errors(self.path):
            while rest:
                rest = rest[self.file.write(rest) :]
        if monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Write all rows to the disk and wait for it."""
        with system_errors(self.path):
            sync(self.path)
        self._synced = monotonic()

    def close(self) -> None:
        """Close the file."""
        self.file.close()
