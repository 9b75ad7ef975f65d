"""Ranks, slabs of the domain, launchers, GPU-aware MPI, and collective agreement among ranks.

Imports only lower layers. Add a launcher or another way of dividing the domain here.

This module has the calls of a communicator that mpilbm uses, and the actions that succeed or fail
on all ranks together, so that no rank waits for one that has failed.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from mpilbm.core.errors import FileSystemError, MpilbmError, OtherRankError


class Communicator(Protocol):
    """All ranks of a run. The lower-case calls take any Python object that can be pickled."""

    @property
    def rank(self) -> int:
        """Number of this rank, from 0."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    def bcast(self, value: Any, root: int = 0) -> Any:
        """The value of rank `root` on all ranks."""

    def gather(self, value: Any, root: int = 0) -> list | None:
        """The values of all ranks on rank `root`, None on the others."""

    def allgather(self, value: Any) -> list:
        """The values of all ranks on all ranks."""

    def barrier(self) -> None:
        """Wait until all ranks have called it."""

    def Barrier(self) -> None:  # noqa: N802
        """Wait until all ranks have called it."""


class MessagePassing(Communicator, Protocol):
    """A communicator of several ranks, which can send arrays between two of them."""

    def Send(self, data: Any, dest: int) -> None:  # noqa: N802
        """Send an array to rank `dest`."""

    def Recv(self, data: Any, source: int) -> None:  # noqa: N802
        """Receive an array from rank `source`."""

    def alltoall(self, values: list) -> list:
        """Send values[i] to rank i; the values that all ranks sent to this rank."""

    def Split(self, color: int = 0, key: int = 0) -> Any:  # noqa: N802
        """A communicator of the ranks with the same colour."""


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
