"""The free-energy model of a binary fluid."""

from fractions import Fraction
from itertools import product
from math import acos, cos, pi, radians, sin, sqrt

from pydantic import Field

from mpilbm.physics.algebra import dot, pairs
from mpilbm.physics.couplings import Coupling, solids
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import make, register
from mpilbm.units import tau_from_viscosity

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
                           relaxation time tau = tau_2 + (phi + 1) (tau_1 - tau_2) / 2
        phi = sum_i g_i,   moments of geq: phi, phi u, gamma mu 1 + phi u u,
                           relaxation time tau_phi; the mobility is gamma (tau_phi - 1/2)

    tau_1 and tau_2 follow from the viscosities of the fluids. Derivatives of phi use isotropic
    stencils with the weights of the lattice. The case gives the initial densities rho_1 and rho_2
    of the fluids; rho = rho_1 + rho_2, phi = rho_1 - rho_2. The force is (1 + phi) F_1 / 2 +
    (1 - phi) F_2 / 2. `wetting` = {angle = 60} sets the contact angle of the first fluid, by
    kappa d phi/dn = -h at the wall. [Swift, Orlandini, Osborn & Yeomans 1996, Phys. Rev. E 54,
    5041; Pooley & Furtado 2008, Phys. Rev. E 77, 046702; Briant & Yeomans 2004, Phys. Rev. E 69,
    031603; Januszewski & Kostur 2014]
    """

    a: float = Field(gt=0, description="coefficient of the bulk free energy", examples=[0.02])
    kappa: float = Field(gt=0, description="coefficient of the gradient energy", examples=[0.08])
    gamma: float = Field(1.0, gt=0, description="mobility / (tau_phi - 1/2)")
    tau_phi: float = Field(1.0, gt=0.5, description="relaxation time of phi")

    fewest = 2
    most = 2

    @property
    def surface_tension(self) -> float:
        """sqrt(8 kappa a / 9)."""
        return sqrt(8 * self.kappa * self.a / 9)

    def structure(self, case):
        """The name only; all parameters are arguments of the kernels."""
        return {"name": self.name}

    def offsets(self, case) -> tuple[bool, ...]:
        """As in the base class for rho; False for phi, whose values are around 1 and -1."""
        return case.precision.offset, False

    def masses(self, case) -> dict[str, float]:
        """Columns for the masses (rho + phi) / 2 and (rho - phi) / 2 of the fluids."""
        return {f"mass_{fluid.label}": self.rest(case) / 2 for fluid in case.fluids}

    def mass(self, cell) -> list:
        """(rho + phi) / 2 and (rho - phi) / 2."""
        return [(cell.density(0) + sign * cell.density(1)) / 2 for sign in (1, -1)]

    def neighbour_fields(self, case) -> tuple[str, ...]:
        """The order parameter phi."""
        return ("phi",)

    def local_fields(self, case) -> tuple[str, ...]:
        """The velocity, which the collision of the first populations changes."""
        return tuple(f"velocity_{axis}" for axis in "xyz"[: case.lattice.D])

    def numbers(self, case) -> dict[str, float]:
        """a, kappa, gamma and the relaxation parameters."""
        taus = [tau_from_viscosity(fluid.viscosity, case.lattice.cs2) for fluid in case.fluids]
        found = {"a": self.a, "kappa": self.kappa, "gamma": self.gamma}
        return found | {"tau_0": taus[0], "tau_1": taus[1], "omega_phi": 1 / self.tau_phi}

    def forcing(self, fluid):
        """The force of the case, or none with the scheme `guo`."""
        return fluid.force or make("forcing", {"name": "guo", "value": (0.0, 0.0)})

    def force_on(self, cell, phi) -> list:
        """(1 + phi) F_1 / 2 + (1 - phi) F_2 / 2."""
        both = zip(cell.external_force(0), cell.external_force(1), strict=True)
        return [(1 + phi) * one / 2 + (1 - phi) * other / 2 for one, other in both]

    def fields(self, cell) -> dict:
        """phi, and the velocity of the first populations."""
        phi, rho = cell.rho(1), cell.rho(0)
        F = self.force_on(cell, phi)
        found = {"phi": phi}
        for a, axis in enumerate(cell.axes):
            found[f"velocity_{axis}"] = (cell.momentum(0)[a] + cell.half * F[a] / 2) / rho
        return found

    def bulk(self, cell, phi):
        """Return mu and p_0 - cs2 rho, without the terms that contain derivatives of phi."""
        a = cell.number("a")
        return a * (phi**3 - phi), a * (3 * phi**4 / 4 - phi**2 / 2)

    def collide(self, cell, k) -> list:
        """Return f* (k = 0), with the pressure tensor P, or g* (k = 1), with gamma mu."""
        phi, kappa = cell.here("phi"), cell.number("kappa")
        u = [cell.here(f"velocity_{axis}") for axis in cell.axes]
        curve, (mu, p) = cell.laplacian("phi"), self.bulk(cell, phi)
        if k == 1:
            mu = cell.let("mu", mu - kappa * curve)
            feq = moved(cell.lattice, phi, phi, u, cell.number("gamma") * mu - phi * cell.cs2)
            return cell.relaxed(1, feq, {"omega": cell.number("omega_phi")})
        tau_0, tau_1 = cell.number("tau_0"), cell.number("tau_1")
        omega = cell.let("omega_here", 1 / (tau_1 + (phi + 1) * (tau_0 - tau_1) / 2))
        p = cell.let("p", p - kappa * phi * curve)
        feq = moved(cell.lattice, cell.density(0), cell.rho(0), u, p)
        pull = stressed(cell.lattice, cell.slope("phi"))
        feq = [f + kappa * g for f, g in zip(feq, pull, strict=True)]
        return cell.relaxed(0, feq, {"omega": omega}, u, self.force_on(cell, phi))

    def initial_populations(self, cell, k) -> list:
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

    def mixture(self, cell) -> tuple:
        """Stored density, rho and momentum of the first populations."""
        F = self.force_on(cell, cell.rho(1))
        momentum = [j - F_a / 2 for j, F_a in zip(cell.momentum(0), F, strict=True)]
        return cell.density(0), cell.rho(0), momentum

    def outputs(self, case) -> tuple[str, ...]:
        """phi and the pressure p_0."""
        return "phi", "pressure"

    def output(self, cell) -> list:
        """phi and p_0."""
        phi = cell.rho(1)
        return [phi, cell.cs2 * cell.rho(0) + self.bulk(cell, phi)[1]]

    def jumps(self, case) -> tuple[float | None, ...]:
        """2, the difference between phi = 1 and phi = -1."""
        return (2.0,)

    def order_parameters(self, cell) -> list:
        """The order parameter phi."""
        return [cell.rho(1)]

    def wall(self, case, wetting) -> dict[str, tuple[float, float]]:
        """The mean of phi in adjacent fluid cells, plus h / kappa for a contact angle."""
        angle = (wetting or {}).get("angle", 90.0)
        return {"phi": (1.0, wetting_potential(angle) * sqrt(self.a / (2 * self.kappa)))}

    def problems(self, case) -> list[str]:
        """Errors: collisions other than bgk, forces outside the collision, contact angles."""
        found = super().problems(case)
        for fluid in case.fluids:
            if fluid.collision.name != "bgk" or fluid.collision.closure:
                found.append(f"{case.key(fluid, 'collision')}: {self.name} defines its own "
                             "equilibria; allowed: bgk without closure")  # fmt: skip
            if fluid.force and not fluid.force.inside:
                key, force = case.key(fluid, "force"), fluid.force.name
                found.append(f"{key}: found '{force}', but {self.name} needs a velocity that "
                             "includes half of the force; allowed: guo")  # fmt: skip
        for key, boundary in solids(case):
            wetting = boundary.wetting or {}
            if set(wetting) - {"angle"} or not 0 < wetting.get("angle", 90) < 180:
                found.append(f"{key}.wetting: found {wetting}; allowed: angle, above 0 and below "
                             "180, the contact angle in degrees of "
                             f"'{case.fluids[0].label}'")  # fmt: skip
        return found

    def warnings(self, case) -> list[str]:
        """Warnings: unresolved interfaces, unstable phi, viscosities too low for kappa."""
        width, found = sqrt(2 * self.kappa / self.a), []
        if width < RESOLVED:
            found.append(f"kappa: the interface tanh(x/{width:.3g}) is too thin for the grid, and "
                         "its tension is not sqrt(8 kappa a/9); use kappa/a of 2 or more"
                         )  # fmt: skip
        largest = stiffest(case.lattice)
        most = 4 / (largest * (2 * self.a + self.kappa * largest))
        if self.gamma > most:
            found.append(f"gamma: found {self.gamma:g}; above {most:.4g}, waves of phi with the "
                         "shortest wavelength grow; lower gamma or kappa")  # fmt: skip
        thin = min(fluid.viscosity for fluid in case.fluids)
        if thin < self.kappa * LEAST:
            found.append(f"kappa: found {self.kappa:g}; waves on an interface can end in NaN at a "
                         f"viscosity below {self.kappa * LEAST:.3g}, found {thin:.3g}; raise the "
                         "viscosity, or lower kappa and a")  # fmt: skip
        return found


# Smallest viscosity / kappa. 3000 steps of an interface wave 40 cells long in 2D ended in NaN up to
# nu = 0.02 with kappa = 0.08 and a = 0.02 (up to 0.03 with a = 0.04); up to 0.006 with half of
# kappa and a (0.01); and up to 0.003 with a quarter of both.
LEAST = 0.5
# Smallest width in cells. The next terms of the stencils, lap lap phi / 12 and grad lap phi / 6,
# reduce the tension by a / (12 kappa): 4 % at a width of 2, 2 % at 2.83, 1 % at 4.
RESOLVED = 1.9


def stiffest(lattice: Lattice) -> float:
    """Return the largest eigenvalue lambda of minus the discrete Laplacian.

    Its waves change sign from cell to cell. At tau_phi = 1, one step multiplies such a wave of phi
    by 1 - gamma lambda (2 a + kappa lambda) / 2. The wave grows if this factor is below -1; this
    limit of gamma is the same for all tau_phi.
    """
    waves = product((0, 1), repeat=lattice.D)
    each = ([w * (dot(c, k) % 2) for w, c in zip(lattice.w, lattice.c, strict=True)] for k in waves)
    return float(max(4 * sum(one) / lattice.cs2 for one in each))


def moved(lattice: Lattice, density, rho, u, extra) -> list:
    """Return Q expressions with the moments density, rho u and (cs2 density + extra) 1 + rho u u.

    `density` is the stored density. The population at rest is density minus all others.
    """
    cs2, uu, f = lattice.cs2, dot(u, u), []
    for w, c in zip(lattice.w, lattice.c, strict=True):
        cu = dot(c, u)
        even = density + extra / cs2 + rho * (cu**2 / (2 * cs2**2) - uu / (2 * cs2))
        f.append(w * (even + rho * cu / cs2))
    return [density - sum(f[1:]), *f[1:]]


def stressed(lattice: Lattice, slope) -> list:
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
        w * (dot(c, slope) ** 2 - cs2 * 2 * half - half * (dot(c, c) - lattice.D * cs2))
        / (2 * cs2**2)
        for w, c in zip(lattice.w, lattice.c, strict=True)
    ]  # fmt: skip


def wetting_potential(angle: float) -> float:
    """Return h / sqrt(kappa a / 2) for a contact angle in degrees; positive below 90 degrees.

    2 cos(theta) = (1 + w)^(3/2) - (1 - w)^(3/2). [Briant & Yeomans 2004, eq. 28]
    """
    theta = radians(angle)
    third = cos(acos(sin(theta) ** 2) / 3)
    return (1 if theta < pi / 2 else -1) * 2 * sqrt(max(0.0, third * (1 - third)))
