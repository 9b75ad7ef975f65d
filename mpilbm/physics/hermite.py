"""Moments of populations up to the second order, and populations with given moments."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from mpilbm.model.expressions import Expression, Populations, Vector
from mpilbm.physics.algebra import dot, pairs
from mpilbm.physics.lattices import Lattice


def moments_of(
    lattice: Lattice, f: Populations
) -> tuple[Expression, list[Expression], list[Expression]]:
    """Return the density (scalar), momentum (D) and second moments of Q populations f.

        density = sum_i f_i,   momentum = sum_i c_i f_i,   Pi_ab = sum_i H2_i,ab f_i

    The components of Pi are in the order of `pairs`; see `hermite` for H2.
    """
    momentum = [dot([c[a] for c in lattice.c], f) for a in range(lattice.D)]
    second = [dot([hermite(lattice, c, a, b) for c in lattice.c], f) for a, b in pairs(lattice.D)]
    return sum(f), momentum, second


def populations(
    lattice: Lattice,
    density: Expression,
    momentum: Vector,
    second: Sequence[Expression],
    only: Iterable[int] | None = None,
) -> list[Expression]:
    """Return populations with given moments; their higher Hermite moments are zero.

        f_i = w_i (density + c_i.momentum / cs2 + H2_i : Pi / (2 cs4))

    `second` holds the components of Pi in the order of `pairs`. Returns the populations of all
    directions, or of those in `only`.
    """
    f = []
    for i in range(lattice.Q) if only is None else only:
        w, c = lattice.w[i], lattice.c[i]
        weights = [(1 if a == b else 2) * hermite(lattice, c, a, b) for a, b in pairs(lattice.D)]
        even = density + dot(weights, second) / (2 * lattice.cs2**2)
        f.append(w * even + w * dot(c, momentum) / lattice.cs2)
    return f


def hermite(lattice: Lattice, c: Sequence[int], a: int, b: int) -> int | Fraction:
    """H2_ab(c) = c_a c_b - cs2 delta_ab, the second Hermite polynomial."""
    return c[a] * c[b] - (lattice.cs2 if a == b else 0)
