"""Vector algebra that works on numbers, arrays and SymPy expressions alike."""

from itertools import combinations_with_replacement
from typing import Any


def dot(a, b) -> Any:
    """Scalar product of two vectors; terms with a factor zero are left out."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x != 0 and y != 0), 0)


def pairs(D: int) -> list[tuple[int, int]]:
    """Index pairs (a, b), a <= b, of the components of a symmetric tensor: xx, xy, xz, yy, …"""
    return list(combinations_with_replacement(range(D), 2))


def expanded(value) -> Any:
    """A symbolic value multiplied out, so that equal terms cancel; numbers are unchanged."""
    return value.expand() if hasattr(value, "expand") else value


def one_way(c: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """(1, c) or (-1, -c), so that c and -c give the same vector and opposite signs."""
    back = tuple(-a for a in c)
    return (1, c) if c >= back else (-1, back)
