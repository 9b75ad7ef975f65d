"""Reads HDF5 files that others may have written: nothing is read before it was checked.

A file can be damaged, declare any size, hold any type, and take its values from other files. All
problems are a ValueError, whose text follows the name of the file. Files of mpilbm end with a
digest, which is verified before HDF5 opens them.
"""

import os
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

from mpilbm.system import file_digest
from mpilbm.system.file_digest import DamagedFileError

# An all but empty dataset can declare any size; deflate makes a byte of at most 1032.
MOST_PER_STORED_BYTE = 1032
KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float"}


class Hdf5InputError(ValueError):
    """A file, or a part of it, that cannot be used."""


class Values:
    """A dataset of numbers; indexing reads from the file. `shape`, `dtype` and `chunks` as h5py."""

    def __init__(self, dataset):
        self._dataset = dataset
        self.shape, self.dtype, self.chunks = dataset.shape, dataset.dtype, dataset.chunks

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, index):
        with _as_hdf5():
            return self._dataset[index]

    def require_stored(self) -> None:
        """Refuse a shape whose values cannot all be in the file, for callers with any shape."""
        declared = int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize
        with _as_hdf5():
            stored = self._dataset.id.get_storage_size()
        if declared > MOST_PER_STORED_BYTE * stored:
            raise Hdf5InputError(
                f"declares {declared} bytes in {self._dataset.name}, but holds {stored}; write "
                "all of its values"
            )


@contextmanager
def opened(path):
    """A file opened by h5py. The digest is verified by `require_intact`, which reads all of it."""
    import h5py

    _require_regular(path)
    with _as_hdf5():
        file = h5py.File(path, "r", locking="best-effort")
    try:
        yield file
    finally:
        with _as_hdf5():
            file.close()


def require_intact(path) -> None:
    """Verify the digest of a file, if it ends with one; once for each state of the file."""
    state = _require_regular(path)
    try:
        _verify(path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
    except DamagedFileError as error:
        raise Hdf5InputError(f"is damaged: {error}; write or copy it again") from None
    except OSError as error:
        raise Hdf5InputError(f"cannot be read: {error.strerror}") from None


@lru_cache(16)
def _verify(path, *state) -> None:
    if file_digest.has_digest(path):
        file_digest.verify(path)


def _require_regular(path) -> os.stat_result:
    try:
        with file_digest.opened(path) as number:
            return os.fstat(number)
    except DamagedFileError:
        raise Hdf5InputError("is not a regular file; name a file") from None
    except OSError as error:
        raise Hdf5InputError(f"cannot be read: {error.strerror}") from None


def values(file, name: str, kinds: str = "biuf") -> Values | None:
    """The dataset of a name, None if there is no such dataset.

    Refuses types other than `kinds` (as numpy's dtype.kind), and values that are in another file.
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
        raise Hdf5InputError(f"has type {dtype} in '{name}', allowed: {allowed}; convert it")
    return checked


def dataset_names(file, most: int = 10) -> list[str]:
    """Names of datasets, one more than `most` if there are that many; links are not followed."""
    found = []

    def visit(name, item):
        if hasattr(item, "shape"):
            found.append(str(name))
        return len(found) > most or None

    with _as_hdf5():
        file.visititems(visit)
    return found


def attribute(file, group: str, name: str, kind: type):
    """An attribute of a group that must be an instance of `kind`."""
    with _as_hdf5():
        place = _find(file, group)
        value = None if place is None else place.attrs.get(name)
    if not isinstance(value, kind):
        found = "missing" if value is None else f"of type {type(value).__name__}"
        raise Hdf5InputError(
            f"is no snapshot of mpilbm: its attribute '{name}' of '{group}' is {found}; take "
            "another file"
        )
    return value


def _find(file, name: str, links: int = 16):
    """What a name leads to within the file by hard and soft links; None if it leads nowhere."""
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


def _refuse_other_file(what: str):
    raise Hdf5InputError(
        f"takes values from another file: {what}; name that file, or copy the values into this one"
    )


@contextmanager
def _as_hdf5():
    """Whatever h5py raises for a damaged file, as Hdf5InputError: it has no classes of its own."""
    try:
        yield
    except Hdf5InputError:
        raise
    except Exception as error:
        raise Hdf5InputError(f"cannot be read as HDF5 ({error}); write or copy it again") from None
