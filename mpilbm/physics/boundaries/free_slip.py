"""Free slip: a face of the box without drag."""

from fractions import Fraction
from itertools import combinations

from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Beyond, Capabilities, LinkValue, PerLink
from mpilbm.registry import register


@register("boundaries", "free_slip")
class FreeSlip(Boundary):
    """Mirror half a cell outside the face: f_i(x, t+1) = f_out_r(x - c_i + m), c_r = c_i - 2 m.

    m is the part of c_i along the normal, at an edge or corner along all normals that are crossed.
    A link that also crosses a face of another boundary belongs to that boundary, and to a body
    where x - c_i + m is its cell. Other boundaries see the mirror image as if it streamed in. So
    the flow is half of one in a box twice as wide, whatever lies beside it. Mass and the momentum
    along the face are conserved. There is no drag, so it takes no velocity. Not on D3Q13, which has
    no mirror nodes.
    [Succi 2001, The Lattice Boltzmann Equation, 6.3]
    """

    declares = Capabilities(
        normal=True, per_link=PerLink(value=LinkValue.MIRROR_AXES), beyond=Beyond.MIRROR
    )
    lattices = ("D2Q9", "D3Q15", "D3Q19", "D3Q27")

    def incoming(self, cell):
        """From the cell whose population crosses the face between the two."""
        lattice, n = cell.lattice, cell.normal
        incoming: dict = {}
        for i, c in enumerate(lattice.c):
            if sum(a * b for a, b in zip(c, n, strict=True)) <= 0:
                continue
            every = _mirrored(c, n)
            for axes in reversed(every):
                m = tuple(v if a in axes else 0 for a, v in enumerate(c))
                r = lattice.c.index(tuple(a - 2 * b for a, b in zip(c, m, strict=True)))
                f_r = cell.mirrored(i, tuple(-v for v in m), r)  # on its way through the face
                above = sum(2**a for a in axes) + Fraction(1, 2)
                last = axes == every[-1]
                incoming[i] = f_r if last else cell.below(cell.link(i), above, f_r, incoming[i])
        return incoming


def _mirrored(c, n) -> list[tuple[int, ...]]:
    """The sets of axes along which c may be mirrored, by their sum of 2^axis."""
    axes = [a for a, v in enumerate(c) if v]
    some = (s for k in range(len(axes) + 1) for s in combinations(axes, k))
    return sorted((s for s in some if any(n[a] for a in s)), key=lambda s: sum(2**a for a in s))
