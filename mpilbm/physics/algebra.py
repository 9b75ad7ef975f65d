"""Vector algebra that works on numbers, arrays and SymPy expressions alike."""

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement

from mpilbm.model.expressions import Expression, Populations


def dot(a: Iterable[Expression], b: Iterable[Expression]) -> Expression:
    """The scalar product of two vectors; terms with a factor of zero are omitted."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x != 0 and y != 0), 0)


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
