"""Relaxation of each group of moments with its own rate."""

from collections.abc import Callable
from fractions import Fraction

from pydantic import Field

from mpilbm.physics.algebra import dot, expanded
from mpilbm.physics.collisions import Collision, unnamed
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.lattices.basis import basis
from mpilbm.registry import register


def flux_rate(s_nu: float) -> float:
    """s_q on D2Q9: 1.9 [Lallemand & Luo 2000], but (1/s_q - 1/2) >= (1/s_nu - 1/2) / 2.

    With L = 1/s - 1/2 a shear wave with wave number k along an axis decays with
    nu (1 + k^2 (1/12 + L_nu (L_nu - 2 L_q) / 3)). The condition limits its error to k^2 / 12 at any
    viscosity.
    """
    return min(1.9, 4 * s_nu / (s_nu + 2))


Default = float | Callable[[float], float] | None
DEFAULTS: dict[str, dict[str, Default]] = {  # rates by lattice; None: s_nu; a function: of s_nu
    "D2Q9": {"s_e": 1.64, "s_eps": 1.54, "s_q": flux_rate},  # [Lallemand & Luo 2000]
    "D3Q13": {"s_e": 1.0, "s_m": 1.0},  # [Tölke & Krafczyk 2008]
    "D3Q15": {"s_e": 1.6, "s_eps": 1.2, "s_q": 1.6, "s_xyz": 1.2},  # [d'Humières et al. 2002]
    "D3Q19": {"s_e": 1.19, "s_eps": 1.4, "s_q": 1.2, "s_pi": 1.4, "s_m": 1.98},  # the same
    "D3Q27": {"s_e": 1.54, "s_eps": 1.4, "s_q": 1.5, "s_pi": None, "s_m": 1.74, "s_xyz": 1.74,
              "s_xxyz": None, "s_xyyzz": 1.83, "s_xxyyzz": 1.61},  # [Suga et al. 2015]
}  # fmt: skip


def rate(moments: str):
    """A field for the rate of some moments; None: the default of the lattice in DEFAULTS."""
    return Field(None, gt=0, lt=2, description=moments, examples=[1.2])


