"""Numbers of all cells of the box: arrays, files and functions in forces and initial fields."""

from dataclasses import dataclass
from functools import partial
from os.path import isfile  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.initial_fields import InitialFields, in_blocks
from mpilbm.case.model import Case, Fluid
from mpilbm.core.errors import CaseError
from mpilbm.core.files.hdf5 import opened, require_intact
from mpilbm.core.files.input_arrays import hdf5_dataset, npy_array
from mpilbm.core.formulas.given_functions import GivenFunction, is_reference, unknown
from mpilbm.core.formulas.values import FieldValue, is_file
from mpilbm.physics.lattices import Lattice

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellField:
    """`count` numbers for each cell of a box of `size` cells (nx, ny[, nz]).

    `lattice`: whose stored cells `planes` returns. `where` and `path` are the key path
    and the case file, for messages.
    """

    size: tuple[int, ...]
    lattice: Lattice
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
            x, plane = self.lattice.x(begin + plane, row, k), begin + plane
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
        return self.lattice.stored(numbers.reshape(end - begin, rows, nx, self.count), begin)

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
        planes, rows, nx = self._shape
        stored = planes, rows, nx // self.lattice.volume
        found = np.empty((end - begin, *stored[1:], self.count))
        for here, values in in_blocks(stored, begin, end, partial(self._values, stored, t)):
            found[here] = values
        return found

    def _values(self, shape: tuple[int, int, int], t: float, first: int, last: int) -> Floats:
        assert self.function is not None
        plane, row, k = np.mgrid[first:last, : shape[1], : shape[2]]
        x = self.lattice.x(plane, row, k)
        nodes = (x, plane) if len(self.size) == 2 else (x, row, plane)
        places = [np.ascontiguousarray(each, np.float64).reshape(-1) + 0.5 for each in nodes]
        if self.scalar:
            values = [self.function.scalar(places, t)]
        else:
            values = self.function.vector(places, t, self.count)
        return np.stack(values, axis=-1).reshape(last - first, *shape[1:], self.count)


def file_field(spec: str, directory: Path, box: dict[str, Any]) -> ArrayField:
    """The field of "file.npy" or "file.h5:dataset"; ValueError if it is no array of all cells.

    `box`: the fields of CellField.
    """
    file, _, dataset = spec.rpartition(":") if ".h5:" in spec else (spec, "", "")
    path = directory / file
    if not isfile(path):
        raise ValueError(
            f"is missing: there is no file {path}; paths are relative to the folder of the case"
        )
    if not dataset:
        field = ArrayField(**box, array=npy_array(path))
        field.require(field.array)
        return field
    require_intact(path)
    found = FileField(**box, file=path, dataset=dataset)
    with opened(path) as hdf5:
        found.require(hdf5_dataset(hdf5, path, dataset, "iuf"))
    return found


def with_fields(case: Case, fluid: Fluid) -> Fluid:
    """The fluid with fields in place of the names of files, arrays and functions.

    Raises CaseError for an array or file that has no value for each cell.
    """
    fields = _Fields(case)
    force, initial = fluid.force, fluid.initial
    if force is not None:
        value = fields.force(force.value, f"{case.key(fluid, 'force')}.value")
        force = force.model_copy(update={"value": value})
    u = tuple(fields.component(each, f"{initial.where}.u") for each in initial.u)
    rho = fields.component(initial.value, f"{initial.where}.rho")
    initial = initial.model_copy(update={"u": u, "value": rho})
    return fluid.model_copy(update={"force": force, "initial": initial})


def with_initial_value(case: Case, initial: InitialFields) -> InitialFields:
    """The initial values of a scalar, from a file, an array or a function if they name one."""
    fields, where, value = _Fields(case), f"{initial.where}.value", initial.value
    if isinstance(value, str) and is_file(value):
        found = fields.file(value, where)
    else:
        found = fields.component(value, where)
    return initial.model_copy(update={"value": found})


class _Fields:
    """Finds fields; the components of one object share a field."""

    def __init__(self, case: Case):
        self.case = case
        self.found: dict[int, CellField] = {}

    def force(self, value: Any, where: str) -> tuple:
        """The components of a force: a list, or the name of a file."""
        D = self.case.dimensions
        if not isinstance(value, str):
            return tuple(self.component(each, where) for each in value)
        try:
            if not is_file(value) or value.endswith(".csv"):
                raise ValueError(
                    "is neither a list nor an array; allowed: a list of numbers and "
                    "formulas, or a file.npy, file.h5:dataset"
                )
            field = file_field(value, self.case.directory, self._box(D, where))
        except ValueError as error:
            raise CaseError(f"'{value}' {error}", where, self.case.path) from None
        return tuple(FieldValue(field, k) for k in range(D))

    def file(self, name: str, where: str) -> FieldValue:
        """The number of each cell in a file."""
        try:
            if name.endswith(".csv"):
                raise ValueError("is a time series; allowed: a file.npy, file.h5:dataset")
            return FieldValue(file_field(name, self.case.directory, self._box(1, where)), 0)
        except ValueError as error:
            raise CaseError(f"'{name}' {error}", where, self.case.path) from None

    def component(self, value: Any, where: str) -> Any:
        """A number or formula as it is, or the field of a reference."""
        if not is_reference(value):
            return value
        given = self.case.given.get(value)
        if given is None:
            raise CaseError(f"'{value}' {unknown(value)}", where, self.case.path)
        if id(given.object) not in self.found:
            self.found[id(given.object)] = self._field(given, where)
        return FieldValue(self.found[id(given.object)], given.component or 0)

    def _field(self, given: Any, where: str) -> CellField:
        box = self._box(given.count, where)
        if isinstance(given.object, GivenFunction):
            scalar = given.component is None
            return FunctionField(**box, function=given.object, scalar=scalar)
        field = ArrayField(**box, array=given.object)
        try:
            field.require(given.object)
        except ValueError as error:
            raise CaseError(f"the array {error}", where, self.case.path) from None
        return field

    def _box(self, count: int, where: str) -> dict[str, Any]:
        case = self.case
        box = {"size": case.domain.size, "lattice": case.lattice}
        return box | {"count": count, "where": where, "path": case.path}
