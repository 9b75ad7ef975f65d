"""Vector algebra and moments of populations, for numbers, arrays and SymPy expressions alike."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

from mpilbm.core.formulas.trees import total
from mpilbm.model.expressions import Expression, Populations, Vector
from mpilbm.physics.lattices import Lattice


def dot(a: Iterable[Expression], b: Iterable[Expression]) -> Expression:
    """The scalar product of two vectors; terms with a factor of zero are omitted."""
    return total(x * y for x, y in zip(a, b, strict=True) if x != 0 and y != 0)


def pairs(D: int) -> list[tuple[int, int]]:
    """Index pairs (a, b), a <= b, of the components of a symmetric tensor: xx, xy, xz, yy, …"""
    return list(combinations_with_replacement(range(D), 2))


def expanded(value: Expression) -> Expression:
    """Return a symbolic value multiplied out, so that equal terms cancel; numbers unchanged."""
    return value.expand() if hasattr(value, "expand") else value


def one_way(c: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return (1, c) or (-1, -c): c and -c give the same vector with opposite signs."""
    back = tuple(-a for a in c)
    return (1, c) if c >= back else (-1, back)


def by_parity(
    opp: Sequence[int], d: Populations, plus: Expression, minus: Expression
) -> list[Expression]:
    """plus d_i^+ + minus d_i^- with d_i^± = (d_i ± d_opp(i)) / 2, for each direction i."""
    found = list(d)
    for i, j in enumerate(opp):
        if i <= j:
            even, odd = plus * (d[i] + d[j]) / 2, minus * (d[i] - d[j]) / 2
            found[i], found[j] = even + odd, even - odd
    return found


def moments_of(
    lattice: Lattice, f: Populations
) -> tuple[Expression, list[Expression], list[Expression]]:
    """Return the density (scalar), momentum (D) and second moments of Q populations f.

        density = sum_i f_i,   momentum = sum_i c_i f_i,   Pi_ab = sum_i H2_i,ab f_i

    The components of Pi are in the order of `pairs`; see `hermite` for H2.
    """
    momentum = [dot([c[a] for c in lattice.c], f) for a in range(lattice.D)]
    second = [dot([hermite(lattice, c, a, b) for c in lattice.c], f) for a, b in pairs(lattice.D)]
    return total(f), momentum, second


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


def split(
    values: Sequence[Expression], deviator: Expression, trace: Expression
) -> list[Expression]:
    """Multiply the mean of values by `trace` and the deviations from the mean by `deviator`."""
    mean = sum(values) / len(values)
    return [deviator * (value - mean) + trace * mean for value in values]
