"""rho and u at t = 0 from a file: a snapshot, or arrays."""

import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os.path import exists, isfile  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.case.quantities import in_lattice_units
from mpilbm.core.files.hdf5 import (
    Hdf5File,
    Values,
    attribute,
    dataset_names,
    opened,
    require_intact,
    values,
)
from mpilbm.core.files.input_arrays import RELATIVE, hdf5_dataset, npy_array
from mpilbm.core.units import LATTICE_UNIT

Array = np.ndarray | Values
LOCAL_HEADER = 30  # bytes before the name of a member of a zip file


def names_arrays(file: str | Path) -> bool:
    """Whether this is the name of arrays; all other files are snapshots."""
    return str(file).endswith((".npy", ".npz")) or ".h5:" in str(file)


def file_of(name: str | Path) -> Path:
    """The file of a name such as start.h5:dataset."""
    text = str(name)
    return Path(text.rpartition(":")[0] if ".h5:" in text else text)


class OnePlaneOfZ:
    """An array (ny, nx, …) as (1, ny, nx, …), the shape of fields in 2D snapshots."""

    def __init__(self, values: Array):
        self._values = values
        self.shape = (1, *values.shape)

    def __getitem__(self, index: tuple[Any, slice]) -> np.ndarray:
        """Rows of the array: index[1], because index[0] is the only plane of z."""
        return np.asarray(self._values[index[1]])[None]


@contextmanager
def array_fields(path: Path, dimensions: int) -> Iterator[dict[str, Any]]:
    """{"rho": (nz, ny, nx), "u": (nz, ny, nx, D)}, both or one of them; in 2D with nz = 1.

    A .npz file names its arrays; the array of any other file is u if it has an axis of components,
    rho otherwise. Raises ValueError, whose text follows the name of the file.
    """
    file = file_of(path)
    if not isfile(file):
        raise ValueError(f"is missing: there is no file {file}; {RELATIVE}")
    if path.name.endswith(".npz"):
        yield _checked(_npz_arrays(file), dimensions)
    elif path.name.endswith(".npy"):
        array = npy_array(file)
        yield _checked({_name_of(array.shape, dimensions): array}, dimensions)
    else:
        require_intact(file)
        with opened(file) as hdf5:
            found = hdf5_dataset(hdf5, file, str(path).rpartition(":")[2], "iuf")
            found.require_stored()
            yield _checked({_name_of(found.shape, dimensions): found}, dimensions)


def _name_of(shape: tuple[int, ...], dimensions: int) -> str:
    return "u" if len(shape) > dimensions else "rho"


def _checked(arrays: Mapping[str, Array], dimensions: int) -> dict[str, Any]:
    """The arrays with three axes of cells; ValueError for other shapes and types."""
    axes = "nz, ny, nx" if dimensions == 3 else "ny, nx"
    for name, array in arrays.items():
        wanted = dimensions + (name == "u")
        components = array.shape[-1] if name == "u" and array.ndim else dimensions
        if array.ndim != wanted or components != dimensions or not all(array.shape):
            raise ValueError(
                f"has shape {array.shape} in '{name}'; allowed: ({axes}) for rho and "
                f"({axes}, {dimensions}) for u; write it with the slowest axis first"
            )
        if array.dtype.kind not in "iuf":
            raise ValueError(f"has type {array.dtype} in '{name}'; save it as float64")
    if dimensions == 3:
        return dict(arrays)
    return {name: OnePlaneOfZ(array) for name, array in arrays.items()}


def _npz_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as file:
            members = {info.filename: info for info in file.infolist()}
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise ValueError(f"cannot be read as .npz ({error}); write it again") from None
    found = {name: members[f"{name}.npy"] for name in ("rho", "u") if f"{name}.npy" in members}
    if not found:
        names = ", ".join(sorted(name.removesuffix(".npy") for name in members)[:10]) or "none"
        raise ValueError(f"has no array 'rho' or 'u'; it has {names}; name the arrays rho and u")
    return {name: _mapped(path, name, info) for name, info in found.items()}


