"""Relaxation of each group of moments with its own rate."""

from collections.abc import Callable, Container
from fractions import Fraction
from typing import Any

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Let, Populations, Rates
from mpilbm.physics.algebra import dot, expanded
from mpilbm.physics.collisions import CellState, Collision
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.lattices.basis import basis


def flux_rate(s_nu: float) -> float:
    """The default s_q on D2Q9: 1.9 [Lallemand & Luo 2000], or less at large viscosities.

    The condition is L_q >= L_nu / 2 with L = 1/s - 1/2. A shear wave with the wave number k along
    an axis decays with the viscosity nu (1 + k^2 (1/12 + L_nu (L_nu - 2 L_q) / 3)), so the
    condition limits the error to k^2 / 12.
    """
    return min(1.9, 4 * s_nu / (s_nu + 2))


Default = float | Callable[[float], float] | None
# rates by lattice: a number; None: equal to s_nu; or a function of s_nu
DEFAULTS: dict[str, dict[str, Default]] = {
    "D2Q9": {"s_e": 1.64, "s_eps": 1.54, "s_q": flux_rate},  # [Lallemand & Luo 2000]
    "D3Q13": {"s_e": 1.0, "s_m": 1.0},  # [Tölke & Krafczyk 2008]
    "D3Q15": {"s_e": 1.6, "s_eps": 1.2, "s_q": 1.6, "s_xyz": 1.2},  # [d'Humières et al. 2002]
    # [d'Humières et al. 2002]
    "D3Q19": {"s_e": 1.19, "s_eps": 1.4, "s_q": 1.2, "s_pi": 1.4, "s_m": 1.98},
    "D3Q27": {
        "s_e": 1.54,
        "s_eps": 1.4,
        "s_q": 1.5,
        "s_pi": None,
        "s_m": 1.74,
        "s_xyz": 1.74,
        "s_xxyz": None,
        "s_xyyzz": 1.83,
        "s_xxyyzz": 1.61,
    },  # [Suga et al. 2015]
}

# rates that are s_nu on some lattice
EQUAL = sorted({name for rates in DEFAULTS.values() for name, each in rates.items() if not each})


def rate(moments: str) -> Any:
    """A field for the rate of these moments; None: the default of the lattice in DEFAULTS."""
    return Field(None, gt=0, lt=2, description=f"rate of {moments}", examples=[1.2])


