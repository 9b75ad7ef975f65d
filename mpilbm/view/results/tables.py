"""Tables of a run over time: CSV files, and HDF5 files with a row for each step."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.files.hdf5 import (
    Hdf5File,
    Hdf5InputError,
    Values,
    group_datasets,
    opened,
    require_intact,
    values,
)
from mpilbm.outputs.core.series import CHECKSUMS, Content
from mpilbm.storage.csv_log import intact_rows, lines, short
from mpilbm.storage.tables import DamagedRowsError

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


def read_table(path: Path, verify: bool = False) -> Table:
    """A table from a file *.csv or *.h5; CommandError if it cannot be read as one.

    `verify`: compare the rows with their checksums.
    """
    try:
        return _hdf5(path, verify) if path.suffix == ".h5" else _csv(path, verify)
    except DamagedRowsError as error:
        what = "row" if path.suffix == ".h5" else "line"
        raise CommandError(f"{path}: {what} {error.number} is damaged: {error}") from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise CommandError(f"{path}: cannot be read as a table: {problem}") from None


def _csv(path: Path, verify: bool) -> Table:
    header, *rows = (intact_rows(path) if verify else lines(path.read_bytes())) or [""]
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


def _hdf5(path: Path, verify: bool) -> Table:
    if verify:
        require_intact(path)
    with opened(path) as file:
        found = {name: _stored(file, name) for name in _columns(file)}
        rows = {name: each[:] for name, each in found.items()}
        known = values(file, CHECKSUMS, "i")
        content = Content(rows, None if known is None else known[:])
        columns = content.verified() if verify else content.complete
        units = {name: each.text("unit") for name, each in found.items()}
    return Table(path, columns, {name: unit for name, unit in units.items() if unit})


def _columns(file: Hdf5File) -> list[str]:
    """The datasets with a row for each step."""
    if (known := values(file, CHECKSUMS, "i")) is not None:
        return known.text("columns").split(",")
    steps = _stored(file, STEP)  # in a file of an earlier version: those with so many rows
    every = ((name, values(file, name)) for name in group_datasets(file, "/"))
    return [name for name, each in every if each is not None and each.shape[:1] == steps.shape]


def _stored(file: Hdf5File, name: str) -> Values:
    found = values(file, name, "iu" if name == STEP else "biuf")
    if found is None or (name == STEP and found.ndim != 1):
        raise Hdf5InputError(f"has no dataset '{name}' with a number for each row")
    found.require_stored()
    return found
