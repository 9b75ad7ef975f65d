"""Relaxation of the second moments; a recursion computes the higher moments from them."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import prod
from typing import Any

from mpilbm.core.formulas.trees import unnamed
from mpilbm.core.registry import make, register
from mpilbm.model.expressions import Expression, Let, Moments, Populations, Rates, Vector
from mpilbm.physics.algebra import dot, one_way, pairs
from mpilbm.physics.collisions import CellState, Collision
from mpilbm.physics.collisions.central_moment_transform import WEIGHT, Frame, InFrame, label
from mpilbm.physics.collisions.trace_rate import TraceRate
from mpilbm.physics.equilibria.hermite import squares_and_others, third_order
from mpilbm.physics.lattices import AXES, Lattice


@register("collisions", "recursive_regularized")
class RecursiveRegularized(TraceRate, InFrame):
    """f* = feq + (1 - omega) w_i sum_n H^(n)(c_i) : A^(n) / (n! cs2^n), n from 2 on.

    A^(2) = sum_j H^(2)(c_j) (f_j - feq_j). The higher A^(n) follow by recursion, such as A_bba =
    u_a A_bb + 2 u_b A_ab: they are those for which all central Hermite moments above the second
    order are zero. nu = cs2 (1/omega - 1/2). More stable than `regularized`, and the viscosity
    depends less on the velocity. D2Q9 (n up to 4), D3Q27 (n up to 6), D3Q19 (n up to 3, in the
    combinations that the lattice represents); equilibrium `hermite`. [Malaspinas 2015,
    arXiv:1505.06900; Coreixas et al. 2017, Phys. Rev. E 96, 033306]
    """

    lattices = ("D2Q9", "D3Q19", "D3Q27")
    recursive = True

    def relaxed_populations(self, frame: Frame, f: Populations, rates: Rates) -> list[Expression]:
        """Return Q populations: by central moments on D2Q9 and D3Q27, by the sum on D3Q19."""
        lattice = frame.lattice
        if lattice.Q < 3**lattice.D:
            return self._to_third_order(frame, f, rates)
        second = {n: k for n, k in frame.moments(f).items() if sum(n) == 2}
        kept = self.kept(second, [n for n in second if max(n) == 2], rates)
        left = {n: frame.named(label("kept", n), value) for n, value in kept.items()}
        return frame.populations({(0,) * lattice.D: frame.cell.density} | left)

    def _to_third_order(self, frame: Frame, f: Populations, rates: Rates) -> list[Expression]:
        """The sum over n = 2 and 3."""
        lattice, rho, u, let, A = frame.lattice, frame.cell.rho, frame.cell.u, frame.let, {}
        for a, b in pairs(lattice.D):
            rest = lattice.cs2 * frame.cell.density if a == b else 0
            A[a, b] = dot([c[a] * c[b] for c in lattice.c], f) - rest - rho * u[a] * u[b]
        for (a, b), value in self.kept(A, [(a, a) for a in range(lattice.D)], rates).items():
            A[a, b] = A[b, a] = let(label("kept", (a, b)), value)
        thirds = {
            (b, a): let(label("kept", (b, b, a)), u[a] * A[b, b] + 2 * u[b] * A[a, b])
            for b, a in squares_and_others(lattice)
        }
        left, cubes = [], third_order(lattice, thirds)
        feq = self.feq(lattice, frame.cell.density, rho, u)
        for feq_i, w, c, cube in zip(feq, lattice.w, lattice.c, cubes, strict=True):
            Q = [c[a] * c[b] - (lattice.cs2 if a == b else 0) for a, b in A]
            left.append(feq_i + w * dot(Q, A.values()) / (2 * lattice.cs2**2) + cube)
        return left

    def rebuilt(
        self,
        lattice: Lattice,
        density: Expression,
        rho: Expression,
        u: Vector,
        A: Sequence[Expression],
        only: Iterable[int] | None = None,
        let: Let = unnamed,
    ) -> list[Expression]:
        """Those whose central Hermite moments above the second order are zero.

        With a force the moments of f* above the second order differ from these; see the manual,
        layout `moments`.
        """
        if lattice.Q < 3**lattice.D:
            return _from_third(lattice, density, rho, u, A, only, let)
        orders = [tuple(axes.count(a) for a in range(lattice.D)) for axes in pairs(lattice.D)]
        second = dict(zip(orders, A, strict=True))
        cell = CellState(lattice, (), density, rho, u, None)
        if only is None:
            return Frame(cell, let).populations({(0,) * lattice.D: density} | second)
        return [_population(cell, second, i) for i in only]

    def equal_to(self, lattice: Lattice) -> Collision:
        """`central_moment`, if the trace relaxes at the rate 1 and the lattice has all orders."""
        if self.omega_bulk != 1 or lattice.Q < 3**lattice.D:
            return self
        return make("collisions", "central_moment").model_copy(update={"closure": self.closure})

    def up_to_second(self) -> Collision:
        """`regularized`: the second moments relax at the same rates."""
        table: dict[str, Any] = {"name": "regularized", "equilibrium": {"name": "compressible"}}
        table |= {"omega_bulk": self.omega_bulk}
        return make("collisions", table).model_copy(update={"closure": self.closure})


def rebuilt_by_recursion(
    collision: Collision,
    lattice: Lattice,
    density: Expression,
    rho: Expression,
    u: Vector,
    A: Sequence[Expression],
    let: Let,
) -> list[Expression]:
    """Return populations from their moments up to the second order, for any collision.

    Those of `Collision.rebuilt`, if the higher moments are zero or follow from these; otherwise the
    equilibrium of the collision, and what A adds to the populations of `recursive_regularized`, on
    lattices on which that is defined. Parameters as of `rebuilt`.
    """
    known = lattice.name in RecursiveRegularized.lattices
    if collision.recursive or collision.second_order or not known:
        return collision.rebuilt(lattice, density, rho, u, A, let=let)
    recursive = make("collisions", "recursive_regularized")
    found = recursive.rebuilt(lattice, density, rho, u, A, let=let)
    if type(collision.equilibrium) is type(recursive.equilibrium):
        return found
    alone = recursive.rebuilt(lattice, density, rho, u, [0] * len(A))
    feq = collision.feq(lattice, density, rho, u)
    return [f + more - less for f, more, less in zip(feq, found, alone, strict=True)]


def _population(cell: CellState, second: Moments, i: int) -> Expression:
    """One population with given central Hermite moments of orders 0 and 2, on D2Q9 and D3Q27.

        f_i = w_i density + rho (P_0 - w_i) + sum_n k_n P_n,    P_n = prod_a p_n_a(c_ia, u_a)

    `second`: the moments k_n by their orders n. p_0, p_1 and p_2 invert the transform of Frame
    along an axis. This takes less arithmetic than Frame.populations for a single population.
    """
    w, along = cell.lattice.w[i], []
    excess: Expression = 0  # P_0 / w_i - 1, without loss of small digits
    for c, u in zip(cell.lattice.c[i], cell.u, strict=True):
        growth = 3 * c * u + Fraction(9 * c**2 - 3, 2) * u**2
        excess = growth + (1 + growth) * excess
        first, square = (u + Fraction(c, 2), Fraction(1, 2)) if c else (-2 * u, -1)
        along.append((WEIGHT[c] * (1 + growth), first, square))
    parts = (k * prod(p[m] for p, m in zip(along, n, strict=True)) for n, k in second.items())
    return w * cell.density + w * cell.rho * excess + sum(parts)


def _from_third(
    lattice: Lattice,
    density: Expression,
    rho: Expression,
    u: Vector,
    A: Sequence[Expression],
    only: Iterable[int] | None,
    let: Let,
) -> list[Expression]:
    """Populations on D3Q19 with given moments up to the third order; parameters as of `rebuilt`.

    f_i = e_i + o_i, of which e_i is even in c_i and has the Hermite moments of orders 0 and 2, with
    m = A + rho u u. The odd o_i have the momentum j and the third moments M_bba = sum_i c_ib^2 c_ia
    f_i = cs2 j_a + u_a m_bb + 2 u_b A_ab:

        e_0 = b / 3, with b = density - tr m / (2 cs2)
        e_i = b / 18 + m_aa / 4,    o_i = c_ia (j_a - M_bba - M_cca) / 2    for c_i along the axis a
        e_i = b / 36 + (m_aa + m_bb) / 8 + c_ia c_ib m_ab / 4,
        o_i = (c_ia M_bba + c_ib M_aab) / 4                     for c_i along a diagonal of a and b
    """
    D, cs2 = lattice.D, lattice.cs2
    j = [let(f"j_{axis}", rho * u_a) for axis, u_a in zip(AXES, u, strict=False)]
    numbered = dict(zip(pairs(D), A, strict=True))
    m = {
        (a, b): let(f"m_{AXES[a]}{AXES[b]}", value + j[a] * u[b])
        for (a, b), value in numbered.items()
    }
    thirds = {}
    for b, a in squares_and_others(lattice):
        mixed = numbered[min(a, b), max(a, b)]
        third = cs2 * j[a] + u[a] * m[b, b] + 2 * u[b] * mixed
        thirds[b, a] = let(f"m_{2 * AXES[b]}{AXES[a]}", third)
    base = let("base", density - sum(m[a, a] for a in range(D)) / (2 * cs2))
    planes = {
        (a, b): let(f"even_{AXES[a]}{AXES[b]}", base / 36 + (m[a, a] + m[b, b]) / 8)
        for a, b in pairs(D)
        if a != b
    }
    parts: dict[tuple[int, ...], tuple[Expression, Expression]] = {}
    found = []
    for i in range(lattice.Q) if only is None else only:
        sign, c = one_way(lattice.c[i])
        if c not in parts:
            along, odd = [a for a in range(D) if c[a]], 0
            if len(along) == 0:
                even = base / 3
            elif len(along) == 1:
                (a,) = along
                even = base / 18 + m[a, a] / 4
                odd = c[a] * (j[a] - sum(thirds[b, a] for b in range(D) if b != a)) / 2
            else:
                a, b = along
                even = planes[a, b] + c[a] * c[b] * m[a, b] / 4
                odd = (c[a] * thirds[b, a] + c[b] * thirds[a, b]) / 4
            name = "".join("mop"[1 + c_a] for c_a in c)
            parts[c] = let(f"even_{name}", even), odd and let(f"odd_{name}", odd)
        even, odd = parts[c]
        found.append(even + sign * odd)
    return found
