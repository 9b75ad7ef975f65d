"""Ranks that succeed or fail together: no rank waits for one that has given up."""

import errno
import os
from pathlib import Path

from mpilbm.errors import FileSystemError, MpilbmError

_HINTS = {
    errno.ENOSPC: "free some space, or write to another disk with --output",
    errno.EDQUOT: "free some of your quota, or write to another disk with --output",
    errno.EACCES: "ask for permission to write there, or choose another place with --output",
    errno.EROFS: "choose another place with --output",
}


def together(comm, action, *arguments):
    """`action(*arguments)` on each rank; what fails on one is raised on all, the lowest rank's.

    Errors of the operating system become FileSystemError. Others than these and MpilbmError are
    faults of the program and pass as they are, for the launcher to end all ranks.
    """
    result, error = None, None
    try:
        result = action(*arguments)
    except MpilbmError as found:
        error = found
    except OSError as found:
        error = file_system_error(found)
    for found in comm.allgather(error):
        if found is not None:
            raise found
    return result


def on_root(comm, action, *arguments):
    """`action(*arguments)` on rank 0 alone; all get its result or its error."""
    result = together(comm, action if comm.rank == 0 else _nothing, *arguments)
    return comm.bcast(result)


def file_system_error(error: OSError) -> FileSystemError:
    """The error for the user: the file, what failed and the fix."""
    where = f"{error.filename}: " if error.filename else ""
    hint = _HINTS.get(error.errno, "files written before are whole")
    if error.errno == errno.ENOENT and isinstance(error.filename, str | os.PathLike):
        path = Path(error.filename)
        gone = [each for each in (path, *path.parents) if not os.path.lexists(each)]
        hint = f"{gone[-1] if gone else path} was removed or renamed while in use; run again"
    return FileSystemError(f"{where}{error.strerror or error}; {hint}")


def _nothing(*arguments):
    return None
