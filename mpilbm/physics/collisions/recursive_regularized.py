"""Relaxation of the second moments; a recursion computes the higher moments from them."""

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Populations, Rates
from mpilbm.physics.algebra import dot, pairs
from mpilbm.physics.collisions.central_moment_transform import Frame, InFrame, label
from mpilbm.physics.equilibria.hermite import squares_and_others, third_order


@register("collisions", "recursive_regularized")
class RecursiveRegularized(InFrame):
    """f* = feq + (1 - omega) w_i sum_n H^(n)(c_i) : A^(n) / (n! cs2^n), n from 2 on.

    A^(2) = sum_j H^(2)(c_j) (f_j - feq_j). The higher A^(n) follow by recursion, such as A_bba =
    u_a A_bb + 2 u_b A_ab: they are those for which all central Hermite moments above the second
    order are zero. nu = cs2 (1/omega - 1/2). More stable than `regularized`, and the viscosity
    depends less on the velocity. D2Q9 (n up to 4), D3Q27 (n up to 6), D3Q19 (n up to 3, in the
    combinations that the lattice represents); equilibrium `hermite`. [Malaspinas 2015,
    arXiv:1505.06900; Coreixas et al. 2017, Phys. Rev. E 96, 033306]
    """

    lattices = ("D2Q9", "D3Q19", "D3Q27")

    def relaxed_populations(self, frame: Frame, f: Populations, rates: Rates) -> list[Expression]:
        """Return Q populations: by central moments on D2Q9 and D3Q27, by the sum on D3Q19."""
        lattice, kept = frame.lattice, 1 - rates["omega"]
        if lattice.Q < 3**lattice.D:
            return self._to_third_order(frame, f, kept)
        second = {n: k for n, k in frame.moments(f).items() if sum(n) == 2}
        left = {n: frame.named(label("kept", n), kept * k) for n, k in second.items()}
        return frame.populations({(0,) * lattice.D: frame.cell.density} | left)

    def _to_third_order(self, frame: Frame, f: Populations, kept: Expression) -> list[Expression]:
        """The sum over n = 2 and 3, of which `kept` is the share that does not relax."""
        lattice, rho, u, let, A = frame.lattice, frame.cell.rho, frame.cell.u, frame.let, {}
        for a, b in pairs(lattice.D):
            rest = lattice.cs2 * frame.cell.density if a == b else 0
            second = dot([c[a] * c[b] for c in lattice.c], f) - rest - rho * u[a] * u[b]
            A[a, b] = A[b, a] = let(label("kept", (a, b)), kept * second)
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
