"""The course of a run in numbers, one row of a CSV file at a time."""

from typing import ClassVar

from mpilbm.outputs import Context, Output, number_of_cells
from mpilbm.parallel.agree import on_root
from mpilbm.physics import interface_length
from mpilbm.registry import register
from mpilbm.storage.csv_log import Rows
from mpilbm.units import TIME

NAME = "monitor.csv"
ROW_BYTES = 256


@register("outputs", "monitor")
class Monitor(Output):
    """Mass, momentum, energy, enstrophy, largest speed and GLUPS as rows of `monitor.csv`.

    In lattice units; with [units] the time in seconds too. Of coupled fluids also the mass of each
    and the length of their interfaces, in 3D the area (see interfaces.py).
    """

    files: ClassVar[tuple[str, ...]] = (NAME,)
    several: ClassVar[bool] = False

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
        self.columns = [n for n in interface_length.columns(names) if n != "nonfinite"]
        self.rows = None
        self.before = (context.first_step, 0.0)
        on_root(context.comm, self._open)

    def _open(self):
        seconds = ["time_s"] if self.context.case.units else []
        header = ["step", "time", *self.columns, "glups", *seconds]
        self.rows = Rows(self.path, header, self.context.first_step)
        self.context.rows.append(self.rows)

    def write(self, step: int):
        """The row of this step; called on all ranks."""
        totals = self.context.totals.at(step)
        on_root(self.context.comm, self._write, step, totals)

    def _write(self, step, totals):
        values = [totals[name] for name in self.columns]
        units = self.context.case.units
        seconds = (units.to_si(step, TIME),) if units else ()
        self.rows.add(step, (step, *values, self._glups(step), *seconds))

    def _glups(self, step) -> float:
        """10^9 cells a second since the last row, outputs not counted; 0 with no step done."""
        before, then = self.before
        self.before = step, self.context.clock.stepping
        seconds = self.context.clock.stepping - then
        updates = (step - before) * number_of_cells(self.context.case)
        return updates / seconds / 1e9 if updates and seconds else 0.0

    def close(self):
        """Close the file."""
        if self.rows is not None:
            self.rows.close()
            self.rows = None
