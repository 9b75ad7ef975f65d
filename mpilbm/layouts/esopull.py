"""One array; each step reads half of the populations from the cell, half from neighbours."""

from mpilbm.core.registry import register
from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.physics.lattices import Lattice


@register("layouts", "esopull")
class EsoPull(Layout):
    """In place, half the memory of `ab`; all steps are alike. [Lehmann 2022, Computation 10, 92].

    In each pair of opposite directions one is called forward, c_i with the larger (plane, row, x).
    The forward population is read from the cell and written to the cell x + c_i; the backward
    population is read from x + c_i and written to the cell. The two swap slots every step. Forward
    directions point to higher planes, so a slab sends one message per face.
    """

    parities = 2
    shares = {"float64": 0.95, "float32": 0.95, "float16": 0.83}

    def gather(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Forward: the cell. Backward: the cell x - c_i."""
        slot = i if parity else lattice.opp[i]
        return Place(slot, HERE if _forward(lattice, i) else against(lattice.offset(i)))

    def scatter(self, lattice: Lattice, i: int, parity: int) -> Place:
        """Forward: the cell x + c_i. Backward: the cell. The slot of gather(opp(i))."""
        slot = lattice.opp[i] if parity else i
        return Place(slot, lattice.offset(i) if _forward(lattice, i) else HERE)


def _forward(lattice: Lattice, i: int) -> bool:
    """Whether c_i has a larger (plane, row, x) than its opposite; False for c_0 = 0."""
    return lattice.offset(i) > HERE
