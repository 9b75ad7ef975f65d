"""Arrays of rho and u for all cells: .npy, .npz or a dataset of an .h5 file; mapped, not read."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os.path import isfile
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.core.files.hdf5 import Values, opened, require_intact
from mpilbm.core.files.input_arrays import RELATIVE, hdf5_dataset, npy_array

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
    """The arrays rho and u of a .npz file, mapped into memory."""
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
    """A member of a zip file, mapped into memory."""
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
