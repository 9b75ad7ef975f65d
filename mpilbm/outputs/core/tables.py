"""Base of the writers of tables, to which rank 0 adds rows while the time steps continue."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from mpilbm.core.units import TIME
from mpilbm.outputs import Context
from mpilbm.outputs.core.series import Series
from mpilbm.outputs.images.vtkhdf import in_si
from mpilbm.parallel.agree import on_root
from mpilbm.storage.csv_log import Rows

if TYPE_CHECKING:
    import h5py


AnyTable = TypeVar("AnyTable", Rows, Series)


class TableWriter:
    """An open table, or several; a subclass implements `start` and `add_rows`.

    Rank 0 opens tables by `keep` and writes them; all ranks compute the numbers of their rows.
    """

    def __init__(self, context: Context):
        self.context, self.case, self.comm = context, context.case, context.comm
        self.open_tables: list[Rows | Series] = []  # on rank 0

    def keep(self, table: AnyTable) -> AnyTable:
        """A table that checkpoints sync, and that is closed with this writer; on rank 0."""
        self.open_tables.append(table)
        self.context.rows.append(table)
        return table

    @abstractmethod
    def start(self, step: int) -> Callable[[], Any]:
        """Enqueue the numbers of this step; the result completes them for `add_rows`.

        Both are collective.
        """

    @abstractmethod
    def add_rows(self, step: int, found: Any) -> None:
        """Add the rows of a step; on rank 0, where `found` is the result of `start`."""

    def write(self, step: int) -> None:
        """Enqueue the numbers of this step; rows are written when they are known. Collective."""
        found = self.start(step)
        self.context.samples.add(lambda: on_root(self.comm, self.add_rows, step, found()))

    def time(self, step: float) -> float:
        """The time in seconds with [units], else in steps."""
        return self.case.units.to_si(step, TIME) if self.case.units else float(step)

    def describe_table(self, file: "h5py.File") -> None:
        """The case, the units and the unit of the time of an HDF5 table."""
        units = self.case.units
        file["time"].attrs["unit"] = "s" if units else "steps"
        file.attrs["case"], file.attrs["units"] = self.case.toml, "SI" if units else "lattice"
        file.attrs.update({k: v for k, v in in_si(self.case, 0).items() if k != "time (s)"})

    def close(self) -> None:
        """Close the files."""
        tables, self.open_tables = self.open_tables, []
        for table in tables:
            table.close()
