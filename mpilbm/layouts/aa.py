"""One array; even steps stay in the cell, odd steps read and write the neighbours."""

from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.registry import register


@register("layouts", "aa")
class AA(Layout):
    """In place, half the memory of `ab`. [Bailey et al. 2009, ICPP, 550-557].

    Even steps read f_i at home in slot i and store what leaves in the slot of the opposite
    direction; odd steps fetch it from there, out of the neighbour, and push what leaves into the
    next one.
    """

    parities = 2

    def gather(self, lattice, i, parity):
        """At home, or from the neighbour's opposite slot."""
        if parity == 0:
            return Place(i, HERE)
        return Place(lattice.opp[i], against(lattice.offset(i)))

    def scatter(self, lattice, i, parity):
        """At home in the opposite slot, or into the next cell."""
        if parity == 0:
            return Place(lattice.opp[i], HERE)
        return Place(i, lattice.offset(i))
