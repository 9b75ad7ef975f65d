"""The standard second-order equilibrium."""

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot, one_way, pairs
from mpilbm.physics.equilibria import Equilibrium, with_moments
from mpilbm.physics.lattices import Lattice


@register("equilibria", "compressible")
class Compressible(Equilibrium):
    """feq_i = w_i rho (1 + c_i.u / cs2 + (c_i.u)^2 / (2 cs4) - u.u / (2 cs2)).

    The default equilibrium of most collisions. On D3Q13 the feq_i are the populations with the same
    moments of orders 0 to 2 (rho, rho u, rho u u + cs2 rho 1) and no others: Tölke & Krafczyk
    2008, (6). [Qian, d'Humières & Lallemand 1992]
    """

    second_order = True

    def feq(
        self, lattice: Lattice, density: Expression, rho: Expression, u: Vector
    ) -> list[Expression]:
        """Return Q expressions feq_i; c_i and -c_i share the parts even and odd in c_i."""
        if lattice.isotropy < 4:
            flux = {(a, b): rho * u[a] * u[b] for a, b in pairs(lattice.D)}
            return with_moments(lattice, density, [rho * v for v in u], flux)
        cs2, uu = lattice.cs2, dot(u, u)
        feq = []
        for w, c in zip(lattice.w, lattice.c, strict=True):
            sign, forward = one_way(c)
            cu = dot(forward, u)
            even = density + rho * (cu**2 / (2 * cs2**2) - uu / (2 * cs2))
            feq.append(w * even + sign * w * rho * cu / cs2)
        return feq
