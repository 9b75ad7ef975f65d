"""One array; even steps work within the cell, odd steps read from and write to neighbours."""

from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import register


@register("layouts", "aa")
class AA(Layout):
    """In place, half the memory of `ab`. [Bailey et al. 2009, ICPP, 550-557].

    Even steps read f_i of the cell in slot i and store the outgoing f_i in the slot of the opposite
    direction. Odd steps read it from there, in the neighbouring cell, and write the outgoing f_i to
    the next cell.
    """

    parities = 2

    def gather(self, lattice: Lattice, i, parity: int) -> Place:
        """In the cell, or in the opposite slot of the neighbour."""
        if parity == 0:
            return Place(i, HERE)
        return Place(lattice.opp[i], against(lattice.offset(i)))

    def scatter(self, lattice: Lattice, i, parity: int) -> Place:
        """In the opposite slot of the cell, or in the next cell."""
        if parity == 0:
            return Place(lattice.opp[i], HERE)
        return Place(i, lattice.offset(i))
