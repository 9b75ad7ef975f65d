"""Half-way walls at the ends of rows, x- and x+, that the step applies without boundary list."""

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.solids.link_set import LinkSet

ENDS = {"x-", "x+"}


def rows_end_in_walls(case: Case) -> bool:
    """Whether the step reads populations from beyond x- and x+ in the cell, see Layout.returning.

    For a wall at rest the step then reads the outgoing population, and no boundary list is needed.
    Any other boundary writes the incoming population to that place. True if at least one end is a
    wall at rest: a boundary list would load a separate cache sector for each of these values,
    which the step loads in any case.
    """
    if case.domain.periodic[0] or not case.layout.returning(case.lattice):
        return False
    return any(boundary.reflects and ENDS & {*boundary.where} for boundary in case.boundaries)


def beyond(case: Case, slab: Slab, cells: NDArray[np.int64]) -> LinkSet:
    """The links of cells that come from beyond the ends of rows."""
    x, steps = cells % slab.shape[2], [case.lattice.offset(i)[2] for i in range(case.lattice.Q)]
    ends = {1: x == 0, -1: x == slab.shape[2] - 1}
    return LinkSet.collect(cells.size, {i: ends[step] for i, step in enumerate(steps) if step})
