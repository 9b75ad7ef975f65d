"""Collisions of the populations of a scalar.

To add one, add a class derived from `ScalarCollision` with
`@register("scalar_collisions", name)` that defines `rates` and `relax`.
"""

from typing import Any, ClassVar

from pydantic import Field

from mpilbm.core.registry import Parameters, register
from mpilbm.core.units import omega_from_viscosity
from mpilbm.model.expressions import Expression, Populations
from mpilbm.physics.algebra import by_parity
from mpilbm.physics.lattices import Lattice


class ScalarCollision(Parameters):
    """A collision g* = g + S - R(g - geq(phi, u) + S/2) with a linear relaxation R.

    g are the incoming populations of a scalar, g* the outgoing ones; S_i = w_i S is the source,
    and phi = sum_i g_i + S/2. R conserves phi.
    """

    numbers: ClassVar[tuple[str, ...]] = ()  # fields that are arguments of the kernel

    def structure(self) -> dict[str, Any]:
        """The properties that determine the kernel text: all fields except kernel arguments."""
        return self.model_dump(exclude=set(self.numbers))

    def rates(self, diffusivity: float, lattice: Lattice) -> dict[str, float]:
        """Relaxation rates by name; `diffusivity` in lattice units."""
        raise NotImplementedError

    def caution(self, diffusivity: float, lattice: Lattice) -> str:
        """A sentence about values that may be inaccurate at this diffusivity; empty: none."""
        return ""

    def remedy(self, lattice: Lattice, periodic: bool) -> str:
        """Changes of the case that avoid what `caution` reports; empty: it contains them.

        `periodic`: whether the box has no faces and no bodies.
        """
        return ""

    def relax(self, lattice: Lattice, d: Populations, *_: Any, **rates: Any) -> list[Expression]:
        """Return R(d), Q expressions, from the Q deviations d = g - geq + S/2."""
        raise NotImplementedError


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
