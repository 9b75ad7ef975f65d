"""One relaxation rate for all populations of a scalar."""

from mpilbm.core.registry import register
from mpilbm.core.units import omega_from_viscosity
from mpilbm.model.expressions import Expression, Populations
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.scalars.collisions import ScalarCollision


@register("scalar_collisions", "bgk")
class ScalarBGK(ScalarCollision):
    """R(d)_i = omega d_i, D = cs2 (1/omega - 1/2).

    The position of half-way walls depends on D. Where D is small it oscillates less than `trt`
    behind sharp fronts, least on D2Q9.
    """

    def rates(self, diffusivity: float, lattice: Lattice) -> dict[str, float]:
        """Omega from the diffusivity."""
        return {"omega": omega_from_viscosity(diffusivity, lattice.cs2)}

    def relax(self, lattice: Lattice, d: Populations, omega: Expression) -> list[Expression]:
        """Omega d_i."""
        return [omega * d_i for d_i in d]
