"""Rows of outputs whose numbers the device computes behind the steps."""

from collections import deque
from collections.abc import Callable
from time import monotonic

from mpilbm.parallel.communicator import Communicator

MOST_SAMPLES = 32  # that are not complete yet
LONGEST_DELAY = 1.0  # seconds, after which the next sample completes all earlier ones


class Samples:
    """Samples that the device may still be computing, in the order in which they were taken.

    ```
    device   | steps | sample 1 | steps | sample 2 | steps …
    host     | take 1 | take 2 | … take 33 | complete 1 | take 34 | complete 2 …
    ```

    All ranks take and complete the same samples in the same order, so that completing them may be
    collective. The host is ahead of the device by fewer steps than MOST_SAMPLES samples usually
    span, so it rarely waits. LONGEST_DELAY after it did so, and at the next sample, it completes
    all but this one, so that the rows can be followed; rank 0 has the clock.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm, self._completed = comm, monotonic()
        self._open: deque[Callable[[], None]] = deque()

    def add(self, complete: Callable[[], None]) -> None:
        """Call `complete()` later: it waits for the numbers of a sample and writes its row.

        Collective.
        """
        self._open.append(complete)
        late = self._comm.bcast(monotonic() - self._completed > LONGEST_DELAY)
        self.settle(1 if late else MOST_SAMPLES)
        if late:
            self._completed = monotonic()

    def settle(self, most: int = 0) -> None:
        """Complete the oldest samples until at most `most` are left."""
        while len(self._open) > most:
            self._open.popleft()()
