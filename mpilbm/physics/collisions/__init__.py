"""Collision operators: what happens to the populations of one cell."""

from typing import Any, ClassVar

from pydantic import Field

from mpilbm.choice import choice
from mpilbm.formulas.functions import unnamed
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.registry import Parameters, find, make, names


class Collision(Parameters):
    """A collision f* = f - R(f - feq) + F - R(F)/2 with a linear relaxation R.

    A subclass gives `rates` (numbers of a kernel, from the viscosity) and `relax` (the expressions
    R(d), in its own basis). With d = f - feq + F/2 the force of Guo et al. (2002),
    M^-1 (I - S/2) M F, and the collision are one relaxation: f* = f + F - R(d). An operator that
    is not of this form overrides `collide`.
    """

    equilibrium: choice("equilibria") = Field(
        None, description="equilibrium distribution; none: the usual one of this collision"
    )
    closure: choice("closures") = Field(None, description="subgrid model; none: direct simulation")

    shear_rate: ClassVar[str | None] = None  # the rate that a closure makes local; None: takes none
    numbers: ClassVar[tuple[str, ...]] = ()
    second_order: ClassVar[bool] = False  # what leaves the cell has no moments beyond the second
    needs_isotropy: ClassVar[int] = 4
    linear: ClassVar[bool] = True  # f* = f + F - R(d) with `relax`; False: `collide` does otherwise
    lattices: ClassVar[tuple[str, ...] | None] = None  # on which it is defined; None: all
    equilibria: ClassVar[tuple[str, ...] | None] = None  # that it can have, first the usual one
    forces: ClassVar[tuple[str, ...] | None] = None  # that it takes; None: all

    def model_post_init(self, _: Any) -> None:
        """Take the usual equilibrium where none is named."""
        if self.equilibrium is None:
            usual = self.equilibria[0] if self.equilibria else "compressible"
            object.__setattr__(self, "equilibrium", make("equilibria", usual))

    def structure(self) -> dict:
        """What shapes the kernel text: all fields but those that reach kernels as arguments."""
        fields = self.model_dump(exclude={*self.numbers, "equilibrium", "closure"})
        parts = {"equilibrium": self.equilibrium.model_dump()}
        parts["closure"] = self.closure and self.closure.name
        return fields | parts

    def problems(self, case) -> list[str]:
        """Refuse lattices and equilibria on which it is not defined; a closure without a rate."""
        if self.closure and not self.shear_rate:
            allowed = [n for n in names("collisions") if find("collisions", n).shear_rate]
            return [f"closure: {self.name} has no rate that '{self.closure.name}' could change; "
                    f"allowed with a closure: {', '.join(allowed)}"]  # fmt: skip
        if self.closure and case.lattice.isotropy < 4:
            lattices = [n for n in names("lattices") if find("lattices", n)().isotropy >= 4]
            return [f"closure: {case.lattice.name} has two rates for shear, a closure gives one; "
                    f"allowed with a closure: {', '.join(lattices)}"]  # fmt: skip
        if self.lattices and case.lattice.name not in self.lattices:
            return [f"{self.name} is not defined on {case.lattice.name}; "
                    f"allowed: {', '.join(self.lattices)}"]  # fmt: skip
        if self.equilibria and self.equilibrium.name not in self.equilibria:
            return [f"equilibrium: found '{self.equilibrium.name}', which {self.name} cannot have; "
                    f"allowed: {', '.join(self.equilibria)}"]  # fmt: skip
        found = case.lattice.isotropy
        if found >= self.needs_isotropy:
            return self._refused_forces(case)
        return [f"{self.name} needs a lattice isotropic to order {self.needs_isotropy}; "
                f"{case.lattice.name} is so to order {found}; choose another lattice"]  # fmt: skip

    def _refused_forces(self, case) -> list[str]:
        """A sentence for a force beside this collision that it does not take."""
        forces = (fluid.force for fluid in case.fluids if fluid.collision is self)
        return [
            f"{self.name} takes no force '{force.name}'; allowed: {', '.join(self.forces)}"
            for force in forces
            if self.forces and force and force.name not in self.forces
        ]

    def rates(self, nu: float, lattice) -> dict[str, float]:
        """The kernel's relaxation rates by name, from the kinematic viscosity in lattice units."""
        raise NotImplementedError

    def arguments(self, nu: float, lattice) -> dict[str, float]:
        """All numbers of the kernel: the rates, and those of the closure."""
        closed = self.closure.arguments(lattice) if self.closure else {}
        return self.rates(nu, lattice) | closed

    def local_rates(self, rates: dict, omega) -> dict:
        """The rates of a cell whose shear stress relaxes at omega; `rates` are the fluid's."""
        return rates | {self.shear_rate: omega}

    def relax(self, lattice, d, **rates) -> list:
        """Q expressions R(d): what a collision takes off the deviations d (Q expressions)."""
        raise NotImplementedError

    def feq(self, lattice, density, rho, u) -> list:
        """The equilibrium towards which this collision relaxes (see Equilibrium)."""
        equilibrium: Equilibrium = self.equilibrium
        return equilibrium.feq(lattice, density, rho, u)

    def velocity(self, momentum, rho) -> list:
        """D expressions u from the momentum per volume, as the equilibrium has it."""
        return self.equilibrium.velocity(momentum, rho)

    def collide(self, lattice, f, density, rho, u, source, rates, let=unnamed) -> list:
        """Q expressions f* from f (Q), the force term F_i (Q, or None) and the rates by name.

        `let(name, expression)` gives an intermediate value a name in the kernel text and returns
        its symbol; long chains of equations stay as short as on paper.
        """
        feq = self.feq(lattice, density, rho, u)
        if source is None:
            relaxed = self.relax(lattice, [a - b for a, b in zip(f, feq, strict=True)], **rates)
            return [a - b for a, b in zip(f, relaxed, strict=True)]
        d = [a - b + F / 2 for a, b, F in zip(f, feq, source, strict=True)]
        relaxed = self.relax(lattice, d, **rates)
        return [a + F - b for a, F, b in zip(f, source, relaxed, strict=True)]
