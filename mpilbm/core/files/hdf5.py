"""Opens HDF5 files, and reads those from any source; everything is checked before it is read.

Files are also opened on file systems without locks, such as NFS without a lock daemon (ENOLCK). The
folder of a run is protected by its own lock, see storage/lock.py. Files that are read are complete:
they got their names when all of their bytes were on the disk. Where locks work, files are opened
with the defaults of h5py: HDF5 refuses to open a file twice with different ones, such as by a
program that also reads it with h5py.

A file that is read can be damaged, declare any size, contain any type, and refer to values in other
files. All problems raise a ValueError whose text follows the name of the file. Files of mpilbm end
with a digest, which is verified before HDF5 opens them.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from mpilbm.core.errors import MpilbmError, import_problem
from mpilbm.core.files import file_digest
from mpilbm.core.files.file_digest import DamagedFileError

if TYPE_CHECKING:
    import h5py


NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)  # of a file system; EAGAIN: locked


def require() -> None:
    """Import h5py; MpilbmError if this fails, before a run computes what it cannot write."""
    try:
        import h5py  # noqa: F401
    except Exception as error:
        raise MpilbmError(import_problem(error) or f"h5py cannot be imported: {error}") from error


def open_file(path: Path | str | IO, mode: str = "r", **options: Any) -> "h5py.File":
    """An open file; the options are those of h5py.File. All HDF5 files are opened here."""
    import h5py

    try:
        return h5py.File(path, mode, **options)
    except OSError as error:
        if error.errno not in NO_LOCKS or "lock" not in str(error):
            raise
    return h5py.File(path, mode, locking=False, **options)


Hdf5File: TypeAlias = "h5py.File"
Attribute = TypeVar("Attribute")

# A nearly empty dataset can declare any size; deflate compresses at most 1032 bytes to one.
MOST_PER_STORED_BYTE = 1032
KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float"}


class Hdf5InputError(ValueError):
    """A file, or a part of a file, cannot be used."""


class Values:
    """A dataset of numbers; indexing reads from the file.

    `shape`, `dtype` and `chunks` are those of the h5py dataset.
    """

    def __init__(self, dataset: "h5py.Dataset"):
        self._dataset = dataset
        self.name: str = str(dataset.name).rpartition("/")[2]
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype = dataset.dtype
        self.chunks: tuple[int, ...] | None = dataset.chunks

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray:
        with _as_hdf5():
            return self._dataset[index]

    def attribute(self, name: str) -> float | None:
        """An attribute that is one positive number; None without it."""
        with _as_hdf5():
            value = self._dataset.attrs.get(name)
        if value is None:
            return None
        if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
            raise Hdf5InputError(
                f"has no positive number in the attribute '{name}' of '{self._dataset.name}'; "
                "write the file again"
            )
        return float(value)

    def text(self, name: str) -> str:
        """An attribute that is a text; "" without it."""
        with _as_hdf5():
            value = self._dataset.attrs.get(name)
        return value if isinstance(value, str) else ""

    def require_stored(self) -> None:
        """Refuse a shape with more values than the file can contain."""
        declared = int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize
        with _as_hdf5():
            stored = self._dataset.id.get_storage_size()
        if declared > MOST_PER_STORED_BYTE * stored:
            raise Hdf5InputError(
                f"declares {declared} bytes in {self._dataset.name}, but contains {stored}; write "
                "all of its values"
            )


@contextmanager
def opened(path: str | Path) -> Iterator[Hdf5File]:
    """A file opened by h5py, for reading. Only `require_intact` verifies its digest."""
    _require_regular(path)
    with _as_hdf5():
        file = open_file(path)
    try:
        yield file
    finally:
        with _as_hdf5():
            file.close()


def require_intact(path: str | Path) -> None:
    """Verify the digest of a file, if it ends with one; once for each state of the file.

    Reads the whole file.
    """
    state = _require_regular(path)
    try:
        _verify(path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
    except DamagedFileError as error:
        raise Hdf5InputError(f"is damaged: {error}; write or copy it again") from None
    except OSError as error:
        raise Hdf5InputError(f"cannot be read: {error.strerror}") from None


@lru_cache(16)
def _verify(path: str | Path, *state: int) -> None:
    if file_digest.has_digest(path):
        file_digest.verify(path)


def _require_regular(path: str | Path) -> os.stat_result:
    try:
        with file_digest.opened(path) as number:
            return os.fstat(number)
    except DamagedFileError:
        raise Hdf5InputError("is not a regular file; name a file") from None
    except OSError as error:
        raise Hdf5InputError(f"cannot be read: {error.strerror}") from None


def values(file: Hdf5File, name: str, kinds: str = "biuf") -> Values | None:
    """The dataset of this name; None if there is none.

    Refuses types whose dtype.kind is not in `kinds`, and values that are in another file.
    """
    import h5py

    with _as_hdf5():
        found = _find(file, name)
        if not isinstance(found, h5py.Dataset):
            return None
        layout = "virtual" if found.is_virtual else "external" if found.external else ""
    if layout:
        _refuse_other_file(f"'{name}' is a dataset with {layout} storage")
    with _as_hdf5():
        dtype, checked = found.dtype, Values(found)
    if checked.shape is None:
        raise Hdf5InputError(f"has no values in '{name}'; write all of them")
    if dtype.kind not in kinds:
        allowed = ", ".join(KINDS[kind] for kind in kinds)
        raise Hdf5InputError(f"has type {dtype} in '{name}'; allowed: {allowed}; convert it")
    return checked


def dataset_names(file: Hdf5File, most: int = 10) -> list[str]:
    """Names of datasets, at most `most` + 1; links are not followed."""
    found: list[str] = []

    def visit(name: str, item: object) -> bool | None:
        if hasattr(item, "shape"):
            found.append(str(name))
        return len(found) > most or None

    with _as_hdf5():
        file.visititems(visit)
    return found


def group_datasets(file: Hdf5File, group: str) -> list[str]:
    """The names of the datasets directly in a group; [] without this group."""
    import h5py

    with _as_hdf5():
        found = _find(file, group)
        if not isinstance(found, h5py.Group):
            return []
        return [str(name) for name in found if isinstance(_find(found, name), h5py.Dataset)]


def attribute(file: Hdf5File, group: str, name: str, kind: type[Attribute]) -> Attribute:
    """An attribute of a group, which must be an instance of `kind`."""
    with _as_hdf5():
        place = _find(file, group)
        value = None if place is None else place.attrs.get(name)
    if not isinstance(value, kind):
        found = "missing" if value is None else f"of type {type(value).__name__}"
        raise Hdf5InputError(
            f"is not a snapshot of mpilbm: its attribute '{name}' of '{group}' is {found}; use "
            "another file"
        )
    return value


def _find(file: "h5py.Group", name: str, links: int = 16) -> Any:
    """The item of a name within the file, by hard and soft links; None if there is none."""
    import h5py

    item = file
    for part in name.split("/"):
        if part in ("", "."):
            continue
        link = item.get(part, getlink=True) if isinstance(item, h5py.Group) else None
        if link is None:
            return None
        if isinstance(link, h5py.ExternalLink):
            _refuse_other_file(f"'{name}' is a link to '{link.path}' in {link.filename}")
        if isinstance(link, h5py.SoftLink):
            start = file if link.path.startswith("/") else item
            item = _find(start, link.path, links - 1) if links else None
        else:
            item = item[part]
    return item


def _refuse_other_file(what: str) -> NoReturn:
    raise Hdf5InputError(
        f"refers to values in another file: {what}; name that file, or copy the values into "
        "this one"
    )


@contextmanager
def _as_hdf5() -> Iterator[None]:
    """Turns all errors of h5py into Hdf5InputError; h5py has no error class for damaged files."""
    try:
        yield
    except Hdf5InputError:
        raise
    except Exception as error:
        raise Hdf5InputError(f"cannot be read as HDF5 ({error}); write or copy it again") from None
