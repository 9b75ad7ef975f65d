"""The ranks of a run: the communicator, the rank on a node, and the end of all ranks."""

import sys
import time
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.core.errors import INTERRUPTED, CommandError, MpilbmError, OtherRankError
from mpilbm.core.machine import terminal
from mpilbm.parallel import Communicator, gpu_aware, launcher

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

# Seconds that a failed rank waits for the others to fail, too, before it aborts them.
PATIENCE = 1.0
# Seconds before an abort, in which the launcher forwards output that it would otherwise drop.
GRACE = 0.5


class Serial:
    """The one rank of a run without MPI, with the calls of mpi4py that mpilbm and plug-ins use."""

    rank = 0
    size = 1

    def Get_rank(self) -> int:  # noqa: N802, D102
        return self.rank

    def Get_size(self) -> int:  # noqa: N802, D102
        return self.size

    def bcast(self, value: Any, root: int = 0) -> Any:  # noqa: D102
        return value

    def gather(self, value: Any, root: int = 0) -> list[Any]:  # noqa: D102
        return [value]

    def allgather(self, value: Any) -> list[Any]:  # noqa: D102
        return [value]

    def allreduce(self, value: Any, op: Any = None) -> Any:  # noqa: D102
        return value

    def barrier(self) -> None:  # noqa: D102
        pass

    def Barrier(self) -> None:  # noqa: N802, D102
        pass


def world() -> "Comm | Serial":
    """The ranks in the order of their nodes; Serial without a launcher and an MPI library.

    Initialises MPI. Collective: a launcher may have placed ranks on the nodes in turn, see by_node.
    With several ranks and a GPU it first tests whether MPI accepts GPU memory: the test must run
    before MPI starts. Raises CommandError if launcher and library belong to different MPIs, or
    without the shared memory that the library requires.
    """
    ranks, several = launcher.ranks(), launcher.several_ranks()
    MPI = launcher.library()
    if MPI is None and several:
        raise CommandError(
            f"a launcher started {ranks or 'several'} ranks, but mpi4py finds no MPI library; "
            "pip install mpich mpi4py, or on a cluster load its MPI and pip install mpi4py"
        )
    if MPI is None:
        return Serial()
    if launcher.belongs_to_another_mpi(MPI):
        raise _two_mpis(ranks, MPI)
    if launcher.needs_shared_memory(MPI) and (problem := launcher.shared_memory_problem()):
        if not several:
            return Serial()
        if launcher.local_rank() > 0:  # one rank of the node says it
            time.sleep(GRACE)
            raise SystemExit(CommandError.exit_code)
        raise CommandError(
            f"{launcher.library_name(MPI)} requires shared memory for its ranks, but {problem}; "
            f"{launcher.SHARED_MEMORY_FIX}; or use one rank"
        )
    if several:
        gpu_aware.verdict()
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_FUNNELED)  # threads write files; the main one alone uses MPI
    if ranks is not None and ranks > 1 and MPI.COMM_WORLD.size == 1:
        raise _two_mpis(ranks, MPI)
    return by_node(MPI.COMM_WORLD)


def by_node(comm: "Comm") -> "Comm":
    """The same ranks, numbered so that those of a node follow each other. Collective.

    Neighbouring slabs are then on one node, except at the first and the last rank of a node. Rank 0
    stays rank 0, and the ranks of a node keep their order. Returns `comm` itself if its ranks are
    in this order.
    """
    if comm.size == 1:
        return comm
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    ordered = comm.Split(0, node.bcast(comm.rank))  # equal keys keep the order in `comm`
    node.Free()
    if comm.allreduce(abs(ordered.rank - comm.rank)):
        return ordered
    ordered.Free()
    return comm


def _two_mpis(ranks: int | None, MPI: Any) -> CommandError:
    return CommandError(
        f"the launcher started {ranks or 'several'} ranks, but each finds itself alone: launcher "
        f"and library ({launcher.library_name(MPI)}) belong to two MPIs; use the mpirun of that "
        f"library (perhaps in {Path(sys.executable).parent}), or name the launcher's own library "
        "by MPI4PY_LIBMPI=/path/to/libmpi.so"
    )


