"""Rows of outputs whose numbers the device computes behind the steps."""

from collections import deque
from collections.abc import Callable

MOST_SAMPLES = 32  # that are not complete yet


class Samples:
    """Samples that the device may still be computing, in the order in which they were taken.

    ```
    device   | steps | sample 1 | steps | sample 2 | steps …
    host     | take 1 | take 2 | … take 33 | complete 1 | take 34 | complete 2 …
    ```

    All ranks take and complete the same samples in the same order, so that completing them may be
    collective. The host is ahead of the device by fewer steps than MOST_SAMPLES samples usually
    span, so it rarely waits.
    """

    def __init__(self) -> None:
        self._open: deque[Callable[[], None]] = deque()

    def add(self, complete: Callable[[], None]) -> None:
        """Call `complete()` later: it waits for the numbers of a sample and writes its row."""
        self._open.append(complete)
        self.settle(MOST_SAMPLES)

    def settle(self, most: int = 0) -> None:
        """Complete the oldest samples until at most `most` are left."""
        while len(self._open) > most:
            self._open.popleft()()
