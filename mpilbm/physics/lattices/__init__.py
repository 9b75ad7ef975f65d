"""Discrete velocity sets: velocities `c` and weights `w`; other properties are derived from them.

To add a lattice, add a class to `velocity_sets.py`, derived from `Lattice` that states `c`, `w` and
`isotropy`, with `@register("lattices", name)`, or `@register("scalar_lattices", name)` for scalars:
these need isotropy of second order only.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import lcm, prod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.registry import Parameters
from mpilbm.model.case import Case

AXES = "xyz"

# Velocities in three dimensions, one of each pair of opposite ones
ALONG_AXES = (1, 0, 0), (0, 1, 0), (0, 0, 1)
FACE_DIAGONALS = (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1)
SPACE_DIAGONALS = (1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)

Coordinate = TypeVar("Coordinate", int, NDArray[Any])


class Lattice(Parameters):
    """A velocity set c_i (integers) with weights w_i (exact fractions).

    A subclass defines `c` (Q vectors of D integers, c_0 = 0), `w` (Q fractions) and `isotropy`, the
    highest even order to which sum_i w_i c_ia c_ib … is isotropic. The base class derives D, Q, the
    opposite directions opp (c_opp(i) = -c_i) and the square of the speed of sound cs2, where
    sum_i w_i c_ia c_ib = cs2 delta_ab. The definition of a subclass raises ValueError if its data
    are inconsistent.

    If `staggered` is True, all |c_i|^2 are even, and only the nodes with even x + y + z are stored.
    A row holds nx / 2 of these nodes; node k of a row is at x = 2 k + (y + z) % 2, see `x`.
    """

    c: ClassVar[tuple[tuple[int, ...], ...]] = ()
    w: ClassVar[tuple[Fraction, ...]] = ()
    isotropy: ClassVar[int] = 4
    staggered: ClassVar[bool] = False
    D: ClassVar[int]
    Q: ClassVar[int]
    opp: ClassVar[tuple[int, ...]]
    cs2: ClassVar[Fraction]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.D, cls.Q = len(cls.c[0]), len(cls.c)
        if {tuple(-a for a in c) for c in cls.c} != set(cls.c) or len(set(cls.c)) != cls.Q:
            raise ValueError(f"{cls.__name__}: each c_i must occur once, and so must its opposite")
        cls.opp = tuple(cls.c.index(tuple(-a for a in c)) for c in cls.c)
        cls.cs2 = cls.moment(0, 0)
        cls._check()

    @classmethod
    def moment(cls, *axes: int) -> Fraction:
        """sum_i w_i c_ia c_ib …, with one factor for each axis given."""
        below = lcm(*(w.denominator for w in cls.w))  # sums of integers are faster
        weights = (w.numerator * (below // w.denominator) for w in cls.w)
        terms = (w * prod(c[axis] for axis in axes) for w, c in zip(weights, cls.c, strict=True))
        return Fraction(sum(terms), below)

    @classmethod
    def _check(cls) -> None:
        if cls.moment() != 1 or any(w <= 0 for w in cls.w) or any(cls.c[0]):
            raise ValueError(f"{cls.__name__}: weights must be positive and add up to 1, c_0 = 0")
        if cls.staggered and (cls.D < 3 or any(sum(c) % 2 for c in cls.c)):
            raise ValueError(f"{cls.__name__}: a link points to a node that is not stored")
        for order in range(1, cls.isotropy + 2):
            for axes in combinations_with_replacement(range(cls.D), order):
                if cls.moment(*axes) != _isotropic(axes, cls.cs2):
                    raise ValueError(
                        f"{cls.__name__}: not isotropic to order {cls.isotropy}: {axes}"
                    )

    def offset(self, i: int) -> tuple[int, int, int]:
        """c_i as (planes, rows, x). Planes lie along the slowest axis: z in 3D, y in 2D."""
        return self.offset_of(self.c[i])

    def offset_of(self, c: Sequence[int]) -> tuple[int, int, int]:
        """A vector c (D components) as (planes, rows, x); in 2D the number of rows is 0."""
        return (c[2], c[1], c[0]) if self.D == 3 else (c[1], 0, c[0])

    @property
    def volume(self) -> int:
        """The volume of a stored cell, in cells of the full lattice: 2 if staggered, else 1.

        A row has as many nodes for each stored cell.
        """
        return 2 if self.staggered else 1

    def x(self, plane: Coordinate | int, row: Coordinate | int, k: Coordinate) -> Coordinate:
        """The x coordinate of stored cell `k` of a row; numbers or arrays.

        Plane and row count from 0 in the box.
        """
        return 2 * k + (plane + row) % 2 if self.staggered else k

    def stored(self, planes: NDArray[Any], begin: int) -> NDArray[Any]:
        """The stored cells (n, rows, nx, …) of planes begin, begin + 1, … with all nodes."""
        if not self.staggered:
            return planes
        plane, row, k = np.ogrid[: len(planes), : planes.shape[1], : planes.shape[2] // 2]
        return planes[plane, row, self.x(begin + plane, row, k)]

    @property
    def stencil(self) -> tuple[tuple[int, ...], ...]:
        """Offsets of the neighbours in finite differences, each followed by its opposite.

        These are -x, +x, -y, +y, …. A staggered lattice does not store these neighbours; there the
        offsets are all c_i except c_0.
        """
        if self.staggered:
            return self.c[1:]
        return tuple(
            tuple(sign * (k == axis) for k in range(self.D))
            for axis in range(self.D)
            for sign in (-1, 1)
        )

    def problems(self, case: Case) -> list[str]:
        """Errors: on a staggered lattice, an odd size along x or along a periodic axis."""
        if not self.staggered or case.dimensions != self.D:
            return []
        closed = zip(AXES, case.domain.size, case.domain.periodic, strict=True)
        return [
            f"{self.name} stores the nodes with even x + y + z, but domain.size has {n} along "
            f"{axis}; allowed: even numbers along x and all periodic axes; use {n - 1 or 4} or "
            f"{n + 1}"
            for axis, n, periodic in closed
            if n % 2 and (periodic or axis == "x")
        ]

    @property
    def slots(self) -> tuple[int, ...]:
        """The position of each direction in a plane of memory, sorted by the plane offset of c_i.

        With this order the populations that cross a face of a slab are contiguous in memory.
        """
        order = sorted(range(self.Q), key=lambda i: (self.offset(i)[0], i))
        return tuple(order.index(i) for i in range(self.Q))


def undefined(name: str, lattice: Lattice, allowed: tuple[str, ...] | None) -> list[str]:
    """The error of a model `name` on a lattice that is not among those allowed (None: all are)."""
    if not allowed or lattice.name in allowed:
        return []
    return [f"{name} is not defined on {lattice.name}; allowed: {', '.join(allowed)}"]


def _isotropic(axes: tuple[int, ...], cs2: Fraction) -> Fraction:
    """The isotropic moment: cs^n times the sum over all pairings of delta products; odd n: 0."""
    if len(axes) % 2:
        return Fraction(0)
    if not axes:
        return Fraction(1)
    first, rest = axes[0], axes[1:]
    pairings = (k for k, other in enumerate(rest) if other == first)
    return sum((cs2 * _isotropic(rest[:k] + rest[k + 1 :], cs2) for k in pairings), Fraction(0))


def paired(*halves: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the zero velocity, then each given c_i followed by its opposite."""
    rest = tuple(0 for _ in halves[0])
    return (rest, *(v for c in halves for v in (c, tuple(-a for a in c))))


def by_speed(c: tuple[tuple[int, ...], ...], weights: tuple[str, ...]) -> tuple[Fraction, ...]:
    """Return the weight of each c_i; `weights` holds one fraction for each |c|^2 = 0, 1, 2, 3."""
    return tuple(Fraction(weights[sum(a * a for a in v)]) for v in c)
