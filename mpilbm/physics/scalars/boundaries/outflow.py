"""Outflow of a scalar."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.algebra import dot
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.scalars.boundaries import Numbers, ScalarBoundary


@register("scalar_boundaries", "outflow")
class ScalarOutflow(ScalarBoundary):
    """g_i(x) = g_i(x + n) where c_i . n > 0 and n is the inward normal: no gradient normal to it.

    For faces through which fluid leaves the box.
    """

    through = True
    declares = Capabilities(normal=True, inward=1)

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """No value."""
        return np.empty(0)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The populations that arrive in the cell inwards."""
        found = cell.inward(1).arrives
        return {i: found[i] for i, c in enumerate(cell.lattice.c) if dot(c, cell.normal) > 0}
