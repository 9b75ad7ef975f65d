"""The equilibrium of d'Humières' D3Q19 model with multiple relaxation times."""

from fractions import Fraction

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.lattices.basis import basis


@register("equilibria", "dhumieres")
class DHumieres(Equilibrium):
    """feq = M^-1 meq with the equilibrium moments meq of d'Humières' D3Q19 model.

        e = -11 rho + 19 j.j,   eps = -475/63 j.j,   q = -2/3 j,   pi = m = 0,
        p_xx = 3 j_x^2 - j.j,   p_ww = j_y^2 - j_z^2,   p_ab = j_a j_b (a != b)

    j = rho_0 u, rho_0 = 1; these are the parameters w_eps = w_xx = 0 and w_eps,j = -475/63. At rest
    the populations are rho times 4/21, 13/126 and 1/63, which are not the weights of the lattice.
    D3Q19 only; for the collision `mrt`. [d'Humières et al. 2002, Phil. Trans. R. Soc. A 360, 437;
    Obrecht et al. 2013, (6)-(13)]
    """

    lattices = ("D3Q19",)
    any_unit = False

    def feq(
        self, lattice: Lattice, density: Expression, rho: Expression, u: Vector
    ) -> list[Expression]:
        """Return Q expressions feq_i, from the moments named in lattices/basis.py."""
        x, y, z = u
        jj = dot(u, u)
        m = {"rho": density, "e": -11 * density + 19 * jj, "eps": -Fraction(475, 63) * jj}
        m |= {f"j_{axis}": v for axis, v in zip("xyz", u, strict=True)}
        m |= {f"q_{axis}": -Fraction(2, 3) * v for axis, v in zip("xyz", u, strict=True)}
        m |= {"p_xx": 3 * x**2 - jj, "p_ww": y**2 - z**2}
        m |= {"p_xy": x * y, "p_yz": y * z, "p_zx": z * x}
        return basis(lattice.c).populations(m)

    def velocity(self, momentum: Vector, rho: Expression) -> list[Expression]:
        """Return the momentum divided by rho_0 = 1."""
        return list(momentum)
