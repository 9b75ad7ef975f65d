"""Half-way walls at the ends of rows, x- and x+, that the step applies without a list."""

import numpy as np
from numpy.typing import NDArray

from mpilbm.links.link_set import LinkSet

ENDS = {"x-", "x+"}


def rows_end_in_walls(case) -> bool:
    """Whether the step reads populations from beyond x- and x+ locally, see Layout.returning.

    A wall at rest there has nothing to do, and any other boundary writes the incoming populations:
    nothing else reads the populations that left towards the ends. It is worth it if one of the ends
    is such a wall: each of these values would come in a cache sector of its own, which the step
    reads anyway.
    """
    if case.domain.periodic[0] or not case.layout.returning(case.lattice):
        return False
    return any(boundary.reflects and ENDS & {*boundary.where} for boundary in case.boundaries)


def beyond(case, slab, cells: NDArray[np.int64]) -> LinkSet:
    """The links of cells whose populations come from beyond the ends of rows."""
    x, steps = cells % slab.shape[2], [case.lattice.offset(i)[2] for i in range(case.lattice.Q)]
    ends = {1: x == 0, -1: x == slab.shape[2] - 1}
    return LinkSet.collect(cells.size, {i: ends[step] for i, step in enumerate(steps) if step})
