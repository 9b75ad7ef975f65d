"""Files that are written while the steps go on, by threads that talk to no other rank."""

import time
from concurrent.futures import ThreadPoolExecutor, wait

from mpilbm.parallel.agree import together

THREADS = 2
MOST_FILES = 2  # on their way at a time
GUESSED_BYTES_PER_SECOND = 2e8  # of a disk, before anything has been written


class Job:
    """This rank's part of a file: pieces, and then their way to the disk."""

    def __init__(self, file, pool: ThreadPoolExecutor):
        self.file, self._pool = file, pool
        self._parts, self._stopped, self._end = [], False, None
        self._begun, self._seconds = time.monotonic(), None

    def add(self, copy, write) -> None:
        """`write(fields)` with what the context manager `copy` gives; which is left in any case."""
        self._parts.append(self._pool.submit(self._part, copy, write))

    def _part(self, copy, write):
        try:
            with copy as fields:
                if not self._stopped:
                    write(fields)
        except BaseException:
            self._stopped = True  # what is left of the file is of no use
            raise

    def end(self) -> None:
        """No more pieces come."""
        self._end = self._pool.submit(self._flush)

    def _flush(self):
        for part in self._parts:
            part.result()
        self.file.flush()
        self._seconds = self.seconds

    def wait(self) -> None:
        """Until this rank's part is done, or has failed."""
        wait([self._end])

    @property
    def state(self) -> str:
        """busy, done or failed."""
        if not self._end.done():
            return "busy"
        return "failed" if self._end.exception() else "done"

    @property
    def seconds(self) -> float:
        """Seconds that this rank's part has taken, so far if it is not done."""
        return self._seconds or time.monotonic() - self._begun

    def check(self) -> None:
        """Raise what has failed so far."""
        if self._end.done():
            self._end.result()

    def stop(self) -> None:
        """Write nothing more."""
        self._stopped = True


class Background:
    """The files of a run that are on their way, at most two.

    ```
    run       | steps | fields | steps ..........................| settle | steps
    threads           | pieces of this rank .......| to the disk |
    ```

    What fails in a thread is raised by the next `settle`, on all ranks alike.
    """

    def __init__(self, comm):
        self.comm, self.jobs, self._longest = comm, [], 0.0
        self.pool = ThreadPoolExecutor(THREADS, "mpilbm-writer")

    def begin(self, make) -> Job:
        """A job for the file that `make()` makes, as soon as few enough are left; collective."""
        self.settle(MOST_FILES - 1)
        self.jobs.append(Job(make(), self.pool))
        return self.jobs[-1]

    @property
    def left(self) -> float:
        """Seconds that files on their way may still take, each as long as any before."""
        busy = [job for job in self.jobs if job.state == "busy"]
        return sum(max(self._longest or self._guess(job), job.seconds) for job in busy)

    def _guess(self, job) -> float:
        return sum(place.bytes for place in job.file.places.values()) / GUESSED_BYTES_PER_SECOND

    def settle(self, most: int = MOST_FILES) -> None:
        """Give the files that all ranks have written their names; collective.

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
        """Give up what is not finished; waits for no other rank, nor for the disk."""
        for job in self.jobs:
            job.stop()
        self.pool.shutdown(wait=False, cancel_futures=True)
        for job in self.jobs:
            job.file.__exit__(None, None, None)
        self.jobs = []
