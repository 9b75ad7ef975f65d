"""Base classes of conditions with a given velocity or density."""

from pydantic import Field, model_validator

from mpilbm.formulas.values import Value, Vector
from mpilbm.physics.boundaries import DENSITY, VELOCITY, Boundary, by_axis
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot


class Given(Boundary):
    """The case gives a velocity or a density, which the cell next to the face takes."""

    wall_at = "node"
    velocity: Vector | None = Field(None, description=VELOCITY, examples=[[0.05, 0]])
    rho: Value | None = Field(None, description=DENSITY, examples=[1.0])

    @model_validator(mode="after")
    def _one_value(self):
        if (self.velocity is None) == (self.rho is None):
            raise ValueError("needs either velocity or rho; give one of them")
        return self

    def structure(self):
        """With a given velocity the kernel differs from that with a given density."""
        return super().structure() | {"given": "rho" if self.velocity is None else "velocity"}

    def values(self):
        """The velocity or the density."""
        return {"rho": self.rho} if self.velocity is None else by_axis("velocity", self.velocity)


class OnSite(Given):
    """Density or velocity, whichever is not given, follows from the arriving populations.

    Populations with c . n > 0 are unknown, n being the inward normal. The others give
    rho - rho u . n = sum_(c.n = 0) f + 2 sum_(c.n < 0) f. The velocity along a face with a given
    density is zero. [Zou & He 1997, Phys. Fluids 9, 1591]
    """

    declares = Capabilities(normal=True)

    def macroscopic(self, cell):
        """density, rho and u of the cell."""
        n, given = cell.normal, list(cell.values.values())
        along = [dot(c, n) for c in cell.lattice.c]
        known = sum((1 - s) * f for s, f in zip(along, cell.arrives, strict=True) if s <= 0)
        known = cell.let("known", known)
        if self.velocity is None:
            rho, density = given[0], cell.stored(given[0])
            momentum = [v * (density - known) for v in n]
            u = cell.velocity(momentum, rho)
            return density, rho, [v * dot(n, u) for v in n]

        def found(density):
            return known + dot(n, cell.momentum(cell.rest(density), given))

        # the density is the fixed point of `found`, which is linear; at rho = 1 and 2 u exists
        one = cell.stored(1)
        grows = found(one + 1) - found(one)
        density = cell.let("density_given", (found(one) - grows * one) / (1 - grows))
        return density, cell.rest(density), given

    def returned(self, cell) -> dict:
        """f_i = f_out_opp(i) + feq_i(rho_0, u) - feq_opp(i)(rho_0, u), rho_0 = 1, for edges.

        Where two faces meet, too few populations stream in to find rho or u, and the correction of
        the momentum would be added by both faces and grow. With a given rho, u is the velocity of
        the outgoing populations across the face. A lid that slides along itself adds no mass.
        """
        u = list(cell.values.values())
        if self.velocity is None:
            u = [abs(n) * v for n, v in zip(cell.normal, cell.u, strict=True)]
        feq = cell.feq(cell.stored(1), 1, u)
        opp = cell.lattice.opp
        return {i: cell.left[opp[i]] + feq[i] - feq[opp[i]] for i in range(1, cell.lattice.Q)}

    def bounced(self, cell, feq) -> dict:
        """f_i - feq_i = f_opp(i) - feq_opp(i) where c_i . n > 0.

        With a force, the same for f_i + w_i c_i . F / (2 cs2).
        """
        lattice, opp, n = cell.lattice, cell.lattice.opp, cell.normal
        return {
            i: cell.arrives[opp[i]] + feq[i] - feq[opp[i]]
            - lattice.w[i] * dot(c, cell.force) / lattice.cs2
            for i, c in enumerate(lattice.c)
            if dot(c, n) > 0
        }  # fmt: skip
