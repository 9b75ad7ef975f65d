"""Relaxation of all populations with one rate."""

from mpilbm.core.registry import register
from mpilbm.core.units import omega_from_viscosity
from mpilbm.model.expressions import Expression, Populations
from mpilbm.physics.collisions import Collision
from mpilbm.physics.lattices import Lattice


@register("collisions", "bgk")
class BGK(Collision):
    """f* = f - omega (f - feq), nu = cs2 (1/omega - 1/2). [Qian et al. 1992].

    The simplest operator; with `trt` the position of half-way walls is more accurate. All lattices
    that are isotropic to order 4.
    """

    shear_rate = "omega"

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """`omega` from the viscosity."""
        return {"omega": omega_from_viscosity(nu, lattice.cs2)}

    def relax(self, lattice: Lattice, d: Populations, omega: Expression) -> list[Expression]:
        """omega d_i."""
        return [omega * d_i for d_i in d]
