"""Ranks that succeed or fail together, so that no rank waits for one that has failed."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from mpilbm.core.errors import FileSystemError, MpilbmError, OtherRankError
from mpilbm.parallel.communicator import Communicator

T = TypeVar("T")

_HINTS = {
    errno.ENOSPC: "free some space, or write to another disk with --output",
    errno.EDQUOT: "free some of your quota, or write to another disk with --output",
    errno.EACCES: "ask for permission to write there, or choose another place with --output",
    errno.EROFS: "choose another place with --output",
    errno.ENAMETOOLONG: "give a shorter name",
}


def together(
    comm: Communicator, action: Callable[..., T], *arguments: Any, waits: bool = False
) -> T:
    """`action(*arguments)` on each rank; an error on one rank is raised on all. Collective.

    If several ranks fail, the error of the lowest rank is raised. An OSError becomes a
    FileSystemError. Any error but these and MpilbmError is a fault of the program: the rank raises
    it, and the ranks without a fault raise the error of the lowest rank, for a fault
    OtherRankError.

    `waits`: the action waits for other ranks, which a fault may therefore leave waiting in it. A
    fault is then raised at once, and `ranks.abort_on_error` ends all ranks.
    """
    result, fault = None, None
    error: MpilbmError | OtherRankError | None = None
    try:
        result = action(*arguments)
    except MpilbmError as found:
        error = found
    except OSError as found:
        error = file_system_error(found)
    except Exception as found:
        if waits:
            raise
        fault = found
        error = OtherRankError(f"rank {comm.rank} failed: {type(found).__name__}: {found}")
    for raised in comm.allgather(error):
        if raised is not None:
            raise raised if fault is None else fault
    return cast(T, result)


def on_root(comm: Communicator, action: Callable[..., T], *arguments: Any) -> T:
    """`action(*arguments)` on rank 0 only; all ranks get its result or its error. Collective."""
    result = together(comm, action, *arguments) if comm.rank == 0 else together(comm, lambda: None)
    return comm.bcast(result)


def file_system_error(error: OSError) -> FileSystemError:
    """The error for the user: the file, what failed and the fix."""
    where = f"{error.filename}: " if error.filename else ""
    hint = _HINTS.get(error.errno or 0, "files written before are complete")
    if error.errno == errno.ENOENT and isinstance(error.filename, str | os.PathLike):
        path = Path(error.filename)
        gone = [each for each in (path, *path.parents) if not os.path.lexists(each)]
        hint = f"{gone[-1] if gone else path} was removed or renamed while in use; run again"
    return FileSystemError(f"{where}{error.strerror or error}; {hint}")
