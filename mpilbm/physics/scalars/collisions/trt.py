"""Two relaxation rates of a scalar: the odd one gives the diffusivity."""

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Populations
from mpilbm.physics.algebra import by_parity
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.scalars.collisions import ScalarCollision

# At this tau - 1/2 a step of 1 in a flow overshoots by 0.025; below, by more (chapter validation).
OSCILLATES = 0.03


@register("scalar_collisions", "trt")
class ScalarTRT(ScalarCollision):
    """R(d)_i = omega_plus d_i^+ + omega_minus d_i^-, d_i^± = (d_i ± d_opp(i)) / 2.

    D = cs2 (1/omega_minus - 1/2), and `magic` = (1/omega_plus - 1/2) (1/omega_minus - 1/2). With
    1/4 the scheme is the most stable, at any diffusivity, but where D is small it oscillates behind
    sharp fronts; with 1/8 half-way walls with a given value lie exactly half-way for a parabolic
    profile; 1/6 removes the error of fourth order of diffusion, 1/12 that of third order of
    advection. Where tau - 1/2 is below 0.01, other values than 1/4 may be unstable.
    [Ginzburg 2005, Adv. Water Resour. 28, 1171; Ginzburg, d'Humières & Kuzmin 2010, J. Stat. Phys.
    139, 1090]
    """

    magic: float = Field(1 / 4, gt=0, description="(1/omega_plus - 1/2) (1/omega_minus - 1/2)")

    numbers = ("magic",)

    def rates(self, diffusivity: float, lattice: Lattice) -> dict[str, float]:
        """omega_minus from the diffusivity, omega_plus from the magic parameter."""
        odd = diffusivity / float(lattice.cs2)
        return {"omega_plus": 1 / (self.magic / odd + 0.5), "omega_minus": 1 / (odd + 0.5)}

    def caution(self, diffusivity: float, lattice: Lattice) -> str:
        """That values oscillate behind sharp fronts, where tau - 1/2 is small."""
        odd = diffusivity / float(lattice.cs2)
        if odd > OSCILLATES or self.magic <= odd:
            return ""
        small = f"tau - 1/2 is {odd:.2g}, below {OSCILLATES}"
        return f"trt oscillates behind sharp fronts, since {small}"

    def remedy(self, lattice: Lattice, periodic: bool) -> str:
        """A finer box or, without faces and bodies, bgk: next to an inlet it was unstable."""
        fix = "where fronts are sharp, use a finer box"
        if not periodic:
            return fix
        dense = "D2Q9" if lattice.D == 2 else "D3Q19"
        other = "" if lattice.name == dense else f' and lattice = "{dense}"'
        return f'{fix}, or set collision = {{name = "bgk"}}{other}'

    def relax(
        self, lattice: Lattice, d: Populations, omega_plus: Expression, omega_minus: Expression
    ) -> list[Expression]:
        """omega_plus d_i^+ + omega_minus d_i^-, from each pair of opposite directions."""
        return by_parity(lattice.opp, d, omega_plus, omega_minus)
