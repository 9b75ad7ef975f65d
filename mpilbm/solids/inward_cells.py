"""The cells inwards of a face that boundaries read."""

from dataclasses import dataclass

import numpy as np

from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundary_capabilities import INWARD_FALLBACK
from mpilbm.physics.lattices import Lattice
from mpilbm.solids import Ints
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.plane_costs import inward_step
from mpilbm.solids.wall_distance import FluidPlane, fluid_at


@dataclass(frozen=True, eq=False)
class InwardCells:
    """The k-th cells inwards of n entries, int64 (n,), and their blocked links.

    A cell that is not fluid, or that lies behind one, is replaced by the nearest fluid cell before.
    """

    cells: Ints
    blocked: LinkSet


def inward_cells(
    lattice: Lattice, slab: Slab, fluid: FluidPlane, cells: Ints, boundary: Condition
) -> tuple[list[Ints], dict[str, int]]:
    """Return the cells inwards along the normal for each step, and the number of replacements."""
    steps = boundary.capabilities.inward
    if not steps:
        return [], {}
    shape = (slab.planes, *slab.shape[1:])
    place = np.array(np.unravel_index(cells, shape)).reshape(3, -1)
    step = np.reshape(inward_step(lattice, boundary), (3, 1))
    found, before, replaced, usable = [], cells, 0, np.ones(len(cells), bool)
    for k in range(1, steps + 1):
        there = place + k * step
        inside = (there >= 0).all(axis=0) & (there < np.reshape(shape, (3, 1))).all(axis=0)
        at = np.ravel_multi_index(tuple(np.where(inside, there, place)), shape)
        usable &= inside & fluid_at(fluid, *np.divmod(at, shape[1] * shape[2]))
        before = np.where(usable, at, before)
        replaced += int(np.count_nonzero(~usable))
        found.append(before)
    return found, {INWARD_FALLBACK: replaced}
