"""Tables of a run over time: CSV files, and HDF5 files with a row for each step."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mpilbm.errors import CommandError
from mpilbm.storage.csv_log import lines, short
from mpilbm.system.hdf5_input import Hdf5InputError, group_datasets, opened, values

STEP = "step"


class Table(Mapping[str, np.ndarray]):
    """Columns by name, each with a row for each step; a copy of what the file contained.

    Columns of CSV files have the shape (rows,), those of HDF5 files (rows, …). `units`: the unit of
    a column if the file has one. `path`: the file. A row that is being written is not read.
    A name without unit or direction, such as "c_l" for "c_l +z", is allowed if it is unique.
    """

    def __init__(self, path: Path, columns: dict[str, np.ndarray], units: dict[str, str]):
        self.path, self.units, self._columns = path, units, columns

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._full(name)
        if found is None:
            raise CommandError(
                f"{self.path}: has no column '{name}'; it has {', '.join(self._columns)}"
            )
        return self._columns[found]

    def __contains__(self, name: object) -> bool:
        return self._full(name) is not None

    def _full(self, name: object) -> str | None:
        """The name of a column in the file, None if there is no such column."""
        if name in self._columns:
            return str(name)
        same = [column for column in self._columns if short(column) == name]
        return same[0] if len(same) == 1 else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return min((len(column) for column in self._columns.values()), default=0)

    def __repr__(self) -> str:
        return f"<Table {self.path.name}: {self.rows} rows of {', '.join(self._columns)}>"


def read_table(path: Path) -> Table:
    """A table from a file *.csv or *.h5; CommandError if it cannot be read as one."""
    try:
        return _hdf5(path) if path.suffix == ".h5" else _csv(path)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise CommandError(f"{path}: cannot be read as a table: {problem}") from None


def _csv(path: Path) -> Table:
    header, *rows = lines(path.read_bytes()) or [""]
    names = header.split(",")
    if not header or len(set(names)) < len(names):
        raise ValueError("its first line has no names of columns, or a name twice")
    numbers = np.full((len(rows), len(names)), np.nan)
    for number, row in enumerate(rows):
        entries = row.split(",")
        if len(entries) != len(names):
            raise ValueError(
                f"line {number + 2} has {len(entries)} entries; allowed: {len(names)}, as in line 1"
            )
        numbers[number] = [float(entry or "nan") for entry in entries]
    columns = dict(zip(names, numbers.T.copy(), strict=True))
    found = {name: re.search(r"\(([^()]+)\)$", name) for name in names}
    return Table(path, columns, {name: match[1] for name, match in found.items() if match})


def _hdf5(path: Path) -> Table:
    columns, units = {}, {}
    with opened(path) as file:
        steps = values(file, STEP, "iu")
        if steps is None or steps.ndim != 1:
            raise Hdf5InputError(f"has no dataset '{STEP}' with a number for each row")
        steps.require_stored()
        count = int((steps[:] >= 0).sum())  # rows that are not written have the step -1
        for name in group_datasets(file, "/"):
            found = values(file, name)
            if found is None or not found.ndim or found.shape[0] != steps.shape[0]:
                continue  # coordinates and the like, which do not change over time
            found.require_stored()
            columns[name] = found[:count]
            if text := found.text("unit"):
                units[name] = text
    return Table(path, columns, units)
