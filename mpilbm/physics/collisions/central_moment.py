"""Relaxation of the moments in the frame that moves with the flow."""

from math import prod
from typing import Literal

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Populations, Rates
from mpilbm.physics.algebra import split
from mpilbm.physics.collisions.central_moment_transform import CS2, Frame, InFrame, label

HIGHER = {3: "omega_third", 4: "omega_fourth", 5: "omega_fifth", 6: "omega_sixth"}


@register("collisions", "central_moment")
class CentralMoment(InFrame):
    """k*_n = k_n - omega_n (k_n - keq_n), k_n = sum_i f_i prod_a H_n_a(c_ia - u_a).

    H_0 = 1 and H_1(c) = c. `basis` = "hermite": H_2(c) = c^2 - cs2, and keq = 0 above order 0;
    "powers": H_2(c) = c^2, and keq are the central moments of a Maxwellian (rho times cs2 for each
    n_a = 2). The second moments relax with omega, nu = cs2 (1/omega - 1/2), except their trace,
    which relaxes with `omega_bulk`. Each of the orders 3 to 6 has its own rate; a rate of 1 costs
    little time. With "powers" the moments of order 4 contain a part of the stress, which relaxes
    with the rate of that order: on D3Q27, with 32 cells per wavelength and tau = 0.512, some
    diagonal shear waves decay 6 % too fast, and 0.3 % with "hermite". D2Q9 and D3Q27; equilibrium
    `hermite`. [Geier, Greiner & Korvink 2006, Phys. Rev. E 73, 066705; De Rosis 2017, Phys. Rev. E
    95, 013310; Hermite: Coreixas, Chopard & Latt 2019, Phys. Rev. E 100, 033305]
    """

    basis: Literal["hermite", "powers"] = Field(
        "hermite", description="polynomials that define the moments"
    )
    omega_bulk: float = Field(
        1.0, gt=0, lt=2, description="rate of the trace of order 2; sets the bulk viscosity"
    )
    omega_third: float = Field(1.0, gt=0, lt=2, description="rate of the moments of order 3")
    omega_fourth: float = Field(1.0, gt=0, lt=2, description="rate of the moments of order 4")
    omega_fifth: float = Field(1.0, gt=0, lt=2, description="rate of the moments of order 5")
    omega_sixth: float = Field(1.0, gt=0, lt=2, description="rate of the moments of order 6")

    numbers = ("omega_bulk", *HIGHER.values())
    bulk_rate = "omega_bulk"
    lattices = ("D2Q9", "D3Q27")

    def problems(self, case: Case) -> list[str]:
        """Also refuses rates of orders that the lattice does not have."""
        D = case.lattice.D
        return super().problems(case) + [
            f"{name}: found {getattr(self, name):g}, but {case.lattice.name} has no moments of "
            f"order {order}; leave the key out"
            for order, name in HIGHER.items()
            if order > 2 * D and getattr(self, name) != 1
        ]

    @property
    def sigma(self) -> Expression:
        """cs2 for the basis "hermite", 0 for "powers"."""
        return CS2 if self.basis == "hermite" else 0

    def relaxed_populations(self, frame: Frame, f: Populations, rates: Rates) -> list[Expression]:
        """Return the Q populations whose moments are relaxed towards those of the equilibrium.

        The moments k are deviations from the moments at rest, so the equilibria contain `density`
        in place of rho.
        """
        k, density, rate = frame.moments(f), frame.cell.density, {2: "omega"} | HIGHER
        feq = {n: density * prod(frame.of_rest[order] for order in n) for n in k}
        excess = {n: k[n] - feq[n] for n in k if sum(n) > 1}
        left = {n: (1 - rates[rate[sum(n)]]) * value for n, value in excess.items()}
        diagonal = [n for n in k if sorted(n)[-1] == sum(n) == 2]
        second = [excess[n] for n in diagonal]
        relaxed = split(second, 1 - rates["omega"], 1 - rates["omega_bulk"])
        left |= dict(zip(diagonal, relaxed, strict=True))
        left = {n: frame.named(label("left", n), feq[n] + value) for n, value in left.items()}
        return frame.populations({(0,) * frame.lattice.D: density} | left)
