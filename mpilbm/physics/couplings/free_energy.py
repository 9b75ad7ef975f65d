"""The free-energy model of a binary fluid."""

from collections.abc import Mapping
from fractions import Fraction
from math import acos, cos, pi, radians, sin, sqrt
from typing import Any

from pydantic import Field

from mpilbm.core.registry import make, register
from mpilbm.model.case import Case, Fluid
from mpilbm.model.cell import CoupledCell
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot, pairs
from mpilbm.physics.couplings import Coupling, diffuse_interface, solids
from mpilbm.physics.couplings.diffuse_interface import limit_warnings, viscosities
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice

# w_i^aa of c_i along a, of c_i along another axis, of diagonal c_i with c_ia != 0 and with
# c_ia = 0; w_i^ab is 1/4
OPTIMISED = {
    "D2Q9": (Fraction(1, 3), Fraction(-1, 6), Fraction(-1, 24), 0),
    "D3Q19": (Fraction(5, 12), Fraction(-1, 3), Fraction(-1, 24), Fraction(1, 12)),
}


@register("couplings", "free_energy")
class FreeEnergy(Coupling):
    """Two immiscible fluids with the order parameter phi: 1 in the first fluid, -1 in the second.

        mu = a (phi^3 - phi) - kappa lap phi,    p_0 = cs2 rho + a (3 phi^4 / 4 - phi^2 / 2)
        P = (p_0 - kappa phi lap phi - kappa |grad phi|^2 / 2) 1 + kappa grad phi grad phi

    mu is the chemical potential, P the pressure tensor. The surface tension is sqrt(8 kappa a / 9)
    and the profile of an interface tanh(x / sqrt(2 kappa / a)); because of the stencils the tension
    of a flat interface is (1 - a / (12 kappa)) times this value. There are two sets of populations:

        rho = sum_i f_i,   moments of feq: rho, rho u, P + rho u u,
                           relaxation time tau = nu / cs2 + 1/2
        phi = sum_i g_i,   moments of geq: phi, phi u, gamma mu 1 + phi u u,
                           relaxation time tau_phi; the mobility is gamma (tau_phi - 1/2)

    The viscosity nu in an interface is a mean of those of the fluids, with s = (1 + phi) / 2
    limited to 0 to 1; see `viscosity_mean`:

        harmonic   1 / nu = s / nu_1 + (1 - s) / nu_2
        linear     nu = s nu_1 + (1 - s) nu_2

    The shear stress is continuous across an interface, and the velocity changes by the integral of
    stress / nu. With the harmonic mean this is the change at a sharp interface, so that flows in
    layers are of second order in the width of the interface. With the linear mean the interface
    acts as if it were sqrt(kappa / (2 a)) |log(nu_1 / nu_2)| cells within the fluid of the smaller
    viscosity. Where a flow stretches an interface, the linear mean is the exact one.

    Derivatives of phi use isotropic stencils with the weights of the lattice. The case gives the
    initial densities rho_1 and rho_2 of the fluids; rho = rho_1 + rho_2, phi = rho_1 - rho_2. Both
    phases have the density 1. The force is (1 + phi) F_1 / 2 + (1 - phi) F_2 / 2. `wetting` =
    {angle = 60} sets the contact angle of the first fluid, by kappa d phi/dn = -h at the wall; the
    angles of drops are within 3 degrees of it from 20 to 160 degrees. [Swift, Orlandini, Osborn &
    Yeomans 1996, Phys. Rev. E 54, 5041; Pooley & Furtado 2008, Phys. Rev. E 77, 046702; Briant &
    Yeomans 2004, Phys. Rev. E 69, 031603; Januszewski & Kostur 2014]
    """

    a: float = Field(gt=0, description="coefficient of the bulk free energy", examples=[0.02])
    kappa: float = Field(gt=0, description="coefficient of the gradient energy", examples=[0.08])
    gamma: float = Field(1.0, gt=0, description="mobility / (tau_phi - 1/2)")
    tau_phi: float = Field(1.0, gt=0.5, description="relaxation time of phi")
    viscosity_mean: diffuse_interface.Mean = Field(
        "harmonic", description="mean of the viscosities in an interface: harmonic or linear"
    )

    fewest = 2
    most = 2

    def structure(self, case: Case) -> dict[str, Any]:
        """The mean of the viscosities; all other parameters are arguments of the kernels."""
        return {"name": self.name, "viscosity_mean": self.viscosity_mean}

    def offsets(self, case: Case) -> tuple[bool, ...]:
        """`precision.offset` for rho; False for phi, whose values are around 1 and -1."""
        return case.precision.offset, False

    def masses(self, case: Case) -> dict[str, float]:
        """Columns for the masses (rho + phi) / 2 and (rho - phi) / 2 of the fluids."""
        return {f"mass_{fluid.label}": self.rest(case) / 2 for fluid in case.fluids}

    def mass(self, cell: CoupledCell) -> list[Expression]:
        """(rho + phi) / 2 and (rho - phi) / 2."""
        return [(cell.density(0) + sign * cell.density(1)) / 2 for sign in (1, -1)]

    def neighbour_fields(self, case: Case) -> tuple[str, ...]:
        """The order parameter phi."""
        return ("phi",)

    def local_fields(self, case: Case) -> tuple[str, ...]:
        """The velocity, which the collision of the first populations changes."""
        return tuple(f"velocity_{axis}" for axis in "xyz"[: case.lattice.D])

    def numbers(self, case: Case) -> dict[str, float]:
        """a, kappa, gamma, 1 / tau_phi, and nu (linear) or 1 / nu (harmonic) of both fluids."""
        found = {"a": self.a, "kappa": self.kappa, "gamma": self.gamma}
        found |= {"omega_phi": 1 / self.tau_phi}
        nu = diffuse_interface.parts(self.viscosity_mean, *viscosities(case))
        return found | {f"viscous_{k}": number for k, number in enumerate(nu)}

    def forcing(self, fluid: Fluid) -> Forcing:
        """The force of the case, or none with the scheme `guo`."""
        return fluid.force or make("forcing", {"name": "guo", "value": (0.0, 0.0)})

    def force_on(self, cell: CoupledCell, phi: Expression) -> list[Expression]:
        """(1 + phi) F_1 / 2 + (1 - phi) F_2 / 2."""
        both = zip(cell.external_force(0), cell.external_force(1), strict=True)
        return [(1 + phi) * one / 2 + (1 - phi) * other / 2 for one, other in both]

    def fields(self, cell: CoupledCell) -> dict[str, Expression]:
        """phi, and the velocity of the first populations."""
        phi, rho = cell.rho(1), cell.rho(0)
        F = self.force_on(cell, phi)
        found = {"phi": phi}
        for a, axis in enumerate(cell.axes):
            found[f"velocity_{axis}"] = (cell.momentum(0)[a] + cell.half * F[a] / 2) / rho
        return found

    def bulk(self, cell: CoupledCell, phi: Expression) -> tuple[Expression, Expression]:
        """Return mu and p_0 - cs2 rho, without the terms that contain derivatives of phi."""
        a = cell.number("a")
        return a * (phi**3 - phi), a * (3 * phi**4 / 4 - phi**2 / 2)

    def collide(self, cell: CoupledCell, k: int) -> list[Expression]:
        """Return f* (k = 0), with the pressure tensor P, or g* (k = 1), with gamma mu."""
        phi, kappa = cell.here("phi"), cell.number("kappa")
        u = [cell.here(f"velocity_{axis}") for axis in cell.axes]
        curve, (mu, p) = cell.laplacian("phi"), self.bulk(cell, phi)
        if k == 1:
            mu = cell.let("mu", mu - kappa * curve)
            feq = moved(cell.lattice, phi, phi, u, cell.number("gamma") * mu - phi * cell.cs2)
            return cell.relaxed(1, feq, {"omega": cell.number("omega_phi")})
        nu = [cell.number(f"viscous_{k}") for k in range(2)]
        omega = diffuse_interface.rate(self.viscosity_mean, phi, nu, cell.cs2)
        omega = cell.let("omega_here", omega)
        p = cell.let("p", p - kappa * phi * curve)
        feq = moved(cell.lattice, cell.density(0), cell.rho(0), u, p)
        pull = stressed(cell.lattice, cell.slope("phi"))
        feq = [f + kappa * g for f, g in zip(feq, pull, strict=True)]
        return cell.relaxed(0, feq, {"omega": omega}, u, self.force_on(cell, phi))

    def initial_populations(self, cell: CoupledCell, k: int) -> list[Expression]:
        """Equilibrium without derivatives of phi; the momentum includes half of the force."""
        first = k == 0
        both = zip(cell.momentum(0), cell.momentum(1), strict=True) if first else ()
        j = [sum(each) for each in both] if first else cell.momentum(0)
        rho = cell.rho(0) + cell.rho(1) if first else cell.rho(0)
        phi = cell.let("phi", cell.rho(0) - (1 if first else 2) * cell.rho(1))
        push = [F / 2 for F in self.force_on(cell, phi)]
        u = [(j_a if first else j_a - F) / rho for j_a, F in zip(j, push, strict=True)]
        u = [cell.let(f"u_{axis}", u_a) for axis, u_a in zip(cell.axes, u, strict=True)]
        mu, p = self.bulk(cell, phi)
        if not first:
            return moved(cell.lattice, phi, phi, u, cell.number("gamma") * mu - phi * cell.cs2)
        feq = moved(cell.lattice, cell.density(0) + cell.rho(1), rho, u, p)
        directions = zip(feq, cell.lattice.w, cell.lattice.c, strict=True)
        return [f + w * dot(c, push) / cell.cs2 for f, w, c in directions]

    def mixture(self, cell: CoupledCell) -> tuple[Expression, Expression, Vector]:
        """Stored density, rho and momentum of the first populations."""
        F = self.force_on(cell, cell.rho(1))
        momentum = [j - F_a / 2 for j, F_a in zip(cell.momentum(0), F, strict=True)]
        return cell.density(0), cell.rho(0), momentum

    def outputs(self, case: Case) -> tuple[str, ...]:
        """phi and the pressure p_0."""
        return "phi", "pressure"

    def output(self, cell: CoupledCell) -> list[Expression]:
        """phi and p_0."""
        phi = cell.rho(1)
        return [phi, cell.cs2 * cell.rho(0) + self.bulk(cell, phi)[1]]

    def jumps(self, case: Case) -> tuple[float | None, ...]:
        """2, the difference between phi = 1 and phi = -1."""
        return (2.0,)

    def order_parameters(self, cell: CoupledCell) -> list[Expression]:
        """The order parameter phi."""
        return [cell.rho(1)]

    def wall(self, case: Case, wetting: Mapping[str, float]) -> dict[str, tuple[float, float]]:
        """The mean of phi in adjacent fluid cells, plus h / kappa for a contact angle."""
        angle = (wetting or {}).get("angle", 90.0)
        return {"phi": (1.0, wetting_potential(angle) * sqrt(self.a / (2 * self.kappa)))}

    def problems(self, case: Case) -> list[str]:
        """Errors: collisions other than bgk, forces outside the collision, contact angles."""
        found = super().problems(case)
        for fluid in case.fluids:
            if fluid.collision.name != "bgk" or fluid.collision.closure:
                found.append(
                    f"{case.key(fluid, 'collision')}: {self.name} defines its own "
                    "equilibria; allowed: bgk without closure"
                )
            if fluid.force and not fluid.force.inside:
                key, force = case.key(fluid, "force"), fluid.force.name
                found.append(
                    f"{key}: found '{force}', but {self.name} needs a velocity that "
                    "includes half of the force; allowed: guo"
                )
        for key, boundary in solids(case):
            wetting = boundary.wetting or {}
            if set(wetting) - {"angle"} or not 0 < wetting.get("angle", 90) < 180:
                found.append(
                    f"{key}.wetting: found {wetting}; allowed: angle, above 0 and below "
                    "180, the contact angle in degrees of "
                    f"'{case.fluids[0].label}'"
                )
        return found

    def warnings(self, case: Case) -> list[str]:
        """Warnings: interfaces, mobility, viscosities, contact angles and initial densities."""
        return limit_warnings(case, self.a, self.kappa, self.gamma, self.viscosity_mean)


