"""Scalars that a flow carries: temperature and concentrations.

A scalar phi has populations g_i of its own, phi = sum_i g_i, on the cells of the fluid. They solve

    d phi/dt + div(u phi) = div(D grad phi) + S
"""

from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot
from mpilbm.physics.lattices import Lattice


def equilibrium(
    lattice: Lattice, phi: Expression, u: Vector, capacity: Expression = 1
) -> list[Expression]:
    """Return the Q expressions geq_i of a scalar phi in a flow of velocity u.

        geq_i = w_i phi (1 + c_i.u / cs2 + (c_i.u)^2 / (2 cs4) - u.u / (2 cs2))

    The terms of second order are present on lattices that are isotropic to order 4. There the
    diffusivity does not depend on a uniform velocity to second order. On D2Q5 and D3Q7 it does: the
    diffusivity along u is D - (tau - 1/2) u^2.

    With a heat capacity C, (C - 1) phi is added to geq_0, and the sum is C phi.
    """
    cs2, uu, found = lattice.cs2, dot(u, u), []
    for w, c in zip(lattice.w, lattice.c, strict=True):
        cu = dot(c, u)
        terms = 1 + cu / cs2
        if lattice.isotropy >= 4:
            terms += cu**2 / (2 * cs2**2) - uu / (2 * cs2)
        found.append(w * phi * terms)
    if capacity != 1:
        found[0] += (capacity - 1) * phi
    return found


def weights(lattice: Lattice, value: Expression) -> list[Expression]:
    """Return w_i value, the populations of a scalar in a fluid at rest."""
    return [w * value for w in lattice.w]
