"""Base classes of conditions with a given velocity or density."""

from fractions import Fraction
from typing import Annotated, Self

from pydantic import Field, model_validator

from mpilbm.core.formulas.given_functions import is_reference
from mpilbm.core.formulas.values import Given, Value, is_file
from mpilbm.core.quantity import RHO
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression, Populations, Vector
from mpilbm.physics.boundaries import DENSITY, Driven, by_axis
from mpilbm.physics.boundaries.profile import Profile
from mpilbm.physics.boundaries.turbulence import Turbulence
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot

LAG = Fraction(1, 16)  # share of the velocity of the previous step at a face with a given density


def lagged(now: Expression, before: Expression) -> Expression:
    """(1 - a) now + a before, a = LAG: the velocity at a face with a given density, symbolic.

    Neither collisions nor half-way walls change the sum of (-1)^(x+t) rho u_x over a box, nor do
    faces at which the density is exact in every step and the velocity follows from the flow. A
    wave that alternates from cell to cell and from step to step then stays for ever, or grows if
    the flow feeds it. With the velocity of the previous step, which has the opposite sign in such a
    wave, it loses the share 4 a / (1 + a) at each reflection. In steady flow both are equal.
    """
    return (1 - LAG) * now + LAG * before


class Prescribed(Driven):
    """A boundary with a given velocity or density, which holds at the cell next to the face."""

    wall_at = "node"
    rho: Annotated[Value | None, RHO] = Field(None, description=DENSITY, examples=[1.0])
    profile: Profile | None = Field(
        None,
        description="factor of the velocity that rises with the height above ground, or with the "
        "distance from the wall of a pipe",
        examples=[{"name": "log", "reference": 100, "roughness": 0.05}],
    )
    turbulence: Turbulence | None = Field(
        None,
        description="fluctuations that are added to the velocity of an inlet",
        examples=[{"intensity": 0.05, "length": 10}],
    )

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        """Refuse both or neither of velocity and density."""
        if (self.velocity is None) == (self.rho is None):
            raise ValueError("needs either velocity or rho; give one of them")
        return self

    @model_validator(mode="after")
    def _shaped(self) -> Self:
        """The velocity with its profile."""
        if self.profile is None:
            return self
        given = self.velocity
        texts = [u for u in given or () if isinstance(u, str)]
        if not isinstance(given, tuple) or any(is_file(u) or is_reference(u) for u in texts):
            raise ValueError(
                "has a profile but no velocity of numbers and formulas; give the velocity at the "
                "reference height, or remove the profile"
            )
        axes, across = "xyz"[: len(given)], {face[0] for face in self.where}
        along = "".join(axis for axis in axes if axis not in across)
        if self.profile.centre is not None and len(self.profile.centre) != len(along):
            raise ValueError(
                f"has a profile with {counted(len(self.profile.centre), 'coordinate')} of the "
                f"centre; allowed: {len(along)}, along the face"
            )
        shaped = tuple(self.profile.times(u, along) for u in given)
        object.__setattr__(self, "velocity", shaped)
        return self

    def problems(self, case: Case) -> list[str]:
        """Errors of all boundaries, and a profile that cannot be at these faces."""
        wrong = self.profile.problem(case, self.where) if self.profile else ""
        return [f"profile.{wrong}"] if wrong else super().problems(case)

    def values(self) -> dict[str, Given]:
        """The components of the velocity and of its turbulence, or the density."""
        if self.velocity is not None:
            found = by_axis("velocity", self.present_velocity)
            if self.turbulence:
                found |= by_axis("turbulence", self.turbulence.components(self.ramp))
            return found
        assert self.rho is not None, "`_one_value` requires one of them"
        return {"rho": self.rho}

    def prescribed(self, cell: Cell) -> list[Expression]:
        """The velocity in a cell, with its turbulence; without a velocity [rho]."""
        if self.velocity is None:
            return [cell.values["rho"]]
        names = [(f"velocity_{axis}", f"turbulence_{axis}") for axis in "xyz"[: cell.lattice.D]]
        return [cell.values[mean] + cell.values.get(more, 0) for mean, more in names]


class OnSite(Prescribed):
    """A boundary that computes rho from a given velocity, or the velocity from a given rho.

    With the inward normal n, the populations with c . n > 0 are unknown. The other arriving
    populations give rho - rho u . n = sum_(c.n = 0) f + 2 sum_(c.n < 0) f. With a given density
    the velocity along the face is zero. [Zou & He 1997, Phys. Fluids 9, 1591]

    The normal velocity u_n (inwards) that follows from a given density is `lagged`. Therefore the
    known populations and this velocity require the given density in steady flow only; otherwise
    rho - rho LAG (u_n(t) - u_n(t-1)) / (1 - LAG), which is then the density with `zou_he`;
    `regularized` sets all populations of the cell, and its density is always the given one.
    """

    declares = Capabilities(normal=True)

    def macroscopic(self, cell: Cell) -> tuple[Expression, Expression, Vector]:
        """Return the stored density, rho and u (D expressions) of the cell."""
        n, given = cell.normal, self.prescribed(cell)
        along = [dot(c, n) for c in cell.lattice.c]
        known = sum((1 - s) * f for s, f in zip(along, cell.arrives, strict=True) if s <= 0)
        known = cell.let("known", known)
        if self.velocity is None:
            rho, density = given[0], cell.stored(given[0])
            momentum = [v * (density - known) for v in n]
            exact = dot(n, cell.velocity(momentum, rho))
            u = cell.let("u_normal", lagged(exact, dot(n, cell.u)))
            return density, rho, [v * u for v in n]

        def found(density: Expression) -> Expression:
            return known + dot(n, cell.momentum(cell.rest(density), given))

        # the density is the fixed point of the linear function `found`, evaluated at rho = 1 and 2
        one = cell.stored(1)
        grows = found(one + 1) - found(one)
        density = cell.let("density_given", (found(one) - grows * one) / (1 - grows))
        return density, cell.rest(density), given

    def returned(self, cell: Cell) -> dict[int, Expression]:
        """The populations at edges where two such faces meet, {i: expression} for all i > 0.

            f_i = f_out_opp(i) + feq_i(rho_0, u) - feq_opp(i)(rho_0, u),  rho_0 = 1

        At such an edge too few populations stream in to determine rho or u, and a momentum
        correction by both faces would grow. With a given rho, u is the normal velocity of the
        outgoing populations. A lid that moves parallel to itself adds no mass.
        """
        u = self.prescribed(cell)
        if self.velocity is None:
            u = [abs(n) * v for n, v in zip(cell.normal, cell.u, strict=True)]
        feq = cell.feq(cell.stored(1), 1, u)
        opp = cell.lattice.opp
        return {i: cell.left[opp[i]] + feq[i] - feq[opp[i]] for i in range(1, cell.lattice.Q)}

    def bounced(self, cell: Cell, feq: Populations) -> dict[int, Expression]:
        """Bounce-back of the non-equilibrium part, {i: expression} for c_i . n > 0.

            f_i - feq_i = f_opp(i) - feq_opp(i)

        With a force F, the equation holds for f_i + w_i c_i . F / (2 cs2) in place of f_i.
        """
        lattice, opp, n = cell.lattice, cell.lattice.opp, cell.normal
        return {
            i: cell.arrives[opp[i]]
            + feq[i]
            - feq[opp[i]]
            - lattice.w[i] * dot(c, cell.force) / lattice.cs2
            for i, c in enumerate(lattice.c)
            if dot(c, n) > 0
        }
