"""Fields in VTKHDF files, of one step and of several, read where they are indexed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

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
from mpilbm.core.units import LATTICE_UNIT, TIME, Units

CELL_DATA, SOLID = "VTKHDF/CellData", "solid"
Region = slice | int | tuple[slice | int, ...] | None


@dataclass(frozen=True)
class Head:
    """The description of a file: its fields, and for a part of the box its place, else ().

    `origin` is the lower corner of the first cell and `spacing` the sides of a cell, both along
    x, y, z; `shape` are the cells along z, y, x.
    """

    fields: tuple[str, ...]
    origin: tuple[float, ...] = ()
    spacing: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class CellFields:
    """The fields of cells in an open file."""

    path: Path
    file: Hdf5File

    @property
    def names(self) -> list[str]:
        """All fields, also `solid`."""
        return group_datasets(self.file, CELL_DATA)

    def find(self, name: str) -> Values | None:
        """The values of a field, None if the file does not have it."""
        return values(self.file, f"{CELL_DATA}/{name}")

    def head(self) -> Head:
        """The description of the file; ValueError if it has none."""
        file, names = self.file, tuple(self.names)
        if attribute(file, "VTKHDF", "Type", bytes) != b"ImageData":
            return Head(names)
        origin, spacing = (_numbers(file, name, 3).astype(float) for name in ("Origin", "Spacing"))
        extent = _numbers(file, "WholeExtent", 6).astype(int)
        shape = (extent[1::2] - extent[::2])[::-1]
        return Head(names, *(tuple(each.tolist()) for each in (origin, spacing, shape)))

    def dataset(self, name: str) -> Values:
        """The values of a field; CommandError if the file does not have it."""
        found = self.find(name)
        if found is None:
            known = ", ".join(each for each in self.names if each != SOLID) or "none"
            raise CommandError(f"{self.path}: has no field '{name}'; allowed: {known}")
        return found


@contextmanager
def cell_fields(path: Path, verify: bool) -> Iterator[CellFields]:
    """The fields of a file while it is open; `verify`: see FieldFile. ValueError if it has none."""
    if verify:
        require_intact(path)
    with opened(path) as file:
        yield CellFields(path, file)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Convert a ValueError to a CommandError with the name of the file."""
    try:
        yield
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


@dataclass(frozen=True)
class FieldFile:
    """A file of the fields of one step.

    `dimensions`: 2 for a flow in two dimensions, whose files have one cell along z and vectors with
    three components. `verify`: compare the file with its digest before its first use, which reads
    all of it.
    """

    path: Path
    dimensions: int
    verify: bool = False

    @contextmanager
    def _open(self) -> Iterator[CellFields]:
        with naming(self.path), cell_fields(self.path, self.verify) as cells:
            yield cells

    def head(self) -> Head:
        """The description of the file."""
        with self._open() as cells:
            return cells.head()

    def field(self, name: str, region: Region = None, lattice_units: bool = False) -> np.ndarray:
        """A field, or the part of it in `region`, as a new array; see Series.field."""
        with self._open() as cells:
            found = cells.dataset(name)
            data = self._read(found, region)
            unit = found.attribute(LATTICE_UNIT) if lattice_units else None
        return data if unit is None else data / data.dtype.type(unit)

    def description(self, name: str) -> tuple[tuple[int, ...], np.dtype, str]:
        """The shape and type of the array that `field` returns, and its unit in SI, or ""."""
        with self._open() as cells:
            found = cells.dataset(name)
            return self._shape(found), found.dtype, found.text("unit")

    def _flat(self, found: Values) -> bool:
        """Whether the first axis is that of z in two dimensions, which is left out."""
        return self.dimensions == 2 and found.ndim >= 3 and found.shape[0] == 1

    def _vector(self, found: Values) -> bool:
        return found.ndim == 4 and found.shape[3] == 3

    def _shape(self, found: Values) -> tuple[int, ...]:
        if not self._flat(found):
            return found.shape
        return (*found.shape[1:3], *((2,) if self._vector(found) else found.shape[3:]))

    def _read(self, found: Values, region: Region) -> np.ndarray:
        index: tuple[Any, ...] = () if region is None else _as_tuple(region)
        axes = len(self._shape(found)) - self._vector(found)
        if len(index) > axes:
            raise Hdf5InputError(
                f"region: found {len(index)} axes; allowed: {axes} at most, those of '{found.name}'"
            )
        if self._flat(found):
            rest = (slice(None),) * (2 - len(index))
            last = (slice(0, 2),) if self._vector(found) else ()
            index = (0, *index, *rest, *last)
        found.require_stored()
        return np.asarray(found[index])