def local_rank(comm: Any) -> tuple[int, int]:
    """The number of this rank among the ranks of its node, and how many these are."""
    if comm.size == 1:
        return 0, 1
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    place = node.rank, node.size
    node.Free()
    return place


@contextmanager
def abort_on_error(comm: "Comm | Serial | None" = None) -> Iterator[Any]:
    """`with abort_on_error() as comm:` ends all ranks when one fails; by default those of world().

    If all ranks fail within PATIENCE, they end without an abort; else a failed rank aborts them. An
    error that all ranks raise is printed once; else each failed rank prints its own error with its
    number: an MpilbmError as a message, any other one as a traceback. SystemExit replaces the error
    then. With a single rank errors propagate.
    """
    comm = world() if comm is None else comm
    if isinstance(comm, Serial) or comm.size == 1:
        yield comm
        return
    guard = comm.Dup()
    try:
        yield comm
    except BaseException as error:
        code, text = _code_and_text(error)
        if code == 0:
            raise
        marks = _marks_of_failed(guard, text)
        alike = marks is not None and len(set(marks)) == 1
        if text and not (alike and comm.rank > 0):
            all_of = alike and comm.size > 1
            who = f"all {comm.size} ranks" if all_of else f"rank {comm.rank} of {comm.size}"
            message = error if isinstance(error, MpilbmError) else text
            terminal.print_error(message, "" if alike and message is error else f"{who}: ")
        if marks is None:
            time.sleep(GRACE)
            comm.Abort(code)
        guard.Barrier()
        raise SystemExit(code) from None
    guard.Free()


def _code_and_text(error: BaseException) -> tuple[int, str]:
    """The exit code of the process, and the text to print before it ends."""
    if isinstance(error, SystemExit):
        code = error.code or 0
        return (code, "") if isinstance(code, int) else (1, str(code))
    if isinstance(error, MpilbmError):
        return error.exit_code, str(error)
    if isinstance(error, OtherRankError):  # the other rank prints its traceback
        return 1, ""
    if isinstance(error, KeyboardInterrupt):
        return getattr(error, "exit_code", INTERRUPTED), str(error) or "interrupted"
    return 1, "".join(traceback.format_exception(error)).rstrip()


def _marks_of_failed(guard: "Comm", text: str) -> list[int] | None:
    """Checksums of the texts of all ranks, or None if not all have failed within PATIENCE."""
    mine = np.array([zlib.crc32(text.encode())], np.uint32)
    marks = np.empty(guard.size, np.uint32)
    request = guard.Iallgather(mine, marks)
    end = time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > end:
            return None
        time.sleep(0.01)
    return marks.tolist()


def guard(comm: Communicator) -> None:
    """End all ranks of `comm` if one of them ends with an error that nobody catches. Collective.

    Leaves an excepthook of the program in place. If all ranks of each communicator that is guarded
    fail, they end without an abort.
    """
    if comm.size == 1:
        return
    own = sys.excepthook in (sys.__excepthook__, _print_and_abort)
    if not all(comm.allgather(own)):
        return
    sys.excepthook = _print_and_abort
    from mpi4py import MPI

    alike = (MPI.IDENT, MPI.CONGRUENT)
    real: Any = comm
    if not any(MPI.Comm.Compare(real, copy) in alike for copy in _guarded):
        _guarded.append(real.Dup())


def _print_and_abort(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """An excepthook: waits for the other ranks to fail, too, and aborts them if they do not."""
    from mpi4py import MPI

    sys.__excepthook__(kind, error, trace)
    if hasattr(sys, "ps1") or MPI.Is_finalized():  # interactive: the program goes on
        return
    sys.stdout.flush()
    sys.stderr.flush()
    for copy in _guarded:
        if _marks_of_failed(copy, "") is None:
            copy.Abort(1)


_guarded: list[Any] = []
