"""The course of a run as a CSV file: it grows by a row at a time, and goes on after a restart."""

import os
import re
from pathlib import Path

from mpilbm.errors import FileSystemError
from mpilbm.storage.files import sync, whole
from mpilbm.storage.planes import system_errors
from mpilbm.system import terminal
from mpilbm.system.input_text import is_number


def lines(content: bytes) -> list[str]:
    """The complete lines of a file, without what a crash or a power failure leaves at its end.

    That is a line without its end, or zeros in place of bytes that did not reach the disk.
    """
    complete, _, _ = content.rstrip(b"\0").rpartition(b"\n")
    return complete.decode(errors="backslashreplace").split("\n") if complete else []


def up_to(last: int, rows: list[str], columns: int, path) -> list[str]:
    """The rows up to the step `last`; FileSystemError for a row that was not written like this."""
    kept, before = [], -1
    for number, row in enumerate(rows, 2):
        if before == last:
            break  # what follows is not needed, and a power failure may have damaged it
        values = row.split(",")
        step = int(values[0]) if re.fullmatch("[0-9]{1,18}", values[0]) else -1
        if len(values) != columns or step <= before or not all(map(is_number, values)):
            raise FileSystemError(
                f"{path}: line {number} is damaged: found {row[:80]!r}, allowed: {columns} "
                f"numbers, the first a step above {before}; correct or remove it, or move the "
                "file elsewhere"
            )
        if step > last:
            break
        before = step
        kept.append(row)
    return kept


class Rows:
    """An open CSV file; numbers read back as they were. For one rank."""

    def __init__(self, path: Path, header: list[str], first_step: int):
        self.path, self.header = path, ",".join(header)
        rows = self._to_keep(first_step) if first_step else []
        with whole(path) as file:
            file.writelines(f"{row}\n" for row in [self.header, *rows])
        # unbuffered: what did not fit the disk is not tried again when the file is closed
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115 (open for the whole run)

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
        return up_to(last, rows, self.header.count(",") + 1, self.path)

    def add(self, step: int, values) -> None:
        """Write the row of a step; OSError with the file's name if that fails."""
        row = [str(step), *(repr(float(value)) for value in values)]
        left = (",".join(row) + "\n").encode()
        with system_errors(self.path):
            while left:
                left = left[self.file.write(left) :]

    def sync(self) -> None:
        """Have all rows so far on the disk."""
        with system_errors(self.path):
            sync(self.path)

    def close(self) -> None:
        """Close the file."""
        self.file.close()
