"""Tables over time, and profiles of the output `statistics`, read from CSV and HDF5 files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.files.hdf5 import (
    Hdf5File,
    Hdf5InputError,
    Values,
    attribute,
    group_datasets,
    opened,
    require_intact,
    values,
)
from mpilbm.outputs.core.tables import CHECKSUMS, Content
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
        fix = "restore the file, or run the case again"
        raise CommandError(f"{path}: cannot be read as a table: {problem}; {fix}") from None


def last_rows(path: Path, most: int) -> tuple[str, list[str]]:
    """The header of a CSV file, and its complete lines within the last `most` bytes.

    OSError if it cannot be read.
    """
    with open(path, "rb") as file:
        header = file.readline().decode(errors="replace").rstrip("\n")
        begin = file.tell()
        start = max(begin, file.seek(0, 2) - most)
        file.seek(start)
        return header, lines(file.read())[start > begin :]  # the first line is cut


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


AXES = "xyz"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Means over time and all directions but one, in lattice units.

    axis          the direction that is not averaged: 0, 1, 2
    position      cell centres, (n,)
    u             mean velocity, (n, D)
    stress        <u_a' u_b'> by pairs such as "xy", (n,) each
    scalars       mean of each scalar by its label, (n,)
    fluxes        <u_a' phi'> of each scalar, (n, D)
    variances     <phi'^2> of each scalar, (n,)
    first, step   steps of the first and of the last sample
    samples       number of samples
    """

    path: Path
    axis: int
    position: np.ndarray
    u: np.ndarray
    stress: dict[str, np.ndarray]
    first: int
    step: int
    samples: int
    scalars: dict[str, np.ndarray] = field(default_factory=dict)
    fluxes: dict[str, np.ndarray] = field(default_factory=dict)
    variances: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def window(self) -> str:
        """The samples in words."""
        return f"{self.samples:,} samples, steps {self.first:,} to {self.step:,}"


def read_profile(path: Path, axis: str, verify: bool = False) -> Profile:
    """The profile of a file `statistics_<axis>_<step>.h5`; CommandError if it has none.

    `verify`: compare the file with its digest.
    """
    attributes = "first_step", "step", "samples"
    try:
        if verify:
            require_intact(path)
        with opened(path) as file:
            first, step, samples = (int(attribute(file, "/", k, np.int64)) for k in attributes)
            data = {name: each.astype(float) for name, each in _datasets(file).items()}
        labels = [name.removeprefix("flux_") for name in data if name.startswith("flux_")]
        position, u, stress = data[axis], data["u"], data["reynolds_stress"]
        scalars, fluxes, variances = (
            {label: data[part + label] for label in labels} for part in ("", "flux_", "variance_")
        )
    except KeyError as error:
        raise CommandError(f"{path}: cannot be read as a profile: has no dataset {error}") from None
    except ValueError as error:
        raise CommandError(f"{path}: cannot be read as a profile: {error}") from None
    names = AXES[: u.shape[-1]]
    pairs = [a + b for k, a in enumerate(names) for b in names[k:]]
    n = len(position)
    if u.shape != (n, len(names)) or stress.shape != (n, len(pairs)):
        raise CommandError(
            f"{path}: its datasets u and reynolds_stress are no profiles along {axis}"
        )
    return Profile(
        path=path,
        axis=AXES.index(axis),
        position=position,
        u=u,
        stress=dict(zip(pairs, stress.T, strict=True)),
        first=first,
        step=step,
        samples=samples,
        scalars=scalars,
        fluxes=fluxes,
        variances=variances,
    )


def read_means(path: Path, verify: bool = False) -> dict[str, np.ndarray]:
    """All means of a file of the output `statistics` by name; CommandError if it is damaged."""
    try:
        if verify:
            require_intact(path)
        with opened(path) as file:
            return _datasets(file)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


def _datasets(file: Hdf5File) -> dict[str, np.ndarray]:
    found = {}
    for name in group_datasets(file, "/"):
        if (stored := values(file, name)) is not None:
            stored.require_stored()
            found[name] = stored[()]
    return found
