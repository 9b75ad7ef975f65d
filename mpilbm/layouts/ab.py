"""Two arrays, read from one and written to the other."""

from mpilbm.core.registry import register
from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.physics.lattices import Lattice


@register("layouts", "ab")
class AB(Layout):
    """Pull: f_i is read from x - c_i in one array and written at x in the other.

    Twice the memory of the in-place layouts. [Rinaldi et al. 2012, one-step pull]
    """

    buffers = 2
    shares = {"float64": 0.97, "float32": 0.97, "float16": 0.89}
    past_bodies = 0.94

    def gather(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Slot i of the cell x - c_i."""
        return Place(i, against(lattice.offset(i)))

    def scatter(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Slot i of the cell."""
        return Place(i, HERE)
