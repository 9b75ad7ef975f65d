"""Files that threads write while the time steps continue, without messages to other ranks."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Any

from mpilbm.parallel.agree import together
from mpilbm.parallel.communicator import Communicator
from mpilbm.storage.planes import OwnFile

THREADS = 2
MOST_FILES = 2  # written at the same time
GUESSED_BYTES_PER_SECOND = 2e8  # of a disk, before anything has been written


class Job:
    """This rank's part of a file: its pieces are written, and then synced to the disk."""

    def __init__(self, file: OwnFile, pool: ThreadPoolExecutor):
        self.file, self._pool, self._stopped = file, pool, False
        self._parts: list[Future] = []
        self._end: Future | None = None  # once no more pieces follow
        self._begun, self._taken = time.monotonic(), 0.0

    def add(self, copy: AbstractContextManager, write: Callable[[Any], None]) -> None:
        """Call `write(fields)` in a thread, inside `with copy as fields`, which always ends."""
        self._parts.append(self._pool.submit(self._part, copy, write))

    def _part(self, copy: AbstractContextManager, write: Callable[[Any], None]) -> None:
        try:
            with copy as fields:
                if not self._stopped:
                    write(fields)
        except BaseException:
            self._stopped = True  # an incomplete file is removed, so write nothing more
            raise

    def end(self) -> None:
        """No more pieces follow."""
        self._end = self._pool.submit(self._flush)

    def _flush(self) -> None:
        for part in self._parts:
            part.result()
        self.file.flush()
        self._taken = time.monotonic() - self._begun

    def wait(self) -> None:
        """Wait until this rank's part is done, or has failed."""
        if self._end is not None:
            wait([self._end])

    @property
    def state(self) -> str:
        """busy, done or failed."""
        if self._end is None or not self._end.done():
            return "busy"
        return "failed" if self._end.exception() else "done"

    @property
    def seconds(self) -> float:
        """Seconds that this rank's part has taken, up to now if it is not done."""
        return self._taken or time.monotonic() - self._begun

    def check(self) -> None:
        """Raise the error that ended this rank's part, if there is one."""
        if self._end is not None and self._end.done():
            self._end.result()

    def stop(self) -> None:
        """Write nothing more."""
        self._stopped = True


class Background:
    """The files of a run that are being written, at most two.

    ```
    run       | steps | fields | steps ..........................| settle | steps
    threads           | pieces of this rank .......| to the disk |
    ```

    An error in a thread is raised by the next `settle`, on all ranks.
    """

    def __init__(self, comm: Communicator):
        self.comm, self._longest = comm, 0.0
        self.jobs: list[Job] = []
        self.pool = ThreadPoolExecutor(THREADS, "mpilbm-writer")

    def begin(self, make: Callable[[], OwnFile]) -> Job:
        """A job for the file that `make()` creates, when at most one other is left; collective."""
        self.settle(MOST_FILES - 1)
        self.jobs.append(Job(make(), self.pool))
        return self.jobs[-1]

    @property
    def left(self) -> float:
        """Seconds that the files may still take, each as long as the slowest until now."""
        busy = [job for job in self.jobs if job.state == "busy"]
        return sum(max(self._longest or self._guess(job), job.seconds) for job in busy)

    def _guess(self, job: Job) -> float:
        return sum(place.bytes for place in job.file.places.values()) / GUESSED_BYTES_PER_SECOND

    def settle(self, most: int = MOST_FILES) -> None:
        """Rename the files that all ranks have written to their names; collective.

        Waits while more than `most` are left.
        """
        while self.jobs:
            job = self.jobs[0]
            if len(self.jobs) > most:
                job.wait()
            states = self.comm.allgather(job.state)
            if "failed" not in states and "busy" in states:
                return
            self.jobs.pop(0)
            self._longest = max(self._longest, job.seconds)
            with job.file:
                job.stop()
                together(self.comm, job.check)
                job.file.commit()

    def close(self) -> None:
        """Discard unfinished files; waits neither for other ranks nor for the disk."""
        for job in self.jobs:
            job.stop()
        self.pool.shutdown(wait=False, cancel_futures=True)
        for job in self.jobs:
            job.file.discard()
        self.jobs = []
