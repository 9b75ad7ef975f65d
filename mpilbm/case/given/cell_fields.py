"""Numbers of all cells of the box, read or computed in planes: from arrays, files and functions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import isfile  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.errors import CaseError
from mpilbm.core.files.hdf5 import opened, require_intact
from mpilbm.core.files.input_arrays import hdf5_dataset, npy_array
from mpilbm.core.formulas.given_functions import GivenFunction
from mpilbm.physics.lattices import stored_cells, x_of

Floats = NDArray[np.float64]
BLOCK_CELLS = 2**14  # of a function, evaluated together


@dataclass(frozen=True, eq=False)
class CellField:
    """`count` numbers for each cell of a box of `size` cells (nx, ny[, nz]).

    `staggered`: whether the lattice stores every other cell. `where` and `path` are the key path
    and the case file, for messages.
    """

    size: tuple[int, ...]
    staggered: bool
    count: int
    where: str
    path: Any

    timed = False

    def planes(self, begin: int, end: int, t: float = 0) -> Floats:
        """The numbers of the stored cells of planes begin … end - 1, (n, rows, nx, count).

        Raises CaseError for a value that is not finite, and for errors of files and functions.
        """
        found = self._planes(begin, end, t)
        bad = np.argwhere(~np.isfinite(found))
        if len(bad):
            plane, row, k, part = bad[0].tolist()
            x, plane = x_of(self.staggered, begin + plane, row, k), begin + plane
            at = (x, plane) if len(self.size) == 2 else (x, row, plane)
            cell = ", ".join(f"{axis}={n}" for axis, n in zip("xyz", at, strict=False))
            raise CaseError(
                f"is {found[tuple(bad[0])]} in cell {cell} (counted from 0) at t = {t:g}; allowed: "
                "finite numbers; change them",
                f"{self.where}.{part}" if self.count > 1 else self.where,
                self.path,
            )
        return found

    def _planes(self, begin: int, end: int, t: float) -> Floats:
        raise NotImplementedError

    @property
    def _shape(self) -> tuple[int, int, int]:
        """(planes, rows, nx) of all nodes of the box."""
        nx, *rest = self.size
        return (rest[1], rest[0], nx) if len(rest) == 2 else (rest[0], 1, nx)


@dataclass(frozen=True, eq=False)
class ArrayField(CellField):
    """The values of an array (nz, ny, nx[, count]), in 2D (ny, nx[, count])."""

    array: Any = None

    def _planes(self, begin: int, end: int, t: float) -> Floats:
        return self._stored(self.array, begin, end)

    def _stored(self, array: Any, begin: int, end: int) -> Floats:
        _, rows, nx = self._shape
        numbers = np.asarray(array[begin:end], np.float64)
        return stored_cells(
            self.staggered, numbers.reshape(end - begin, rows, nx, self.count), begin
        )

    def require(self, array: Any) -> None:
        """ValueError unless an array has a value for each cell."""
        wanted = (*self.size[::-1], self.count) if self.count > 1 else self.size[::-1]
        if array.dtype.kind not in "iuf":
            raise ValueError(f"has type {array.dtype}; save it as float64")
        if array.shape != wanted:
            raise ValueError(
                f"has shape {array.shape}; allowed: {wanted}, slowest axis first, x "
                f"{'and the components ' if self.count > 1 else ''}last"
            )


@dataclass(frozen=True, eq=False)
class FileField(ArrayField):
    """The values of a dataset of an HDF5 file, read when they are needed."""

    file: Path = Path()
    dataset: str = ""

    def _planes(self, begin: int, end: int, t: float) -> Floats:
        with opened(self.file) as hdf5:
            return self._stored(hdf5_dataset(hdf5, self.file, self.dataset, "iuf"), begin, end)


@dataclass(frozen=True, eq=False)
class FunctionField(CellField):
    """The values of a function at the cell centres."""

    function: GivenFunction | None = None
    scalar: bool = False  # whether the function returns a number instead of components

    @property
    def timed(self) -> bool:  # type: ignore[override]
        """Whether the values change with time."""
        return bool(self.function and self.function.timed)

    def _planes(self, begin: int, end: int, t: float) -> Floats:
        _, rows, nx = self._shape
        nx = nx // 2 if self.staggered else nx
        found = np.empty((end - begin, rows, nx, self.count))
        for first, last in self._blocks(rows * nx, begin, end):
            values = np.stack(self._values(first, last, rows, nx, t), axis=-1)
            mine = slice(max(first, begin) - first, min(last, end) - first)
            target = slice(max(first, begin) - begin, min(last, end) - begin)
            found[target] = values.reshape(last - first, rows, nx, self.count)[mine]
        return found

    def _blocks(self, plane: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """(first, last) of blocks of planes, which are the same for any begin and end."""
        step = max(1, BLOCK_CELLS // plane)
        for first in range(begin // step * step, end, step):
            yield first, min(first + step, self._shape[0])

    def _values(self, first: int, last: int, rows: int, nx: int, t: float) -> Sequence[Floats]:
        assert self.function is not None
        plane, row, k = np.meshgrid(
            np.arange(first, last), np.arange(rows), np.arange(nx), indexing="ij"
        )
        x = x_of(self.staggered, plane, row, k)
        nodes = (x, plane) if len(self.size) == 2 else (x, row, plane)
        places = [np.ascontiguousarray(each, np.float64).reshape(-1) + 0.5 for each in nodes]
        if self.scalar:
            return [self.function.scalar(places, t)]
        return self.function.vector(places, t, self.count)


def file_field(spec: str, directory: Path, box: dict[str, Any]) -> ArrayField:
    """The field of "file.npy" or "file.h5:dataset"; ValueError if it is no array of all cells.

    `box`: the fields of CellField.
    """
    file, _, dataset = spec.rpartition(":") if ".h5:" in spec else (spec, "", "")
    path = directory / file
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; paths are relative to the folder "
                         "of the case")  # fmt: skip
    if not dataset:
        field = ArrayField(**box, array=npy_array(path))
        field.require(field.array)
        return field
    require_intact(path)
    found = FileField(**box, file=path, dataset=dataset)
    with opened(path) as hdf5:
        found.require(hdf5_dataset(hdf5, path, dataset, "iuf"))
    return found