@register("collisions", "mrt")
class MRT(Collision):
    """f* = f - M^-1 S M (f - feq): moments m = M f relax with a rate per group, the diagonal of S.

    s_nu is the rate of the shear stress, and the one that a closure changes: nu = cs2 (1/s_nu -
    1/2). The other rates are those of the literature unless given (s_q of D2Q9 decreases with s_nu,
    see `flux_rate`); s_e sets the bulk viscosity. With the default rates no wave grows, at speeds
    up to 0.1, from nu = 0.00013 on D2Q9, 0.0025 on D3Q15, 0.0012 on D3Q19 and 0.0014 on D3Q27. On
    D3Q27 s_pi = s_xxyz = s_nu: with the published 1.98, waves grow from nu = 0.03 on in a fluid at
    rest. Half-way walls lie half-way (to 1e-5 in a channel) if s_q, and s_m equal to it, satisfy
    (1/s_nu - 1/2) (1/s_q - 1/2) = 3/16; with the default rates they are 1 % off. The rows of M are
    those of lattices/basis.py, for D2Q9, D3Q13, D3Q15, D3Q19, D3Q27. equilibrium = {name =
    "dhumieres"} gives the D3Q19 model of d'Humières et al., stable from nu = 0.007 on at a speed of
    0.1.

    On D3Q13 p_xx and p_ww relax at s_nu, nu = (1/s_nu - 1/2)/4, and p_xy, p_yz, p_zx at s_nu_xy,
    nu = (1/s_nu_xy - 1/2)/2; plane walls lie half-way at 2 nu (1/s_m - 1/2) = 1/4. With
    equilibrium = {name = "incompressible"} it is the model of Tölke & Krafczyk, whose s_h is s_m.
    [Lallemand & Luo 2000, Phys. Rev. E 61, 6546; d'Humières et al. 2002, Phil. Trans. R. Soc. A
    360, 437; Suga et al. 2015, Comput. Math. Appl. 69, 518; papers: Tölke & Krafczyk 2008, (3)-(7);
    Obrecht et al. 2013]
    """

    s_e: float | None = rate("energy, |c|^2")
    s_eps: float | None = rate("|c|^4")
    s_q: float | None = rate("energy flux, c |c|^2")
    s_pi: float | None = rate("|c|^2 times shear; D3Q19, D3Q27")
    s_m: float | None = rate("c_x (c_y^2 - c_z^2), …; D3Q13, D3Q19, D3Q27")
    s_xyz: float | None = rate("c_x c_y c_z; D3Q15, D3Q27")
    s_xxyz: float | None = rate("c_x^2 c_y c_z, …; D3Q27")
    s_xyyzz: float | None = rate("c_x c_y^2 c_z^2, …; D3Q27")
    s_xxyyzz: float | None = rate("c_x^2 c_y^2 c_z^2; D3Q27")

    shear_rate = "s_nu"
    numbers = tuple(DEFAULTS["D3Q27"])
    lattices = tuple(DEFAULTS)
    needs_isotropy = 2

    def problems(self, case) -> list[str]:
        """Also refuses rates of moments that the lattice does not have."""
        allowed = tuple(DEFAULTS.get(case.lattice.name, self.numbers))
        return super().problems(case) + [
            f"{name}: {case.lattice.name} has no such moments; allowed: {', '.join(allowed)}"
            for name in self.numbers
            if getattr(self, name) is not None and name not in allowed
        ]

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """The shear rate from the viscosity; the others as given, or the defaults."""
        shear = lattice.moment(
            0, 0, 1, 1
        )  # sum_i w_i c_ix^2 c_iy^2: factor of the stress in the momentum flux
        normal = (lattice.moment(0, 0, 0, 0) - shear) / 2
        by_share = {"s_nu": normal} if normal == shear else {"s_nu": normal, "s_nu_xy": shear}
        cs2 = lattice.cs2
        rates = {k: 1 / (nu / float(v / cs2) + 0.5) for k, v in by_share.items()}
        for name, usual in DEFAULTS[lattice.name].items():
            usual = usual(rates["s_nu"]) if callable(usual) else usual
            known = (getattr(self, name), usual, rates["s_nu"])
            rates[name] = next(s for s in known if s is not None)
        return rates

    def relax(self, lattice: Lattice, d, **rates) -> list:
        """M^-1 S M d."""
        m = basis(lattice.c).moments(d)
        s = {name: rates.get(rate_of(name, rates), 0) for name in m}
        return basis(lattice.c).populations({name: s[name] * m[name] for name in m})

    def collide(self, lattice: Lattice, f, density, rho, u, source, rates, let=unnamed) -> list:
        """f* = f + M^-1 (M F - S (M f - M feq + M F/2)), with M feq and M F multiplied out."""
        base, feq = basis(lattice.c), self.feq(lattice, density, rho, u)
        m, change = base.moments(f, let), {}
        for name, row in base.rows.items():
            F = 0 if source is None else expanded(dot(row, source))
            change[name] = F
            if rate_of(name, rates) in rates:
                d = m[name] - expanded(dot(row, feq)) + Fraction(1, 2) * F
                change[name] = F - rates[rate_of(name, rates)] * let(f"d_{name}", d)
        return [a + b for a, b in zip(f, base.populations(change, let), strict=True)]


def rate_of(moment: str, rates=()) -> str:
    """The name in `rates` of the rate of a moment. The conserved moments rho and j have none."""
    group, _, component = moment.partition("_")
    if group != "p":
        return f"s_{group}"
    return "s_nu_xy" if component in ("xy", "yz", "zx") and "s_nu_xy" in rates else "s_nu"
