"""Free slip: a face of the box without drag."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Beyond, Capabilities, LinkValue, PerLink


@register("boundaries", "free_slip")
class FreeSlip(Boundary):
    """f_i(x, t+1) = f_out_r(x - c_i + m), c_r = c_i - 2 m: the fluid is mirrored at the face.

    m is the component of c_i along the normal of the face; at edges and corners, along the normals
    of all faces that the link crosses. The mirror plane lies half a cell outside the last cells. A
    link that also crosses a face of another boundary belongs to that boundary. A link for which
    x - c_i + m is a cell of a body belongs to that body. For other boundaries the mirror image acts
    like fluid that streams in, so the flow equals one half of the flow in a box of twice the width.
    Mass and the momentum along the face are conserved. There is no drag, and therefore no parameter
    `velocity`. Not on D3Q13, which has no mirror nodes.
    [Succi 2001, The Lattice Boltzmann Equation, 6.3]
    """

    declares = Capabilities(
        normal=True, per_link=PerLink(value=LinkValue.MIRROR_AXES), beyond=Beyond.MIRROR
    )
    lattices = ("D2Q9", "D3Q15", "D3Q19", "D3Q27")

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The populations whose mirror images cross the face into the cell."""
        lattice, n = cell.lattice, cell.normal
        incoming: dict[int, Expression] = {}
        for i, c in enumerate(lattice.c):
            if sum(a * b for a, b in zip(c, n, strict=True)) <= 0:
                continue
            every = _mirrored(c, n)
            for axes in reversed(every):
                m = tuple(v if a in axes else 0 for a, v in enumerate(c))
                r = lattice.c.index(tuple(a - 2 * b for a, b in zip(c, m, strict=True)))
                f_r = cell.mirrored(i, tuple(-v for v in m), r)
                above = sum(2**a for a in axes) + Fraction(1, 2)
                last = axes == every[-1]
                incoming[i] = f_r if last else cell.below(cell.link(i), above, f_r, incoming[i])
        return incoming


def _mirrored(c: Sequence[int], n: Sequence[int]) -> list[tuple[int, ...]]:
    """The sets of axes along which c may be mirrored, sorted by their sums of 2^axis."""
    axes = [a for a, v in enumerate(c) if v]
    some = (s for k in range(len(axes) + 1) for s in combinations(axes, k))
    return sorted((s for s in some if any(n[a] for a in s)), key=lambda s: sum(2**a for a in s))