def _mapped(path: Path, name: str, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(
            f"is compressed, so that no rank can read its own part of '{name}'; write it with "
            "numpy.savez instead of savez_compressed"
        )
    try:
        with path.open("rb") as file:
            file.seek(info.header_offset)
            header = file.read(LOCAL_HEADER)
            lengths = (int.from_bytes(header[k : k + 2], "little") for k in (26, 28))
            file.seek(info.header_offset + LOCAL_HEADER + sum(lengths))  # name, extra field
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
            if dtype.hasobject:
                raise ValueError("an array contains Python objects")
            order: Any = "F" if fortran else "C"
            return np.memmap(path, dtype, "r", file.tell(), shape, order)
    except (ValueError, OSError, EOFError, OverflowError) as error:
        raise ValueError(f"cannot be read: '{name}' ({error}); write it again") from None


Shape = tuple[int, int, int]  # (planes, rows, nx)


def resampled(
    field: Any, shape: Shape, periodic: tuple[bool, ...], begin: int, end: int
) -> np.ndarray:
    """The planes begin … end - 1 of a field (nz, ny, nx, …), float64 (n, rows, nx, …).

    If the size of the field is not `shape` = (planes, rows, nx), the values are resampled by linear
    interpolation between cell centres along each axis; both boxes are taken to have the same side
    lengths. Periodic directions wrap; in others the values are constant beyond the outermost
    centres. The values of a plane do not depend on begin and end, so that results do not depend on
    the number of ranks.
    """
    return np.stack([_resampled(field, shape, periodic, plane) for plane in range(begin, end)])


class SnapshotField:
    """A field of a snapshot in lattice units, which is read where it is indexed."""

    def __init__(self, stored: Values):
        self._stored, self.shape = stored, stored.shape

    def __getitem__(self, index: Any) -> np.ndarray:
        unit = self._stored.attribute(LATTICE_UNIT) or 1.0  # with [units] the values are in SI
        return self._stored[index].astype(np.float64) / unit


@contextmanager
def snapshot_fields(path: Path, dimensions: int) -> Iterator[dict[str, SnapshotField]]:
    """The datasets rho and u of a snapshot by name, checked but not read; ValueError otherwise."""
    if not exists(path):
        raise ValueError(f"is missing: there is no such file; {RELATIVE}")
    require_intact(path)
    with opened(path) as file:
        found = {name: values(file, f"VTKHDF/CellData/{name}", "f") for name in ("rho", "u")}
        cells = {name: each for name, each in found.items() if each is not None}
        missing = [name for name in found if name not in cells]
        if missing:
            raise ValueError(
                f"is not a snapshot with rho and u: it has no {', '.join(missing)}; it has "
                f"{', '.join(dataset_names(file)) or 'no dataset'}; write a snapshot with "
                'fields = ["rho", "u"]'
            )
        size = snapshot_case(file)["domain"]["size"]
        if len(size) != dimensions:
            raise ValueError(f"has {len(size)} dimensions, the case {dimensions}; use another file")
        require_cells(cells["rho"], "rho", size)
        require_cells(cells["u"], "u", size, (3,))
        yield {name: SnapshotField(each) for name, each in cells.items()}


def snapshot_case(file: Hdf5File) -> dict:
    """The tables of the case in an open snapshot, in lattice units, with a valid domain.size."""
    text = attribute(file, "mpilbm", "case", str)
    try:
        case, *_ = in_lattice_units(tomllib.loads(text))
        size = case["domain"]["size"]
        if len(size) in (2, 3) and all(type(n) is int and n > 0 for n in size):
            return case
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        pass
    raise ValueError("is not a snapshot of mpilbm: its case has no domain.size; use another file")


def require_cells(
    field: Values, name: str, size: Sequence[int], axes: tuple[int, ...] = ()
) -> None:
    """ValueError unless a field of a snapshot has values for all cells of a box."""
    wanted = (*(1,) * (3 - len(size)), *reversed(size), *axes)
    if field.shape != wanted:
        raise ValueError(
            f"is not a snapshot of mpilbm: '{name}' has shape {field.shape}, its box requires "
            f"{wanted}; use another file"
        )
    field.require_stored()


def _resampled(field: Any, shape: Shape, periodic: tuple[bool, ...], plane: int) -> np.ndarray:
    """A plane of a field, (rows, nx, …), by linear interpolation."""
    flat = len(periodic) == 2
    old = field.shape[:3] if not flat else (field.shape[1], 1, field.shape[2])
    wraps = (periodic[-1], periodic[1] if not flat else True, periodic[0])
    (low, high, share), *others = (
        _between(np.arange(new), new, count, wrap)
        for new, count, wrap in zip(shape, old, wraps, strict=True)
    )
    below, above = (_plane(field, flat, int(k[plane])) for k in (low, high))
    values = _mixed(below, above, share[plane])
    for axis, (low, high, share) in enumerate(others):
        weight = share.reshape([-1 if k == axis else 1 for k in range(values.ndim)])
        values = _mixed(np.take(values, low, axis), np.take(values, high, axis), weight)
    return values


def _plane(field: Any, flat: bool, plane: int) -> np.ndarray:
    here = (slice(None), slice(plane, plane + 1)) if flat else plane
    values = np.asarray(field[here], np.float64)
    return values[0] if flat else values


def _between(
    k: np.ndarray, new: int, old: int, wraps: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The old cells on either side of the new centres k, and the weight of the upper one."""
    place = (k + 0.5) * (old / new) - 0.5
    low = np.floor(place).astype(int)
    share = place - low
    if wraps:
        return low % old, (low + 1) % old, share
    return np.clip(low, 0, old - 1), np.clip(low + 1, 0, old - 1), share


def _mixed(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    return a + share * (b - a)


def check_fields(path: Path, dimensions: int) -> None:
    """ValueError unless a file holds fields of a box with so many dimensions."""
    with (array_fields if names_arrays(path) else snapshot_fields)(path, dimensions):
        pass


def load_fields(
    path: Path, shape: Shape, periodic: tuple[bool, ...], begin: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """rho (n, rows, nx) and u (n, rows, nx, D) of the planes begin … end - 1, see `resampled`.

    Arrays that the file does not have are 1 (rho) or 0 (u). Velocities are in cells per step.
    """
    D = len(periodic)
    with (array_fields if names_arrays(path) else snapshot_fields)(path, D) as fields:
        found = {
            name: resampled(field, shape, periodic, begin, end) for name, field in fields.items()
        }
    size = (end - begin, *shape[1:])
    rho = found["rho"] if "rho" in found else np.ones(size)
    return rho, found["u"][..., :D] if "u" in found else np.zeros((*size, D))