def _as_tuple(region: Any) -> tuple[Any, ...]:
    parts = region if isinstance(region, tuple) else (region,)
    if not all(isinstance(part, slice | int | np.integer) for part in parts):
        raise Hdf5InputError(
            f"region: found {region!r}; allowed: slices and numbers in the order z, y, x, such as "
            "np.s_[16, :, ::2]"
        )
    return parts


def _numbers(file: Hdf5File, name: str, count: int) -> np.ndarray:
    found = attribute(file, "VTKHDF", name, np.ndarray)
    if found.shape != (count,) or found.dtype.kind not in "if" or not np.isfinite(found).all():
        raise Hdf5InputError(f"has no {count} numbers in the attribute '{name}' of 'VTKHDF'")
    return found


class Origin(Protocol):
    """What a series needs of its run."""

    directory: Path
    verify: bool

    @property
    def dimensions(self) -> int:
        """2 or 3."""

    @property
    def units(self) -> Units | None:
        """The SI values of the lattice units; None without [units]."""


class Series:
    """Files with the same fields at several steps: all snapshots, or those of a part of the box.

    `steps`: the steps, ascending; `times`: in seconds if the case has [units], else the steps.
    `name`: the first part of the file names.
    """

    def __init__(self, run: Origin, name: str, files: dict[int, Path]):
        self.run, self.name, self.files = run, name, dict(sorted(files.items()))
        self.steps = np.array(list(self.files), np.int64)

    @property
    def times(self) -> np.ndarray:
        """The times of the steps."""
        units = self.run.units
        return self.steps.astype(float) if units is None else units.to_si(self.steps, TIME)

    def file(self, step: int | None = None) -> FieldFile:
        """The file of a step, by default the last one."""
        if not self.files:
            raise CommandError(
                f"{self.run.directory}: holds no {self.name}_*.vtkhdf; add an [[output]] with "
                f"name = '{self.name.partition('_')[0]}' to the case and run it"
            )
        key = int(self.steps[-1]) if step is None else step
        if key not in self.files:
            steps = list(map(str, self.files))
            raise CommandError(
                f"{self.run.directory}: has no '{self.name}' of step {key}; allowed: "
                f"{', '.join(steps if len(steps) <= 8 else [*steps[:4], '…', *steps[-2:]])}"
            )
        return FieldFile(self.files[key], self.run.dimensions, self.run.verify)

    @cached_property
    def head(self) -> Head:
        """The fields of the last file, and its place in the box."""
        return self.file().head()

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, without `solid`."""
        return tuple(name for name in self.head.fields if name != SOLID)

    def field(
        self,
        name: str,
        step: int | None = None,
        region: Region = None,
        lattice_units: bool = False,
    ) -> np.ndarray:
        """A field as a new array, (nz, ny, nx) or in 2D (ny, nx), components along a last axis.

        `step`: by default the last one. `region`: slices and numbers in this order of axes, such as
        np.s_[16, :, ::2]; only this part is read. Values are in SI if the case has [units], unless
        `lattice_units` is set.
        """
        return self.file(step).field(name, region, lattice_units)

    def centres(self) -> tuple[np.ndarray, ...]:
        """The coordinates of cell centres along x, y (and z), in m if the case has [units]."""
        head = self.head
        sizes = head.shape[::-1][: self.run.dimensions]
        return tuple(
            head.origin[k] + (np.arange(n) + 0.5) * head.spacing[k] for k, n in enumerate(sizes)
        )
