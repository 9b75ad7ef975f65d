"""The ranks of a run, how they find each other and how they end together."""

import sys
import time
import traceback
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mpilbm.errors import INTERRUPTED, CommandError, MpilbmError
from mpilbm.parallel import gpu_aware, launcher
from mpilbm.system import terminal

# Seconds that a failed rank waits for the others to fail alike before it ends them.
PATIENCE = 1.0
# Seconds for the launcher to pass on what was printed, which it may drop once a rank aborts.
GRACE = 0.5


class Serial:
    """The one rank of a run without MPI, with the calls of a communicator that mpilbm uses."""

    rank = 0
    size = 1

    def Get_rank(self) -> int:  # noqa: N802, D102
        return self.rank

    def Get_size(self) -> int:  # noqa: N802, D102
        return self.size

    def bcast(self, value, root=0):  # noqa: D102
        return value

    def gather(self, value, root=0) -> list:  # noqa: D102
        return [value]

    def allgather(self, value) -> list:  # noqa: D102
        return [value]

    def allreduce(self, value, op=None):  # noqa: D102
        return value

    def barrier(self) -> None:  # noqa: D102
        pass

    def Barrier(self) -> None:  # noqa: N802, D102
        pass

    def Split_type(self, split_type, key=0, info=None) -> "Serial":  # noqa: N802, D102
        return self

    def Free(self) -> None:  # noqa: N802, D102
        pass

    def Abort(self, code: int = 1) -> None:  # noqa: N802, D102
        sys.exit(code)


def world():
    """COMM_WORLD, initialising MPI; Serial where no launcher and no MPI library is.

    With several ranks and a GPU it is first found out whether MPI takes GPU memory, which cannot be
    done later. Raises CommandError if the launcher belongs to another MPI than the library.
    """
    ranks = launcher.ranks()
    MPI = launcher.library()
    if MPI is None and ranks not in (None, 1):
        raise CommandError(
            f"a launcher started {ranks or 'several'} ranks, but mpi4py finds no MPI library; "
            "pip install mpich mpi4py, or on a cluster load its MPI and pip install mpi4py"
        )
    if MPI is None:
        return Serial()
    if launcher.belongs_to_another_mpi(MPI):
        raise _two_mpis(ranks, MPI)
    if ranks not in (None, 1):
        gpu_aware.verdict()
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_FUNNELED)  # threads write files; the main one alone uses MPI
    if ranks not in (None, 0, 1) and MPI.COMM_WORLD.size == 1:
        raise _two_mpis(ranks, MPI)
    return MPI.COMM_WORLD


def _two_mpis(ranks: int, MPI) -> CommandError:
    return CommandError(
        f"the launcher started {ranks} ranks, but each finds itself alone: launcher and library "
        f"({launcher.library_name(MPI)}) belong to two MPIs; use the mpirun of that library "
        f"(perhaps in {Path(sys.executable).parent}), or name the launcher's own library by "
        "MPI4PY_LIBMPI=/path/to/libmpi.so"
    )


def local_rank(comm) -> tuple[int, int]:
    """This rank's number among those on its node, and how many these are."""
    if comm.size == 1:
        return 0, 1
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    place = node.rank, node.size
    node.Free()
    return place


@contextmanager
def abort_on_error(comm=None):
    """`with abort_on_error() as comm:` ends all ranks when one fails; by default those of world().

    If all fail, they end in good order, else after a second by Abort. What all raise alike is
    printed once, else each prints its own with its number: users' errors as messages, all others
    as tracebacks; SystemExit takes the error's place. With one rank errors just pass.
    """
    comm = world() if comm is None else comm
    if comm.size == 1:
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
            known = isinstance(error, MpilbmError)
            terminal.print_error(error if known else text, "" if alike and known else f"{who}: ")
        if marks is None:
            time.sleep(GRACE)
            comm.Abort(code)
        guard.Barrier()
        raise SystemExit(code) from None
    guard.Free()


def _code_and_text(error: BaseException) -> tuple[int, str]:
    """What the process should end with, and what to print before."""
    if isinstance(error, SystemExit):
        code = error.code or 0
        return (code, "") if isinstance(code, int) else (1, str(code))
    if isinstance(error, MpilbmError):
        return error.exit_code, str(error)
    if isinstance(error, KeyboardInterrupt):
        return getattr(error, "exit_code", INTERRUPTED), str(error) or "interrupted"
    return 1, "".join(traceback.format_exception(error)).rstrip()


def _marks_of_failed(guard, text: str) -> list[int] | None:
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
