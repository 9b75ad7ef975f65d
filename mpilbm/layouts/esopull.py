"""One array; each step reads half of the populations from the cell, half from neighbours."""

from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import register


@register("layouts", "esopull")
class EsoPull(Layout):
    """In place, half the memory of `ab`; all steps are alike. [Lehmann 2022, Computation 10, 92].

    Of each pair of opposite directions the forward one is read from the cell and written to the
    next cell; the other is read from there and written to the cell. The two swap slots every step.
    Forward directions point to higher planes, so that a slab sends one message per face.
    """

    parities = 2

    def gather(self, lattice: Lattice, i, parity: int) -> Place:
        """Forward: in the cell. Backward: in the neighbour from which it comes."""
        slot = i if parity else lattice.opp[i]
        return Place(slot, HERE if _forward(lattice, i) else against(lattice.offset(i)))

    def scatter(self, lattice: Lattice, i, parity: int) -> Place:
        """Forward: in the next cell. Backward: in the cell. Each in the slot of the opposite."""
        slot = lattice.opp[i] if parity else i
        return Place(slot, lattice.offset(i) if _forward(lattice, i) else HERE)


def _forward(lattice: Lattice, i: int) -> bool:
    """Whether c_i is the one of its pair with the larger (plane, row, x); False for c_0 = 0."""
    return lattice.offset(i) > HERE
