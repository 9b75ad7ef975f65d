"""Half-way walls at the ends of rows, x- and x+, for steps that take what these return at home."""

import numpy as np

ENDS = {"x-", "x+"}


def rows_end_in_walls(case) -> bool:
    """Whether what would come from beyond x- and x+ is read at home, see Layout.returning.

    There a wall at rest has nothing to do, and any other boundary writes what enters: nothing else
    is read of what left towards the ends. So it is worth it once one of the ends is such a wall:
    each value there would come in a cache sector of its own, which the step reads anyway.
    """
    if case.domain.periodic[0] or not case.layout.returning(case.lattice):
        return False
    return any(boundary.returns and ENDS & {*boundary.where} for boundary in case.boundaries)


def beyond(case, slab, cells) -> np.ndarray:
    """uint32 (n,): bits of the directions along which what enters cells comes from beyond."""
    x, steps = cells % slab.shape[2], [case.lattice.offset(i)[2] for i in range(case.lattice.Q)]
    right, left = (sum(1 << i for i, step in enumerate(steps) if step == way) for way in (1, -1))
    return (x == 0) * np.uint32(right) | (x == slab.shape[2] - 1) * np.uint32(left)
