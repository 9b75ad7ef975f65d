"""The second-order equilibrium of a fluid with nearly constant density."""

from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.equilibria.compressible import Compressible
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import register


@register("equilibria", "incompressible")
class Incompressible(Equilibrium):
    """feq_i = w_i (rho + rho_0 (c_i.u / cs2 + (c_i.u)^2 / (2 cs4) - u.u / (2 cs2))), rho_0 = 1.

    The momentum is rho_0 u, so a steady flow has div u = 0 without an error of the order of rho -
    1; rho is the pressure over cs2. For steady flows and comparisons with solutions of the
    incompressible equations; it does not describe sound correctly. On D3Q13 with `mrt` it is the
    model of paper 1. [He & Luo 1997, J. Stat. Phys. 88, 927]
    """

    any_unit = False
    second_order = True

    def feq(self, lattice: Lattice, density, rho, u) -> list:
        """The compressible expressions with rho_0 in place of rho, except in the pressure."""
        return Compressible().feq(lattice, density, 1, u)

    def velocity(self, momentum, rho) -> list:
        """Momentum over rho_0 = 1."""
        return list(momentum)
