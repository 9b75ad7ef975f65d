"""Ends all ranks of a Python program when one of them ends with an error."""

import sys
from types import TracebackType
from typing import Any

from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.ranks import all_failed


class Guard:
    """An excepthook that prints the error of this rank and aborts those that wait for it.

    If all ranks of each communicator in `copies` fail, they end without an abort.
    """

    def __init__(self) -> None:
        self.copies: list[Any] = []

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Print the error, wait for the other ranks to fail, too, and abort them if they do not."""
        from mpi4py import MPI

        sys.__excepthook__(kind, error, trace)
        if hasattr(sys, "ps1") or MPI.Is_finalized():  # interactive: the program goes on
            return
        sys.stdout.flush()
        sys.stderr.flush()
        for copy in self.copies:
            if not all_failed(copy):
                copy.Abort(1)


def guard(comm: Communicator) -> None:
    """End all ranks of `comm` if one of them ends with an error that nobody catches. Collective.

    Leaves an excepthook of the program in place.
    """
    if comm.size == 1:
        return
    own = sys.excepthook in (sys.__excepthook__, _guard)
    if not all(comm.allgather(own)):
        return
    sys.excepthook = _guard
    from mpi4py import MPI

    alike = (MPI.IDENT, MPI.CONGRUENT)
    real: Any = comm
    if not any(MPI.Comm.Compare(real, copy) in alike for copy in _guard.copies):
        _guard.copies.append(real.Dup())


_guard = Guard()
