"""Files that threads write while the time steps continue, without messages to other ranks."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any

from mpilbm.parallel import Communicator, together
from mpilbm.parallel.ranks import local_rank
from mpilbm.storage.planes import OwnFile

THREADS = 2, 8  # of a rank, the least and the most
MOST_FILES = 4  # written at the same time
GUESSED_BYTES_PER_SECOND = 2e8  # of a disk, before anything has been written

Work = Callable[[], object]


class Job:
    """This rank's part of a file: stages of work for threads, one after another.

    The first stage writes the pieces that `add` receives until `end`. `publish` is called by rank 0
    in a thread when all ranks have written their parts: it renames the file to its name.
    """

    def __init__(self, file: OwnFile, pool: ThreadPoolExecutor, publish: Work | None = None):
        self.file, self.publish = file, publish or file.publish
        self.published = False  # whether the last stage has been started
        self._pool, self._stopped = pool, False
        self._error: BaseException | None = None
        self._stages: deque[Sequence[Work]] = deque()
        self._left, self._lock = 1, threading.Lock()  # works of a stage; the first ends with `end`
        self._ended = threading.Event()
        self._begun, self._taken = time.monotonic(), 0.0

    def add(self, copy: AbstractContextManager, write: Callable[[Any], None]) -> None:
        """Call `write(values)` in a thread, inside `with copy as values`, which always ends."""
        with self._lock:
            self._left += 1
        self._pool.submit(self._run, partial(self._part, copy, write))

    def _part(self, copy: AbstractContextManager, write: Callable[[Any], None]) -> None:
        with copy as values:
            if not self._stopped:
                write(values)

    def end(self, *stages: Sequence[Work]) -> None:
        """No more pieces follow; when all are written, threads do the work of these stages."""
        self._stages.extend(stages)
        self._done()

    def start_last(self, work: Sequence[Work]) -> None:
        """Start the last stage, after all others are done."""
        self.published, self._left = True, 1
        self._ended.clear()
        self.end(work)

    def _run(self, work: Work) -> None:
        try:
            work()
        except BaseException as error:
            self._stopped = True  # an incomplete file is removed, so write nothing more
            self._error = self._error or error
        self._done()

    def _done(self) -> None:
        """Count a work as done; after the last one of a stage start the next stage."""
        with self._lock:
            self._left -= 1
            if self._left:
                return
            works: Sequence[Work] = ()
            while self._stages and not works and not self._stopped:
                works = self._stages.popleft()
            self._left = len(works)
        if not works:
            self._taken = time.monotonic() - self._begun
            self._ended.set()
        for work in works:
            self._pool.submit(self._run, work)

    def wait(self) -> None:
        """Wait until this rank's part is done, or has failed."""
        self._ended.wait()

    @property
    def state(self) -> str:
        """busy, done or failed."""
        if not self._ended.is_set():
            return "busy"
        return "failed" if self._error else "done"

    @property
    def seconds(self) -> float:
        """Seconds that this rank's part has taken, up to now if it is not done."""
        return self._taken if self._ended.is_set() else time.monotonic() - self._begun

    def check(self) -> None:
        """Raise the error that ended this rank's part, if there is one."""
        if self._ended.is_set() and self._error:
            raise self._error

    def stop(self) -> None:
        """Write nothing more."""
        self._stopped = True


class Background:
    """The files of a run that are being written, at most four.

    ```
    run       | steps | start | steps .................| settle | steps .......| settle | steps
    threads           | pieces of this rank .| to the disk |    | digest, name |
    ```

    The files get their names in the order in which they were begun. An error in a thread is raised
    by the next `settle`, on all ranks; this file and those begun later are removed.
    """

    def __init__(self, comm: Communicator):
        self.comm, self._longest = comm, 0.0
        self.jobs: list[Job] = []

    @cached_property
    def threads(self) -> int:
        """The number of threads of this rank: its share of the cores; collective at first use."""
        least, most = THREADS
        return min(max(least, len(os.sched_getaffinity(0)) // local_rank(self.comm)[1]), most)

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """The threads; collective at first use."""
        return ThreadPoolExecutor(self.threads, "mpilbm-writer")

    def begin(
        self, make: Callable[[], OwnFile], publish: Callable[[OwnFile], None] | None = None
    ) -> Job:
        """A job for the file that `make()` creates, when there is room for one; collective.

        `publish(file)` renames the file on rank 0, in a thread; None: OwnFile.publish.
        """
        self.settle(MOST_FILES - 1)
        pool, file = self.pool, make()
        self.jobs.append(Job(file, pool, publish and partial(publish, file)))
        return self.jobs[-1]

    @property
    def left(self) -> float:
        """Seconds that the files may still take, each as long as the slowest until now."""
        found = 0.0
        for job in (each for each in self.jobs if each.state == "busy"):
            size = sum(place.bytes for place in job.file.places.values())
            found += max(self._longest or size / GUESSED_BYTES_PER_SECOND, job.seconds)
        return found

    def settle(self, most: int = MOST_FILES) -> None:
        """Name the files that all ranks have written; collective.

        Waits while more than `most` are left.
        """
        while self.jobs:
            job = self.jobs[0]
            if len(self.jobs) > most:
                job.wait()
            states = self.comm.allgather(job.state)
            if "failed" not in states and "busy" in states:
                return
            try:
                together(self.comm, job.check)
                if not job.published:
                    job.file.gather()
                    job.start_last([job.publish] if self.comm.rank == 0 else [])
                    continue
            except BaseException:
                self._discard()
                raise
            self.jobs.pop(0)
            self._longest = max(self._longest, job.seconds)

    def finish(self, job: Job | None) -> None:
        """Wait until this file has its name; collective."""
        while job in self.jobs:
            self.settle(len(self.jobs) - 1)

    def close(self) -> None:
        """Remove unfinished files; waits neither for other ranks nor for the disk."""
        for job in self.jobs:
            job.stop()
        if "pool" in vars(self):
            self.pool.shutdown(wait=False, cancel_futures=True)
        self._discard()

    def _discard(self) -> None:
        """Remove all files that have no name yet."""
        for job in self.jobs:
            job.stop()
            job.file.discard()
        self.jobs = []
