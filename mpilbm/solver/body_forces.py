"""The forces on all measured bodies, over links or over cells as their boundaries act."""

from collections.abc import Callable

import numpy as np

from mpilbm.physics.boundaries import in_cells
from mpilbm.solids.build import Geometry
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.cell_forces import CellForces
from mpilbm.solver.momentum_exchange import Floats, MomentumExchange
from mpilbm.solver.populations import Populations


class BodyForces:
    """The sums of the bodies of `case.needs.weighed` in each plane.

    groups  int64 (groups, 2), plane of the slab, and number of the body in `weighed`
    links   of bodies with links, None without any
    """

    def __init__(self, fluid: Populations, step_lists: BoundaryLists, geometry: Geometry):
        self._planes, self._bodies = fluid.slab.planes, len(fluid.case.needs.weighed)
        cells = {*in_cells(fluid.case)} & {*fluid.case.needs.weighed}
        given = fluid, step_lists, geometry
        self.links = MomentumExchange(*given) if self._bodies > len(cells) else None
        parts = (self.links, CellForces(*given) if cells else None)
        self._parts = [part for part in parts if part]
        self.groups = np.concatenate([part.groups for part in self._parts])

    def start(self) -> Callable[[], Floats]:
        """Enqueue the sums of the next step, see MomentumExchange.start; in the order of groups."""
        found = [part.start() for part in self._parts]
        return lambda: np.concatenate([copied() for copied in found])

    def sample(self) -> Floats:
        """The sums of all planes and bodies, float64 (planes, bodies, columns)."""
        sums = self.start()()
        found = np.zeros((self._planes, self._bodies, sums.shape[1]))
        found[tuple(self.groups.T)] = sums
        return found
