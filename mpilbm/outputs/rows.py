"""The course of a run as a CSV file: it grows by a row at a time, and goes on after a restart."""

import os
from pathlib import Path

from mpilbm import terminal
from mpilbm.outputs.files import sync, whole
from mpilbm.outputs.planes import told


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
        """Whole rows up to the step of the restart; a file of other columns is put aside."""
        if not self.path.exists():
            return []
        header, *rows = self.path.read_text().splitlines() or [""]
        if rows and header != self.header:
            aside = self.path.with_stem(f"{self.path.stem}_before_{last:09d}")
            os.replace(self.path, aside)
            name = self.path.name
            terminal.say(f"{name} starts again, with other columns; its previous rows: {aside}")
            return []
        commas = self.header.count(",")
        whole = [row for row in rows if row.count(",") == commas and row[0].isdigit()]
        return [row for row in whole if int(row.split(",")[0]) <= last]

    def add(self, step: int, values) -> None:
        """Write the row of a step; OSError with the file's name if that fails."""
        row = [str(step), *(repr(float(value)) for value in values)]
        left = (",".join(row) + "\n").encode()
        with told(self.path):
            while left:
                left = left[self.file.write(left) :]

    def sync(self) -> None:
        """Have all rows so far on the disk."""
        with told(self.path):
            sync(self.path)

    def close(self) -> None:
        """Close the file."""
        self.file.close()
