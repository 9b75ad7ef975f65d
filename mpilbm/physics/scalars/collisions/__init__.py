"""Collisions of the populations of a scalar.

To add one, write one file with a class derived from `ScalarCollision` and
`@register("scalar_collisions", name)` that defines `rates` and `relax`.
"""

from typing import Any, ClassVar

from mpilbm.core.registry import Parameters
from mpilbm.model.expressions import Expression, Populations
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