def moved(
    lattice: Lattice, density: Expression, rho: Expression, u: Vector, extra: Expression
) -> list[Expression]:
    """Return Q expressions with the moments density, rho u and (cs2 density + extra) 1 + rho u u.

    `density` is the stored density. The population at rest is density minus all others.
    """
    cs2, uu, f = lattice.cs2, dot(u, u), []
    for w, c in zip(lattice.w, lattice.c, strict=True):
        cu = dot(c, u)
        even = density + extra / cs2 + rho * (cu**2 / (2 * cs2**2) - uu / (2 * cs2))
        f.append(w * (even + rho * cu / cs2))
    return [density - sum(f[1:]), *f[1:]]


def stressed(lattice: Lattice, slope: Vector) -> list[Expression]:
    """Return Q expressions with the second moments g g - g.g 1 / 2 and zero lower moments.

    `slope` is the gradient g. On D2Q9 and D3Q19 the weights are w_i^ab of Pooley & Furtado 2008,
    which give the smallest spurious velocities; on other lattices Hermite polynomials are used.
    """
    if lattice.name in OPTIMISED:
        along, across, near, far = OPTIMISED[lattice.name]
        f = [0]
        for c in lattice.c[1:]:
            axis = dot(c, c) == 1
            value = 0
            for a, b in pairs(lattice.D):
                if a != b:
                    value += c[a] * c[b] * slope[a] * slope[b] / 4
                elif axis:
                    value += (along if c[a] else across) * slope[a] ** 2
                else:
                    value += (near if c[a] else far) * slope[a] ** 2
            f.append(value)
        return [-sum(f), *f[1:]]
    half, cs2 = dot(slope, slope) / 2, lattice.cs2
    return [
        w
        * (dot(c, slope) ** 2 - cs2 * 2 * half - half * (dot(c, c) - lattice.D * cs2))
        / (2 * cs2**2)
        for w, c in zip(lattice.w, lattice.c, strict=True)
    ]


def wetting_potential(angle: float) -> float:
    """Return h / sqrt(kappa a / 2) for a contact angle in degrees; positive below 90 degrees.

    2 cos(theta) = (1 + w)^(3/2) - (1 - w)^(3/2). [Briant & Yeomans 2004, eq. 28]
    """
    theta = radians(angle)
    third = cos(acos(sin(theta) ** 2) / 3)
    return (1 if theta < pi / 2 else -1) * 2 * sqrt(max(0.0, third * (1 - third)))
