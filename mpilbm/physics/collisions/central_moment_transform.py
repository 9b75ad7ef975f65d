"""Central moments of populations and the inverse transform, one axis after the other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from mpilbm.core.units import omega_from_viscosity
from mpilbm.model.expressions import Expression, Let, Moments, Populations, Rates
from mpilbm.physics.collisions import CellState, Collision
from mpilbm.physics.lattices import Lattice

CS2 = Fraction(1, 3)
ALONG = (-1, 0, 1)  # the velocity components along an axis
WEIGHT = {-1: CS2 / 2, 0: 1 - CS2, 1: CS2 / 2}  # their weights; w_i is the product over the axes


class InFrame(Collision):
    """Base class of collisions in central moments.

    Half of the force term is added before the relaxation and half after it. For a linear relaxation
    R this equals f* = f + F - R(f - feq + F/2), the scheme of Guo et al. in the basis of the
    collision. A subclass defines `relaxed_populations`. Rates in `numbers` that are 1 are constants
    in the kernel text instead of arguments, because moments that relax with the rate 1 need not be
    computed.
    """

    equilibria = ("hermite",)
    shear_rate = "omega"
    linear = False

    @property
    def sigma(self) -> Expression:
        """The constant of the polynomial of second order, see Frame."""
        return CS2

    def structure(self) -> dict[str, Any]:
        """Properties that determine the kernel text, also the names of the rates that are 1."""
        return super().structure() | {"one": [n for n in self.numbers if getattr(self, n) == 1]}

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """`omega` from the viscosity, and the rates other than 1."""
        others = {name: getattr(self, name) for name in self.numbers if getattr(self, name) != 1}
        return {"omega": omega_from_viscosity(nu, lattice.cs2)} | others

    def collided(self, cell: CellState, rates: Rates, let: Let) -> list[Expression]:
        """Add half of the force term, relax, add the other half; return Q populations."""
        rates = {**dict.fromkeys(self.numbers, Fraction(1)), **rates}
        frame, source = Frame(cell, let, self.sigma), cell.source
        if source is None:
            return self.relaxed_populations(frame, cell.f, rates)
        f = [a + F / 2 for a, F in zip(cell.f, source, strict=True)]
        left = self.relaxed_populations(frame, f, rates)
        return [a + F / 2 for a, F in zip(left, source, strict=True)]

    def relaxed_populations(self, frame: "Frame", f: Populations, rates: Rates) -> list[Expression]:
        """Return Q populations from Q populations f with momentum rho u; no force acts."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Frame:
    """The transform k_n = sum_i f_i prod_a H_n_a(c_ia - u_a), n_a = 0, 1, 2, on D2Q9 and D3Q27.

    H_0 = 1, H_1(c) = c, H_2(c) = c^2 - sigma. sigma = 0 gives central moments, sigma = cs2 central
    Hermite moments. Populations f are deviations from r w_i with r = rho - density, and moments k
    are deviations from the moments of r w_i in a frame at rest. In this form small deviations keep
    their digits. `let` as in Collision.collide.
    [Geier et al. 2015, Comput. Math. Appl. 70, 507, appendix]
    """

    cell: CellState
    let: Let
    sigma: Expression = CS2

    @property
    def lattice(self) -> Lattice:
        """The lattice of the cell."""
        return self.cell.lattice

    @cached_property
    def rest(self) -> Expression:
        """The density r of the populations at rest, which f and k do not contain."""
        return self.let("rest", self.cell.rho - self.cell.density)

    @property
    def of_rest(self) -> tuple[Expression, ...]:
        """The moments of orders 0, 1 and 2 of the weights along an axis."""
        return 1, 0, CS2 - self.sigma

    def moments(self, f: Populations) -> dict[tuple[int, ...], Expression]:
        """The moments of Q populations, {(n_x, n_y, …): expression}."""
        values = dict(zip(self.lattice.c, f, strict=True))
        for axis in reversed(range(self.lattice.D)):
            done: dict[tuple[int, ...], Expression] = {}
            for before, after, rest in self._lines(axis):
                line = [values[*before, c, *after] for c in ALONG]
                names = [_name("k", before, n, after) for n in ("both", "odd", 0, 1, 2)]
                k = self._to_moments(line, self.cell.u[axis], rest, names)
                done |= {(*before, n, *after): k[n] for n in range(3)}
            values = done
        return values

    def populations(self, moments: Moments) -> list[Expression]:
        """The Q populations with given moments; moments that are not given are zero."""
        values = {n: moments.get(n, 0) for n in product(range(3), repeat=self.lattice.D)}
        for axis in range(self.lattice.D):
            done: dict[tuple[int, ...], Expression] = {}
            for before, after, rest in self._lines(axis):
                line = [values[*before, n, *after] for n in range(3)]
                names = [_name("s", before, n, after) for n in ("both", "odd", -1, 0, 1)]
                f = self._to_populations(line, self.cell.u[axis], rest, names)
                done |= {(*before, c, *after): f[1 + c] for c in ALONG}
            values = done
        return [values[c] for c in self.lattice.c]

    def named(self, name: str, value: Expression) -> Expression:
        """Define a named value in the kernel text; return its symbol, or the number zero."""
        return value if value == 0 else self.let(name, value)

    def _lines(self, axis: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Expression]]:
        """Yield the lines of three values along an axis in the array of populations and moments.

        Each line is (before, after, rest). `before` holds the velocity components along the
        previous axes, `after` the orders along the following axes, and `rest` the moment of the
        populations at rest on the line.
        """
        for before in product(ALONG, repeat=axis):
            for after in product(range(3), repeat=self.lattice.D - 1 - axis):
                weight = prod(WEIGHT[c] for c in before) * prod(self.of_rest[n] for n in after)
                yield before, after, weight * self.rest if weight else 0

    def _to_moments(
        self, f: Sequence[Expression], u: Expression, rest: Expression, names: Sequence[str]
    ) -> list[Expression]:
        """Return the moments k_0, k_1, k_2 of the three populations of a line."""
        both = self.named(names[0], f[0] + f[2])
        odd = self.named(names[1], f[2] - f[0])
        k_0 = self.named(names[2], both + f[1])
        k_1 = self.named(names[3], odd - u * (k_0 + rest))
        k_2 = both - self.sigma * k_0 - u * (odd + k_1)
        return [k_0, k_1, self.named(names[4], k_2)]

    def _to_populations(
        self, k: Sequence[Expression], u: Expression, rest: Expression, names: Sequence[str]
    ) -> list[Expression]:
        """Return the three populations of a line; the inverse of `_to_moments`."""
        odd = self.named(names[1], k[1] + u * (k[0] + rest))
        both = self.named(names[0], k[2] + self.sigma * k[0] + u * (k[1] + odd))
        low, here, high = (both - odd) / 2, k[0] - both, (both + odd) / 2
        return [self.named(*pair) for pair in zip(names[2:], (low, here, high), strict=True)]


def label(prefix: str, n: Iterable[int | str]) -> str:
    """A name with the orders of a moment: label("k", (2, 1, 0)) is k_2_1_0."""
    return "_".join([prefix, *map(str, n)])


def _name(prefix: str, before: tuple[int, ...], key: int | str, after: tuple[int, ...]) -> str:
    """Name of a value on a line: in k_m_both_2, m means c_x = -1 and 2 means n_z = 2."""
    letters = ["mop"[1 + c] for c in before]
    own = "mop"[1 + key] if prefix == "s" and key in ALONG else key
    return label(prefix, [*letters, own, *after])