@register("collisions", "mrt")
class MRT(Collision):
    """f* = f - M^-1 S M (f - feq): each group of moments m = M f relaxes with its own rate.

    S is the diagonal matrix of the rates. The rate of the shear stress s_nu follows from the
    viscosity, nu = cs2 (1/s_nu - 1/2), with a closure or a sponge from that of the cell. The other
    rates are parameters; their defaults are values of the literature, on D3Q27 some are s_nu. s_e
    sets the bulk viscosity. The default s_q on D2Q9 is 1.9, or less where needed to limit the error
    of the viscosity of shear waves. The rows of M are orthogonal polynomials of c, for D2Q9, D3Q13,
    D3Q15, D3Q19 and D3Q27.

    With the default rates and speeds up to 0.1 no wave grows if nu is at least 0.00013 on D2Q9,
    0.0025 on D3Q15, 0.0012 on D3Q19 and 0.0014 on D3Q27. On D3Q27 the defaults of s_pi and s_xxyz
    are s_nu: with the published value 1.98, waves grow in a fluid at rest for nu of 0.03 and more.
    Half-way walls lie half-way (to 1e-5 in a channel) if s_q satisfies (1/s_nu - 1/2)
    (1/s_q - 1/2) = 3/16 and s_m = s_q; with the default rates their position is 1 % off. With
    equilibrium = {name = "dhumieres"} it is the D3Q19 model of d'Humières et al., which is stable
    for nu of 0.007 and more at a speed of 0.1.

    On D3Q13 p_xx and p_ww relax at s_nu, nu = (1/s_nu - 1/2)/4, and p_xy, p_yz, p_zx at s_nu_xy,
    nu = (1/s_nu_xy - 1/2)/2; plane walls lie half-way if 2 nu (1/s_m - 1/2) = 1/4. With
    equilibrium = {name = "incompressible"} it is the model of Tölke & Krafczyk 2008; s_m is their
    s_h. [Lallemand & Luo 2000, Phys. Rev. E 61, 6546; d'Humières et al. 2002, Phil. Trans. R. Soc.
    A 360, 437; Suga et al. 2015, Comput. Math. Appl. 69, 518; Tölke & Krafczyk 2008, (3)-(7);
    Obrecht et al. 2013]
    """

    s_e: float | None = rate("the energy |c|^2")
    s_eps: float | None = rate("|c|^4")
    s_q: float | None = rate("the energy flux c |c|^2")
    s_pi: float | None = rate("|c|^2 times the shear stress; D3Q19, D3Q27")
    s_m: float | None = rate("c_x (c_y^2 - c_z^2), …; D3Q13, D3Q19, D3Q27")
    s_xyz: float | None = rate("c_x c_y c_z; D3Q15, D3Q27")
    s_xxyz: float | None = rate("c_x^2 c_y c_z, …; D3Q27")
    s_xyyzz: float | None = rate("c_x c_y^2 c_z^2, …; D3Q27")
    s_xxyyzz: float | None = rate("c_x^2 c_y^2 c_z^2; D3Q27")

    shear_rate = "s_nu"
    numbers = tuple(DEFAULTS["D3Q27"])
    lattices = tuple(DEFAULTS)
    needs_isotropy = 2

    def problems(self, case: Case) -> list[str]:
        """Errors of the base class, and rates of moments that the lattice does not have."""
        allowed = tuple(DEFAULTS.get(case.lattice.name, self.numbers))
        return super().problems(case) + [
            f"{name}: {case.lattice.name} has no such moments; allowed: {', '.join(allowed)}"
            for name in self.numbers
            if getattr(self, name) is not None and name not in allowed
        ]

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """The rate of the shear stress from the viscosity; other rates as given, or defaults."""
        # sum_i w_i c_ix^2 c_iy^2, the factor of the shear stress in the momentum flux
        shear = lattice.moment(0, 0, 1, 1)
        normal = (lattice.moment(0, 0, 0, 0) - shear) / 2
        by_share = {"s_nu": normal} if normal == shear else {"s_nu": normal, "s_nu_xy": shear}
        cs2 = lattice.cs2
        rates = {k: 1 / (nu / float(v / cs2) + 0.5) for k, v in by_share.items()}
        for name, usual in DEFAULTS[lattice.name].items():
            usual = usual(rates["s_nu"]) if callable(usual) else usual
            known = (getattr(self, name), usual, rates["s_nu"])
            rates[name] = next(s for s in known if s is not None)
        return rates

    def structure(self) -> dict[str, Any]:
        """Also which rates are s_nu by default, also where that is local."""
        equal = [name for name in EQUAL if getattr(self, name) is None]
        return super().structure() | {"equal": equal}

    def local_rates(self, rates: Rates, omega: Expression) -> dict[str, Expression]:
        """s_nu = omega, and so are the rates whose default is s_nu.

        With the s_pi and s_xxyz of a thin fluid, waves grow on D3Q27 where it is viscous.
        """
        usual = next(each for each in DEFAULTS.values() if each.keys() == rates.keys() - {"s_nu"})
        equal = (name for name in EQUAL if usual.get(name, 0) is None)
        follow = (name for name in equal if getattr(self, name) is None)
        return {**rates, "s_nu": omega, **dict.fromkeys(follow, omega)}

    def relax(self, lattice: Lattice, d: Populations, **rates: Expression) -> list[Expression]:
        """M^-1 S M d."""
        m = basis(lattice.c).moments(d)
        s = {name: rates.get(rate_of(name, rates), 0) for name in m}
        return basis(lattice.c).populations({name: s[name] * m[name] for name in m})

    def collided(self, cell: CellState, rates: Rates, let: Let) -> list[Expression]:
        """Return f* = f + M^-1 (M F - S (M f - M feq + M F/2)); M feq and M F are expanded."""
        base, source = basis(cell.lattice.c), cell.source
        feq = self.feq(cell.lattice, cell.density, cell.rho, cell.u)
        m, change = base.moments(cell.f, let), {}
        for name, row in base.rows.items():
            F = 0 if source is None else expanded(dot(row, source))
            change[name] = F
            if rate_of(name, rates) in rates:
                d = m[name] - expanded(dot(row, feq)) + Fraction(1, 2) * F
                change[name] = F - rates[rate_of(name, rates)] * let(f"d_{name}", d)
        return [a + b for a, b in zip(cell.f, base.populations(change, let), strict=True)]


def rate_of(moment: str, rates: Container[str] = ()) -> str:
    """The name of a moment's rate; for the conserved rho and j this name is not in `rates`."""
    group, _, component = moment.partition("_")
    if group != "p":
        return f"s_{group}"
    return "s_nu_xy" if component in ("xy", "yz", "zx") and "s_nu_xy" in rates else "s_nu"
