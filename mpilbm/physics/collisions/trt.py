"""Two relaxation rates: one for the even moments, one for the odd moments."""

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Populations, Rates
from mpilbm.physics.algebra import by_parity
from mpilbm.physics.collisions import Collision
from mpilbm.physics.lattices import Lattice


@register("collisions", "trt")
class TRT(Collision):
    """R(d)_i = omega_plus d_i^+ + omega_minus d_i^-, d_i^± = (d_i ± d_opp(i)) / 2.

    nu = cs2 (1/omega_plus - 1/2). The magic parameter `magic` = (1/omega_plus - 1/2)
    (1/omega_minus - 1/2) determines omega_minus. With 3/16 half-way walls of a Poiseuille flow lie
    exactly half-way; 1/4 is the most stable value. All lattices isotropic to order 4. Use it for
    well-resolved flows: it becomes unstable at lower grid Reynolds numbers u/nu than most other
    collisions, near bodies at 8 and more.
    [Ginzburg, Verhaeghe & d'Humières 2008, Commun. Comput. Phys. 3, 427]
    """

    magic: float = Field(3 / 16, gt=0, description="(1/omega_plus - 1/2) (1/omega_minus - 1/2)")

    shear_rate = "omega_plus"
    numbers = ("magic",)
    keeps_walls = True

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """omega_plus from the viscosity, omega_minus from the magic parameter."""
        even = nu / float(lattice.cs2)
        return {"omega_plus": 1 / (even + 0.5), "omega_minus": 1 / (self.magic / even + 0.5)}

    def local_rates(self, rates: Rates, omega: Expression) -> dict[str, Expression]:
        """omega_plus = omega, and omega_minus for the same magic parameter: walls stay half-way."""
        plus, minus = rates.values()
        magic, even = (2 - plus) * (2 - minus), 2 - omega  # 4 plus minus magic, 2 omega even
        return {
            "omega_plus": omega,
            "omega_minus": 2 * even * plus * minus / (omega * magic + even * plus * minus),
        }

    def relax(
        self, lattice: Lattice, d: Populations, omega_plus: Expression, omega_minus: Expression
    ) -> list[Expression]:
        """omega_plus d_i^+ + omega_minus d_i^-, from each pair of opposite directions."""
        return by_parity(lattice.opp, d, omega_plus, omega_minus)
