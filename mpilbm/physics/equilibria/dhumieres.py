"""The equilibrium moments for which D3Q19 with multiple relaxation times is most stable."""

from fractions import Fraction

from mpilbm.physics.algebra import dot
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.lattices.basis import basis
from mpilbm.registry import register


@register("equilibria", "dhumieres")
class DHumieres(Equilibrium):
    """feq = M^-1 m, m of d'Humières' D3Q19 model with w_eps = w_xx = 0, w_eps,j = -475/63.

    e = -11 rho + 19 j.j, eps = -475/63 j.j, q = -2/3 j, p_ab that of j_a j_b, pi = m = 0, with j =
    rho_0 u, rho_0 = 1. At rest the populations are rho times 4/21, 13/126 and 1/63, which are not
    the weights of the lattice. D3Q19 only; for the collision `mrt`. [d'Humières et al. 2002, Phil.
    Trans. R. Soc. A 360, 437; paper: Obrecht et al. 2013, (6)-(13)]
    """

    lattices = ("D3Q19",)
    any_unit = False

    def feq(self, lattice: Lattice, density, rho, u) -> list:
        """Q expressions from the moments by name, see lattices/basis.py."""
        x, y, z = u
        jj = dot(u, u)
        m = {
            "rho": density, "e": -11 * density + 19 * jj, "eps": -Fraction(475, 63) * jj,
            "j_x": x, "j_y": y, "j_z": z,
            "q_x": -Fraction(2, 3) * x, "q_y": -Fraction(2, 3) * y, "q_z": -Fraction(2, 3) * z,
            "p_xx": 3 * x**2 - jj, "p_ww": y**2 - z**2,
            "p_xy": x * y, "p_yz": y * z, "p_zx": z * x,
        }  # fmt: skip
        return basis(lattice.c).populations(m)

    def velocity(self, momentum, rho) -> list:
        """Momentum over rho_0 = 1."""
        return list(momentum)
