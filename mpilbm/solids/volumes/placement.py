"""Places a volume in the box: refined, mirrored, padded with fluid, and moved."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Placement:
    """The place of a volume along one axis of the box.

    count   cells of the volume after cropping and coarsening
    refine  cells of the box for each of them
    mirror  whether a mirrored copy follows
    pad     fluid cells before the volume and behind it
    at      the lower end in the box
    """

    count: int
    refine: int
    mirror: bool
    pad: int
    at: float

    @property
    def size(self) -> int:
        """The number of cells in the box, with fluid cells at both ends."""
        return self.count * self.refine * (1 + self.mirror) + 2 * self.pad

    def source(self, points: Any) -> NDArray[np.int64]:
        """The cell of the volume at each coordinate, -1 outside; shape of `points`."""
        k = np.floor(np.asarray(points, np.float64) - self.at).astype(np.int64) - self.pad
        half = self.count * self.refine
        outside = (k < 0) | (k >= half * (1 + self.mirror))
        k = np.where(k >= half, 2 * half - 1 - k, k) // self.refine
        return np.where(outside, -1, k)
