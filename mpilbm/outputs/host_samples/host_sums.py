"""Adds samples of rho and u to numbers of the host while the time steps continue."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from mpilbm.outputs import Context, PlaneCopies
from mpilbm.outputs.host_samples.plane_sums import Fields, PlaneSums, with_planes

FIELDS = ("rho", "u")


class HostSums:
    """The numbers of the planes of this rank, see sample_writer.Sums.

    ```
    bulk stream   | steps | copy 1 | steps | copy 2 | steps …
    threads                        | add 1 |        | add 2 | …
    ```

    Each thread adds the copies of the same planes in their order. If threads are slower than the
    steps, the steps wait when the memory of `Context.copies` is full.
    """

    def __init__(self, context: Context, sums: PlaneSums):
        self.context, self.sums, self.values = context, sums, sums.values
        self.samples = 0
        self.state = np.zeros((context.slab.planes, self.values))
        threads = context.background.threads
        self._threads = [ThreadPoolExecutor(1, "mpilbm-samples") for _ in range(threads)]
        self._work: list[Future] = []

    def sample(self) -> None:
        """Enqueue copies of the planes of this rank, and their addition in threads; collective."""
        context = self.context
        context.solver.prepare(FIELDS)
        copies = context.copies.fields(FIELDS)
        for k, (begin, end) in enumerate(copies.blocks(context.slab.planes)):
            thread = self._threads[k % len(self._threads)]  # the same one in each sample
            piece = copies.start(begin, end)
            self._work.append(thread.submit(self._add, piece, begin, end))
        self.samples += 1
        self._work = [each for each in self._work if not each.done() or each.exception()]

    def _add(self, piece: AbstractContextManager, begin: int, end: int) -> None:
        """Add some planes of a sample, in a thread."""
        with piece as fields:
            for k in range(begin, end):
                rho, u = fields["rho"][k - begin], fields["u"][k - begin]
                plane = np.empty((1 + u.shape[-1], *rho.shape))
                plane[0], plane[1:] = rho, np.moveaxis(u, -1, 0)
                plane[0] -= 1  # so that the fluctuations of rho keep their digits
                (solid,) = self.context.solver.solid(k, k + 1)
                self.sums.add(self.state[k], plane, solid if solid.any() else None)

    def settle(self) -> None:
        """Wait until all samples are added; raises the error of a thread."""
        work, self._work = self._work, []
        for each in work:
            each.result()

    def read(self, begin: int, end: int) -> np.ndarray:
        """See Sums, after `settle`."""
        return self.state[begin:end].copy()

    def write(self, state: np.ndarray, samples: int) -> None:
        """See Sums."""
        self.state, self.samples = state, samples

    def copies(self) -> "KeptPlanes":
        """See Sums, after `settle`."""
        return KeptPlanes(self.state)

    def over_planes(self, before: np.ndarray | None) -> np.ndarray:
        """See Sums, after `settle`."""
        found = before
        for sums in self.state:
            found = sums.copy() if found is None else self.sums.merge(found, sums)
        assert found is not None, "each slab has planes"
        return found

    def results(self, merged: np.ndarray) -> Fields:
        """See Sums."""
        return self.sums.results(merged)

    def of_planes(self) -> Fields:
        """See Sums, after `settle`."""
        return with_planes(self.sums.results, self.state)

    def means(self) -> PlaneCopies:
        """Not needed: `of_planes` returns the fields."""
        raise NotImplementedError

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)


class KeptPlanes:
    """Numbers of planes on the host, for a checkpoint, as they are now."""

    def __init__(self, state: np.ndarray):
        self._state = state.copy()

    def blocks(self, planes: int) -> list[tuple[int, int]]:
        """Ranges (begin, end) of planes that are written at a time."""
        return [(0, planes)]

    @contextmanager
    def start(self, begin: int, end: int) -> Iterator[Fields]:
        """These planes, "sums"."""
        yield {"sums": self._state[begin:end]}
