"""Moments of populations up to the second order, and populations from such moments."""

from mpilbm.physics.algebra import dot, pairs


def moments_of(lattice, f):
    """density, momentum (D) and second moments sum_i Q_i f_i of Q populations."""
    momentum = [dot([c[a] for c in lattice.c], f) for a in range(lattice.D)]
    second = [dot([hermite(lattice, c, a, b) for c in lattice.c], f) for a, b in pairs(lattice.D)]
    return sum(f), momentum, second


def populations(lattice, density, momentum, second, only=None) -> list:
    """The populations whose Hermite moments above the second order are zero.

    f_i = w_i (rho + rho c_i.u / cs2 + H2_i : Pi / (2 cs4)), of all directions, or of
    those in `only`. `second` holds the components of Pi in the order of `pairs`.
    """
    f = []
    for i in range(lattice.Q) if only is None else only:
        w, c = lattice.w[i], lattice.c[i]
        weights = [(1 if a == b else 2) * hermite(lattice, c, a, b) for a, b in pairs(lattice.D)]
        even = density + dot(weights, second) / (2 * lattice.cs2**2)
        f.append(w * even + w * dot(c, momentum) / lattice.cs2)
    return f


def hermite(lattice, c, a: int, b: int):
    """H2_ab = c_a c_b - cs2 delta_ab, the second Hermite polynomial."""
    return c[a] * c[b] - (lattice.cs2 if a == b else 0)
