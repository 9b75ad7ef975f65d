"""Collision operators: the relaxation of the populations of one cell.

To add an operator, write one file with a class derived from `Collision` and
`@register("collisions", name)` that defines `rates` and `relax`, or `collide` where it is not
linear.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar

from pydantic import Field

from mpilbm.core.formulas.trees import unnamed
from mpilbm.core.registry import Choice, Parameters, find, make, names
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Let, Populations, Rates, Vector
from mpilbm.physics.algebra import pairs, populations
from mpilbm.physics.closures import Closure
from mpilbm.physics.equilibria import Equilibrium
from mpilbm.physics.lattices import Lattice, undefined


@dataclass(frozen=True, eq=False)
class CellState:
    """A cell before its collision.

    f        Q incoming populations
    density  sum of the stored populations, see Equilibrium
    rho, u   density and velocity (D expressions) of the collision
    source   Q expressions F_i of the force term, or None
    """

    lattice: Lattice
    f: Populations
    density: Expression
    rho: Expression
    u: Vector
    source: Populations | None


class Collision(Parameters):
    """A collision f* = f - R(f - feq) + F - R(F)/2 with a linear relaxation R.

    f are the incoming populations, f* the post-collision populations and F the force term. A
    subclass defines `rates` (relaxation rates, from the viscosity) and `relax` (the expressions
    R(d), in its own basis). With d = f - feq + F/2 the collision is f* = f + F - R(d), which
    includes the factor 1 - R/2 of the force of Guo et al. (2002). An operator of another form
    overrides `collide`, or `collided` with the same data, and sets `linear = False`.
    """

    equilibrium: Annotated[Any, Choice("equilibria")] = Field(
        None, description="equilibrium distribution; none: the default of this collision"
    )
    closure: Annotated[Closure | None, Choice("closures")] = Field(
        None, description="subgrid model or non-Newtonian fluid; none: a constant viscosity"
    )

    shear_rate: ClassVar[str | None] = None  # rate that a closure changes; None: no closures
    bulk_rate: ClassVar[str | None] = None  # field that damps sound; see sound_viscosity
    speed: ClassVar[float] = 1.0  # measured part of the speed that memory traffic allows on GPUs
    numbers: ClassVar[tuple[str, ...]] = ()  # fields that are arguments of the kernel
    second_order: ClassVar[bool] = False  # f* has no moments above the second order
    recursive: ClassVar[bool] = False  # `rebuilt` computes those that it has
    keeps_walls: ClassVar[bool] = False  # no viscosity moves half-way walls in creeping flow
    needs_isotropy: ClassVar[int] = 4
    linear: ClassVar[bool] = True  # whether f* = f + F - R(d) with R of `relax`
    lattices: ClassVar[tuple[str, ...] | None] = None  # allowed lattices; None: all
    equilibria: ClassVar[tuple[str, ...] | None] = None  # allowed equilibria, the default first
    forces: ClassVar[tuple[str, ...] | None] = None  # allowed forcing schemes; None: all

    @property
    def fastest_wall(self) -> float:
        """The speed along itself, in viscosities, above which a half-way wall is unstable.

        In fluid that moves with the wall a wave of two cells then grows. The limits are of linear
        analysis on D2Q9 and D3Q19, see tests/laws/test_outflow_walls.py.
        """
        return inf

    def equal_to(self, lattice: Lattice) -> "Collision":
        """A collision with other data that computes the same on a lattice; itself if none does."""
        return self

    def model_post_init(self, _: Any) -> None:
        """Use the default equilibrium if the case names none."""
        if self.equilibrium is None:
            usual = self.equilibria[0] if self.equilibria else "compressible"
            object.__setattr__(self, "equilibrium", make("equilibria", usual))

    def structure(self) -> dict[str, Any]:
        """The properties that determine the kernel text: all fields except kernel arguments."""
        fields = self.model_dump(exclude={*self.numbers, "equilibrium", "closure"})
        closure = self.closure and self.closure.name
        return fields | {"equilibrium": self.equilibrium.model_dump(), "closure": closure}

    def problems(self, case: Case) -> list[str]:
        """Errors: a lattice, equilibrium, closure or force that the operator does not support."""
        if self.closure and (problems := self._refused_closure(self.closure, case.lattice)):
            return problems
        if problems := undefined(self.name, case.lattice, self.lattices):
            return problems
        if self.equilibria and self.equilibrium.name not in self.equilibria:
            return [
                f"equilibrium: found '{self.equilibrium.name}', but {self.name} does not "
                f"support it; allowed: {', '.join(self.equilibria)}"
            ]
        found = case.lattice.isotropy
        if found >= self.needs_isotropy:
            return self._refused_forces(case)
        return [
            f"{self.name} needs a lattice isotropic to order {self.needs_isotropy}; "
            f"{case.lattice.name} is isotropic to order {found}; "
            "use another lattice"
        ]

    def _refused_closure(self, closure: Closure, lattice: Lattice) -> list[str]:
        """An error if the collision or the lattice does not support the closure."""
        found, D = f"closure: found '{closure.name}', but ", lattice.D
        if not self.shear_rate:
            allowed = [n for n in names("collisions") if find("collisions", n).shear_rate]
            return [
                f"{found}{self.name} supports no closure; collisions that support closures: "
                f"{', '.join(allowed)}"
            ]
        if lattice.isotropy < 4:
            lattices = [n for n in names("lattices") if find("lattices", n)().isotropy >= 4]
            return [
                f"{found}the shear stress relaxes at two rates on {lattice.name}, and a closure "
                f"computes one; lattices that support closures: {', '.join(lattices)}"
            ]
        if D not in closure.dimensions:
            allowed = [n for n in names("closures") if D in find("closures", n).dimensions]
            return [
                f"{found}it has no effect in {D}D; closures in {D}D: {', '.join(allowed)}; or use "
                "a lattice of another dimension"
            ]
        return []

    def _refused_forces(self, case: Case) -> list[str]:
        """An error for each force of this collision that is not in `forces`."""
        forces = (fluid.force for fluid in case.fluids if fluid.collision is self)
        return [
            f"{self.name} does not support the force '{force.name}'; "
            f"allowed: {', '.join(self.forces)}"
            for force in forces
            if self.forces and force and force.name not in self.forces
        ]

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """Relaxation rates by name; `nu` is the kinematic viscosity in lattice units."""
        raise NotImplementedError

    def arguments(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """The numeric arguments of the kernel by name: the rates and the numbers of the closure."""
        closed = self.closure.arguments(lattice) if self.closure else {}
        return self.rates(nu, lattice) | closed

    def local(self, lattice: Lattice) -> bool:
        """Whether the viscosity may differ from cell to cell: all shear stresses have one rate."""
        return self.shear_rate is not None and lattice.isotropy >= 4

    def local_rates(self, rates: Rates, omega: Expression) -> dict[str, Expression]:
        """Return the rates in a cell whose shear stress relaxes at `omega`.

        `rates` are the rates for the viscosity of the fluid, as given in the case.
        """
        assert self.shear_rate, "`problems` refuses a closure of a collision without this rate"
        return {**rates, self.shear_rate: omega}

    def stress_rate(self, rates: Rates) -> Expression:
        """The rate 1 / tau at which the shear stress relaxes, from the rates by name."""
        if self.shear_rate is None:
            raise NotImplementedError(f"{self.name}: stress_rate")
        return rates[self.shear_rate]

    def sound_viscosity(self, nu: float, lattice: Lattice) -> float:
        """nu_L = 2 (D - 1) nu / D + 2 nu_b / D: a wave of sound decays as exp(-nu_L k^2 t / 2).

        nu_b = cs2 (1 / `bulk_rate` - 1/2) is that of the trace of the second moments; it is nu if
        the field of this name is None.
        """
        assert self.bulk_rate, "only for collisions with this rate"
        rate = getattr(self, self.bulk_rate)
        bulk = nu if rate is None else float(lattice.cs2) * (1 / rate - 0.5)
        return 2 * ((lattice.D - 1) * nu + bulk) / lattice.D

    def relax(self, lattice: Lattice, d: Populations, *_: Any, **rates: Any) -> list[Expression]:
        """Return R(d), Q expressions, from the Q deviations d = f - feq + F/2."""
        raise NotImplementedError

    def feq(
        self, lattice: Lattice, density: Expression, rho: Expression, u: Vector
    ) -> list[Expression]:
        """The equilibrium to which this collision relaxes, Q expressions."""
        equilibrium: Equilibrium = self.equilibrium
        return equilibrium.feq(lattice, density, rho, u)

    def velocity(self, momentum: Vector, rho: Expression) -> list[Expression]:
        """The velocity u, D expressions, from the momentum per volume."""
        return self.equilibrium.velocity(momentum, rho)

    def rebuilt(
        self,
        lattice: Lattice,
        density: Expression,
        rho: Expression,
        u: Vector,
        A: Sequence[Expression],
        only: Iterable[int] | None = None,
        let: Let = unnamed,
    ) -> list[Expression]:
        """Return populations f* from their own moments, without a force.

        `u` = sum_i c_i f_i / rho (D expressions), `A` the second Hermite moments less rho u u, in
        the order of `pairs`. Returns the populations of all directions, or of those in `only`;
        `let` as in `collide`. All higher moments are zero here, as `second_order` requires; a
        collision with `recursive = True` overrides this method.
        """
        momentum = [rho * u_a for u_a in u]
        of_axes = zip(A, pairs(lattice.D), strict=True)
        second = [value + momentum[a] * u[b] for value, (a, b) in of_axes]
        return populations(lattice, density, momentum, second, only)

    def up_to_second(self) -> "Collision":
        """A collision whose f* has the same moments up to the second order, by less arithmetic."""
        return self

    def collide(
        self,
        lattice: Lattice,
        f: Populations,
        density: Expression,
        rho: Expression,
        u: Vector,
        source: Populations | None,
        rates: Rates,
        let: Let = unnamed,
    ) -> list[Expression]:
        """Return the Q post-collision populations f* from the Q populations f.

        The first six parameters are those of CellState; `rates` are the relaxation rates by name.
        `let(name, expression)` defines a named value in the kernel text and returns its symbol; it
        keeps long chains of equations short.
        """
        return self.collided(CellState(lattice, f, density, rho, u, source), rates, let)

    def collided(self, cell: CellState, rates: Rates, let: Let) -> list[Expression]:
        """Return f* of a cell, f + F - R(f - feq + F/2); parameters as of `collide`."""
        feq = self.feq(cell.lattice, cell.density, cell.rho, cell.u)
        d = [a - b for a, b in zip(cell.f, feq, strict=True)]
        if cell.source is None:
            relaxed = self.relax(cell.lattice, d, **rates)
            return [a - b for a, b in zip(cell.f, relaxed, strict=True)]
        d = [a + F / 2 for a, F in zip(d, cell.source, strict=True)]
        relaxed = self.relax(cell.lattice, d, **rates)
        return [a + F - b for a, F, b in zip(cell.f, cell.source, relaxed, strict=True)]
