"""Relaxation of all populations with one rate."""

from mpilbm.physics.collisions import Collision
from mpilbm.registry import register


@register("collisions", "bgk")
class BGK(Collision):
    """f* = f - omega (f - feq), nu = cs2 (1/omega - 1/2). [Qian et al. 1992].

    All lattices of isotropy 4. The simplest; `trt` places half-way walls better.
    """

    shear_rate = "omega"

    def rates(self, nu, lattice):
        """`omega` from the viscosity."""
        return {"omega": 1 / (nu / float(lattice.cs2) + 0.5)}

    def relax(self, lattice, d, omega):
        """omega d_i."""
        return [omega * d_i for d_i in d]
