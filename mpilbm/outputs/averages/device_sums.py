"""The sums of the output `statistics`, which are on the device."""

import numpy as np

from mpilbm.outputs import Context
from mpilbm.outputs.averages.sample_writer import Fields
from mpilbm.parallel.agree import together
from mpilbm.solver.fields.moments import Moments
from mpilbm.solver.fields.staging import Copies


class DeviceSums:
    """See sample_writer.Sums; `along`: whether x and the rows of a plane are averaged."""

    def __init__(self, context: Context, along: tuple[bool, bool]):
        self.context, self.statistics = context, context.solver.statistics(*along)
        self._ready = False

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.statistics.samples

    @property
    def values(self) -> int:
        """How many numbers a plane has."""
        return self.statistics.values

    def sample(self) -> None:
        """Enqueue a sample; the first one of a run allocates memory, which may fail on one rank."""
        if self._ready:
            self.statistics.sample()
        else:
            together(self.context.comm, self.statistics.sample)
            self._ready = True

    def settle(self) -> None:
        """Nothing to do: reading the sums waits for the device."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """See Sums."""
        return self.statistics.read(begin, end)

    def write(self, state: np.ndarray, samples: int) -> None:
        """See Sums."""
        self.statistics.write(state, samples)

    def copies(self) -> Copies:
        """See Sums."""
        return self.context.copies.sums(self.statistics)

    def over_planes(self, before: Moments | None) -> Moments:
        """See Sums."""
        return self.statistics.over_planes(before)

    def results(self, merged: Moments) -> Fields:
        """The fields of `Sampled.fields`."""
        return merged.fields(self.context.case.labels)

    def of_planes(self) -> Fields | None:
        """See Sums; the device computes the means of cells."""
        labels = self.context.case.labels
        if self.statistics.places.of_cells:
            return None
        return self.statistics.moments(0, self.context.slab.planes).fields(labels)

    def means(self) -> Copies:
        """See Sums."""
        return self.context.copies.means(self.statistics)

    def close(self) -> None:
        """Nothing is open between two samples."""
