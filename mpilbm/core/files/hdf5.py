"""Opens HDF5 files, also on file systems without locks, such as NFS without a lock daemon (ENOLCK).

The folder of a run is protected by its own lock, see storage/lock.py. Files that are read are
complete: they got their names when all of their bytes were on the disk. Where locks work, files are
opened with the defaults of h5py: HDF5 refuses to open a file twice with different ones, such as by
a program that also reads it with h5py.
"""

import errno
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mpilbm.core.errors import MpilbmError
from mpilbm.core.machine import imports

if TYPE_CHECKING:
    import h5py


NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)  # of a file system; EAGAIN: locked


def require() -> None:
    """Import h5py; MpilbmError if this fails, before a run computes what it cannot write."""
    try:
        import h5py  # noqa: F401
    except Exception as error:
        raise MpilbmError(imports.problem(error) or f"h5py cannot be imported: {error}") from error


def open_file(path: Path | str | IO, mode: str = "r", **options: Any) -> "h5py.File":
    """An open file; the options are those of h5py.File. All HDF5 files are opened here."""
    import h5py

    try:
        return h5py.File(path, mode, **options)
    except OSError as error:
        if error.errno not in NO_LOCKS or "lock" not in str(error):
            raise
    return h5py.File(path, mode, locking=False, **options)
