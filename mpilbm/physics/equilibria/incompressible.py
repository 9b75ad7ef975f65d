"""The second-order equilibrium of a fluid with nearly constant density."""

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.equilibria.compressible import Compressible
from mpilbm.physics.lattices import Lattice


@register("equilibria", "incompressible")
class Incompressible(Equilibrium):
    """feq_i = w_i (rho + rho_0 (c_i.u / cs2 + (c_i.u)^2 / (2 cs4) - u.u / (2 cs2))), rho_0 = 1.

    The momentum is rho_0 u, so div u = 0 in steady flow, without an error of the order of rho - 1.
    The pressure is cs2 rho. For steady flows and for comparison with solutions of the
    incompressible equations; sound is not described correctly. On D3Q13 with `mrt` it is the model
    of Tölke & Krafczyk 2008. [He & Luo 1997, J. Stat. Phys. 88, 927]
    """

    any_unit = False
    second_order = True

    def feq(
        self, lattice: Lattice, density: Expression, rho: Expression, u: Vector
    ) -> list[Expression]:
        """Return Q expressions: `compressible` with rho_0 in place of rho, except in `density`."""
        return Compressible().feq(lattice, density, 1, u)

    def velocity(self, momentum: Vector, rho: Expression) -> list[Expression]:
        """Return the momentum divided by rho_0 = 1."""
        return list(momentum)
