"""Outflow of a scalar."""

from mpilbm.physics.algebra import dot
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.registry import register


@register("scalar_boundaries", "outflow")
class ScalarOutflow(ScalarBoundary):
    """g_i(x) = g_i(x + n) where c_i . n > 0 and n is the inward normal: no gradient normal to it.

    For faces through which fluid leaves the box.
    """

    through = True
    declares = Capabilities(normal=True, inward=1)

    def incoming(self, cell):
        """The populations that arrive in the cell inwards."""
        found = cell.inward(1).arrives
        return {i: found[i] for i, c in enumerate(cell.lattice.c) if dot(c, cell.normal) > 0}
