"""The threads of a rank on a CPU, and the shares of planes and of memory that they use."""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence, Set
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from mpilbm.backends.units import cores
from mpilbm.core.errors import CaseError

Work = Callable[[], object]

# A launch gives each thread at least so many accesses of values, which take about 100 us. A launch
# of two threads takes 32 us longer than one of a single thread: with 32^3 cells of D3Q19, which are
# two such shares, two threads were as fast as one (AMD EPYC, busy with other work, 2026-11-22).
LEAST_ACCESSES = 2**19
# Smaller arrays are zeroed by one thread: their pages are few.
LEAST_BYTES = 2**20
NODES = Path("/sys/devices/system/node")


class Workers:
    """Threads that each run one of several pieces of work; the calling thread is number 0.

    Compiled functions called through ctypes, and NumPy on large arrays, release the interpreter's
    lock. The same piece always runs on the same thread, which thus finds its planes in the memory
    that it was the first to write, next to its core.

    `places`: the cores on which each thread may run, or an empty set for all. The calling thread is
    not bound, because threads that write files would inherit its cores.
    """

    def __init__(self, count: int = 1, places: Sequence[Set[int]] = ()):
        self.count = count
        self._inboxes: list[SimpleQueue] = [SimpleQueue() for _ in range(count - 1)]
        weakref.finalize(self, _stop, self._inboxes)
        for k, inbox in enumerate(self._inboxes, 1):
            task, name = (inbox, places[k] if places else set()), f"mpilbm-worker-{k}"
            thread = threading.Thread(target=_serve, args=task, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the limit of the system, or of the job
                raise CaseError(
                    f"{count} threads were asked for, and the system started {k - 1} only; "
                    "use fewer, or raise the limit (ulimit -u)",
                    "backend.threads",
                ) from None

    def run(self, works: Sequence[Work | None]) -> None:
        """Run works[k] on thread k, and wait for all of them; raises the first of their errors."""
        ended: SimpleQueue = SimpleQueue()  # of this call, in case the previous was interrupted
        started = 0
        for inbox, work in zip(self._inboxes, works[1:], strict=False):
            if work is not None:
                inbox.put((work, ended))
                started += 1
        found = [_attempt(works[0])] if works[0] is not None else []
        found += [ended.get() for _ in range(started)]
        for error in found:
            if error is not None:
                raise error

    def fill(self, array: np.ndarray, value: int) -> None:
        """Set a 1-D array to a value, each thread its share."""
        self.run([partial(part.fill, value) for part in self.parts(array)])

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        """Copy a 1-D array, each thread its share."""
        parts = zip(self.parts(target), self.parts(source), strict=True)
        self.run([partial(np.copyto, *pair) for pair in parts])

    def parts(self, array: np.ndarray) -> list[np.ndarray]:
        """The share of a 1-D array of each thread."""
        bounds = [array.size * k // self.count for k in range(self.count + 1)]
        return [array[a:b] for a, b in pairwise(bounds)]


def start(count: int, ranks: int) -> tuple[Workers, str]:
    """The threads of one of `ranks` ranks of this machine, and a warning if they lack cores."""
    own = cores()
    warning = too_many(count, len(own), ranks, os.cpu_count() or len(own))
    return Workers(count, places(count, own)), warning


def shares(begin: int, end: int, stride: int, count: int) -> list[tuple[int, int] | None]:
    """(begin, end) of `count` contiguous shares of begin, begin + stride, … < end.

    A share without planes is None.
    """
    planes = len(range(begin, end, stride))
    firsts = [planes * k // count for k in range(count + 1)]
    return [
        (begin + stride * first, begin + stride * (after - 1) + 1) if first < after else None
        for first, after in pairwise(firsts)
    ]


def places(count: int, own: Sequence[int], nodes: Path = NODES) -> list[set[int]]:
    """The cores on which each of `count` threads may run, of the `own` cores of the process.

    These are the cores next to one of the memories of the machine (NUMA nodes), so that the planes
    of a thread are there. Empty sets for a single memory, or more threads than cores.
    """
    files = sorted(nodes.glob("node[0-9]*/cpulist"), key=lambda file: int(file.parent.name[4:]))
    found = [set(own) & _listed(file.read_text("utf-8")) for file in files]
    order = [memory for memory in found for _ in memory]
    if sum(map(bool, found)) < 2 or count > len(order):
        return [set() for _ in range(count)]
    return [order[len(order) * k // count] for k in range(count)]


def _listed(text: str) -> set[int]:
    """The numbers of a list of the kernel, such as 0-3,8."""
    parts = (part.split("-") for part in text.strip().split(",") if part)
    return {number for part in parts for number in range(int(part[0]), int(part[-1]) + 1)}


def too_many(threads: int, cores: int, ranks: int, machine: int) -> str:
    """A warning if the threads of a rank exceed its cores; "" if they do not.

    cores: those of the process; ranks: on this machine, which has `machine` cores, and which ranks
    that may run on all cores share.
    """
    own = cores // ranks if cores == machine else cores
    if threads == 1 or not cores or threads <= own:
        return ""
    return (
        f"{threads} threads of a rank run on {max(1, own)} of the {machine} cores of this machine "
        f"and slow each other down; set backend.threads = {max(1, own)}, or give each rank more "
        f"cores (SLURM: --cpus-per-task={threads}; Open MPI: --map-by slot:PE={threads}; "
        f"MPICH: -bind-to core:{threads})"
    )


def _serve(inbox: SimpleQueue, place: Set[int]) -> None:
    """Run the work that arrives until None arrives; keeps no reference to it while it waits."""
    if place:
        with contextlib.suppress(OSError):  # the cores of the process have changed
            os.sched_setaffinity(0, place)
    while (task := inbox.get()) is not None:
        task[1].put(_attempt(task[0]))
        del task


def _attempt(work: Work) -> BaseException | None:
    """Run some work; its error, if it raises one."""
    try:
        work()
    except BaseException as error:
        return error
    return None


def _stop(inboxes: list[SimpleQueue]) -> None:
    for inbox in inboxes:
        inbox.put(None)
