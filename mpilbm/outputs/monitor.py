"""The course of a run in numbers, one row of a CSV file at a time."""

import os
from typing import ClassVar

from mpilbm.outputs import Context, Output, number_of_cells
from mpilbm.outputs.agree import on_root
from mpilbm.registry import register

NAME = "monitor.csv"
ROW_BYTES = 256


@register("outputs", "monitor")
class Monitor(Output):
    """Mass, momentum, energy, enstrophy, largest speed and GLUPS as rows of `monitor.csv`."""

    files: ClassVar[tuple[str, ...]] = (NAME,)

    def disk_bytes(self, case, times: int) -> int:
        """A row each time."""
        return times * ROW_BYTES * len(case.fluids)

    def open(self, context: Context) -> "MonitorWriter":
        """Starts the file, or after a restart goes on behind the rows up to its step."""
        return MonitorWriter(context)


class MonitorWriter:
    """Rank 0 holds the file; the sums are made by all. Numbers read back as they were."""

    def __init__(self, context: Context):
        self.context = context
        self.path = context.directory / NAME
        names, _ = context.solver.sums()
        self.columns = [name for name in names if not name.endswith("nonfinite")]
        self.header = ",".join(["step", "time", *self.columns, "glups"])
        self.file = None
        self.before = (context.first_step, 0.0)
        on_root(context.comm, self._open)

    def _open(self):
        rows = self._rows_to_keep() if self.context.first_step else []
        partial = self.path.with_name(NAME + ".partial")
        partial.write_text("".join(f"{row}\n" for row in [self.header, *rows]))
        os.replace(partial, self.path)
        self.file = open(self.path, "a")  # noqa: SIM115 (open for the whole run)

    def _rows_to_keep(self) -> list[str]:
        """Whole rows up to the step of the restart, if the file is one of these columns."""
        if not self.path.exists():
            return []
        header, *rows = self.path.read_text().splitlines() or [""]
        commas = self.header.count(",")
        whole = [row for row in rows if row.count(",") == commas and row[0].isdigit()]
        last = self.context.first_step
        return [row for row in whole if int(row.split(",")[0]) <= last] * (header == self.header)

    def write(self, step: int):
        """The row of this step; called on all ranks."""
        totals = self.context.totals.at(step)
        on_root(self.context.comm, self._write, step, totals)

    def _write(self, step, totals):
        values = [totals[name] for name in self.columns]
        row = [str(step), *(repr(float(value)) for value in (step, *values, self._glups(step)))]
        self.file.write(",".join(row) + "\n")
        self.file.flush()

    def _glups(self, step) -> float:
        """10^9 cells a second since the last row, outputs not counted; 0 with no step done."""
        before, then = self.before
        self.before = step, self.context.clock.stepping
        seconds = self.context.clock.stepping - then
        updates = (step - before) * number_of_cells(self.context.case)
        return updates / seconds / 1e9 if updates and seconds else 0.0

    def close(self):
        """Close the file."""
        if self.file is not None:
            self.file.close()
            self.file = None
