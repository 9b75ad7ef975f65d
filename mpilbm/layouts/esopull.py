"""One array; each step reads half of a cell's populations at home and half from neighbours."""

from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.registry import register


@register("layouts", "esopull")
class EsoPull(Layout):
    """In place, half the memory of `ab`; every step is alike. [Lehmann 2022, Computation 10, 92].

    Of each pair of opposite directions one, the forward one, is read at home and pushed to the
    next cell, the other is fetched from there and stored at home; the two swap slots every step.
    Forward points to higher planes, so that a slab has one message a face.
    """

    parities = 2

    def gather(self, lattice, i, parity):
        """Forward at home, backward from where it comes."""
        slot = i if parity else lattice.opp[i]
        return Place(slot, HERE if _forward(lattice, i) else against(lattice.offset(i)))

    def scatter(self, lattice, i, parity):
        """Forward into the next cell, backward at home, each in the other's slot."""
        slot = lattice.opp[i] if parity else i
        return Place(slot, lattice.offset(i) if _forward(lattice, i) else HERE)


def _forward(lattice, i: int) -> bool:
    """One of each pair: the one with the larger (plane, row, x); not the rest population."""
    return lattice.offset(i) > HERE
