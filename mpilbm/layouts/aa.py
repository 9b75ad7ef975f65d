"""One array; even steps work within the cell, odd steps read from and write to neighbours."""

from mpilbm.core.registry import register
from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.physics.lattices import Lattice


@register("layouts", "aa")
class AA(Layout):
    """In place, half the memory of `ab`. [Bailey et al. 2009, ICPP, 550-557].

    Even steps read f_i from slot i of the cell and write the outgoing population along c_i to the
    slot of the opposite direction of the same cell. Odd steps read f_i from that slot of the cell
    x - c_i and write the outgoing population along c_i to slot i of the cell x + c_i.
    """

    parities = 2
    shares = {"float64": 0.95, "float32": 0.95, "float16": 0.85}

    def gather(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Even steps: slot i of the cell. Odd steps: opposite slot of the cell x - c_i."""
        if parity == 0:
            return Place(i, HERE)
        return Place(lattice.opp[i], against(lattice.offset(i)))

    def scatter(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Even steps: opposite slot of the cell. Odd steps: slot i of the cell x + c_i."""
        if parity == 0:
            return Place(lattice.opp[i], HERE)
        return Place(i, lattice.offset(i))
