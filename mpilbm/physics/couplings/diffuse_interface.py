"""The diffuse interface of the free-energy model: its viscosity, and warnings on its parameters.

The mean of the viscosities causes an error in layered flows, see `layered_error`.
"""

from collections.abc import Sequence
from itertools import product
from math import log, sqrt
from typing import Literal

import numpy as np

from mpilbm.core.formulas.trees import largest, smallest
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression
from mpilbm.physics.algebra import dot
from mpilbm.physics.couplings import solids
from mpilbm.physics.couplings.phases import extremes
from mpilbm.physics.lattices import Lattice

Mean = Literal["harmonic", "linear"]
POINTS = 4001  # of a quadrature from the middle to the wall


def parts(mean: Mean, nu_1: float, nu_2: float) -> tuple[float, float]:
    """Return the two numbers that are averaged: nu (linear) or 1 / nu (harmonic)."""
    power = 1 if mean == "linear" else -1
    return nu_1**power, nu_2**power


def averaged(s: Expression, numbers: Sequence[Expression]) -> Expression:
    """Return s n_1 + (1 - s) n_2; exactly n_1 and n_2 at s = 1 and 0."""
    first, second = numbers
    return s * first + (1 - s) * second


def rate(mean: Mean, phi: Expression, numbers: Sequence[Expression], cs2: Expression) -> Expression:
    """Return cs2 / (nu + cs2 / 2) from the `parts`, with s = (1 + phi) / 2 from 0 to 1.

    Beyond this range, which phi leaves by some percent in drops and next to walls, nu would be
    negative at large viscosity ratios.
    """
    value = averaged(smallest(largest((1 + phi) / 2, 0), 1), numbers)
    return cs2 / (value + cs2 / 2) if mean == "linear" else cs2 * value / (1 + cs2 * value / 2)


def shift(nu_1: float, nu_2: float, width: float) -> float:
    """Return the apparent shift of an interface tanh(x / width) with the linear mean, in cells.

    In a flow along the interface with the shear stress S, the integral of S / nu across it is that
    of a sharp interface at the distance (width / 2) |log(nu_1 / nu_2)| within the fluid of the
    smaller viscosity. With the harmonic mean the distance is 0. If the interface is stretched, the
    integral of nu counts instead, and the harmonic mean causes this shift, into the fluid of the
    larger viscosity.
    """
    return width / 2 * abs(log(nu_1 / nu_2))


def layered_error(mean: Mean, nu_1: float, nu_2: float, width: float, cells: float) -> float:
    """Return the largest error of u in layered Poiseuille flow, due to the width of interfaces.

    One fluid fills the middle half between walls at a distance of `cells`; the larger value of the
    two arrangements. The error is |u - u_sharp| / |u_sharp| in L2, where u is the exact solution
    with the profile tanh(x / width) of phi: du/dy = -G y / nu.
    """
    y = np.linspace(0, cells / 2, POINTS)
    diffuse = (1 + np.tanh((cells / 4 - y) / width)) / 2
    sharp = (1 + np.sign(cells / 4 - y)) / 2
    errors = []
    for pair in ((nu_1, nu_2), (nu_2, nu_1)):
        inverse = averaged(diffuse, parts(mean, *pair)) ** (-1 if mean == "linear" else 1)
        u = _from_wall(y * inverse)
        exact = _from_wall(y * averaged(sharp, parts("harmonic", *pair)))
        errors.append(np.linalg.norm(u - exact) / np.linalg.norm(exact))
    return float(max(errors))


def _from_wall(slope: np.ndarray) -> np.ndarray:
    """Return the integral of the slope from the last point, by the trapezoidal rule."""
    steps = (slope[1:] + slope[:-1]) / 2
    return np.append(np.cumsum(steps[::-1])[::-1], 0.0)


# Smallest viscosity / kappa. 3000 steps of an interface wave 40 cells long in 2D ended in NaN up to
# nu = 0.02 with kappa = 0.08 and a = 0.02 (up to 0.03 with a = 0.04); up to 0.006 with half of
# kappa and a (0.01); and up to 0.003 with a quarter of both.
LEAST = 0.5
# Smallest width in cells. The next terms of the stencils, lap lap phi / 12 and grad lap phi / 6,
# reduce the tension by a / (12 kappa): 4 % at a width of 2, 2 % at 2.83, 1 % at 4.
RESOLVED = 1.9
ACCEPTED = 0.03  # error of the velocity of layers up to which no warning is given
ANGLES = 20, 160  # contact angles in degrees that were measured, see the manual
LARGEST_PHI = 1.1  # of an initial field; in equilibrium phi exceeds 1 in drops by some percent
COMPRESSED = 0.1  # relative difference of the initial density between the phases


def limit_warnings(case: Case, a: float, kappa: float, gamma: float, mean: Mean) -> list[str]:
    """Return warnings: interfaces, mobility, viscosities, contact angles and initial densities.

    The parameters are those of the free-energy model; `mean` is `viscosity_mean`.
    """
    width = sqrt(2 * kappa / a)
    return [
        *_of_interfaces(case, a, kappa, gamma, width),
        *_of_layers(mean, case, width),
        *_of_angles(case),
        *_of_densities(case),
    ]


def _of_interfaces(case: Case, a: float, kappa: float, gamma: float, width: float) -> list[str]:
    """Warnings: unresolved interfaces, unstable phi, viscosities too low for kappa."""
    found = []
    if width < RESOLVED:
        found.append(
            f"kappa: the interface tanh(x/{width:.3g}) is too thin for the grid, and "
            "its tension is not sqrt(8 kappa a/9); use kappa/a of 2 or more"
        )
    largest = stiffest(case.lattice)
    most = 4 / (largest * (2 * a + kappa * largest))
    if gamma > most:
        found.append(
            f"gamma: found {gamma:g}; above {most:.4g}, waves of phi with the "
            "shortest wavelength grow; lower gamma or kappa"
        )
    thin = min(viscosities(case))
    if thin < kappa * LEAST:
        found.append(
            f"kappa: found {kappa:g}; waves on an interface can end in NaN at a "
            f"viscosity below {kappa * LEAST:.3g}, found {thin:.3g}; raise the "
            "viscosity, or lower kappa and a"
        )
    return found


def _of_layers(mean: Mean, case: Case, width: float) -> list[str]:
    """Warnings: a viscosity ratio too large for the mean or for the width of interfaces.

    The layers lie between walls, whose distance is the shortest side that is not periodic.
    """
    nu, box = viscosities(case), case.domain
    walled = [n for n, periodic in zip(box.size, box.periodic, strict=False) if not periodic]
    n = min(walled, default=max(box.size))
    error = layered_error(mean, *nu, width, n)
    if error <= ACCEPTED:
        return []
    given = f"the viscosities {nu[0]:.4g} and {nu[1]:.4g}"
    wrong = f"in layers across {n} cells the velocity is wrong by up to {error:.0%}"
    if mean == "harmonic":
        return [
            f"kappa: interfaces tanh(x/{width:.3g}) are too wide for {given}: {wrong}; use "
            "more cells, or reduce kappa/a, but not below 2"
        ]
    moved = shift(*nu, width)
    better = layered_error("harmonic", *nu, width, n)
    return [
        f"viscosity_mean: found 'linear'; with {given}, a flow along an interface "
        f"tanh(x/{width:.3g}) is that of an interface {moved:.2g} cells further within the "
        f"fluid of the smaller viscosity: {wrong}, with 'harmonic' by {better:.1%}; use "
        "'harmonic'"
    ]


def _of_angles(case: Case) -> list[str]:
    """Warnings: contact angles outside the measured range."""
    low, high = ANGLES
    return [
        f"{key}.wetting.angle: found {angle:g}; allowed for an error of 3 degrees: {low} to "
        f"{high}; flatter drops are hardly thicker than their interface, and rounder ones touch "
        "the wall with their interface only; use an angle in this range"
        for key, boundary in solids(case)
        if not low <= (angle := (boundary.wetting or {}).get("angle", 90)) <= high
    ]


def _of_densities(case: Case) -> list[str]:
    """Warnings: initial densities other than those of the phases, rho = 1 and phi = 1 or -1."""
    ends = extremes(case)
    if ends is None:
        return []
    rho, phi, found = ends.sum(axis=1), ends[:, 0] - ends[:, 1], []
    if abs(phi).max() > LARGEST_PHI:
        found.append(
            "the phases have rho_1 - rho_2 = 1 and -1, but the initial densities have "
            f"{phi[1]:.3g} and {phi[0]:.3g}; give densities of 1 and nearly 0"
        )
    if rho.max() > rho.min() * (1 + COMPRESSED):
        found.append(
            "both phases have the same density, but the initial rho_1 + rho_2 is "
            f"{rho[1]:.3g} and {rho[0]:.3g}, a difference of the pressure; give densities "
            "with the sum 1; for a difference in weight give each fluid a force"
        )
    return found


def viscosities(case: Case) -> tuple[float, float]:
    """Return the viscosities of the two fluids."""
    first, second = case.fluids
    return first.viscosity, second.viscosity


def stiffest(lattice: Lattice) -> float:
    """Return the largest eigenvalue lambda of minus the discrete Laplacian.

    Its waves change sign from cell to cell. At tau_phi = 1, one step multiplies such a wave of phi
    by 1 - gamma lambda (2 a + kappa lambda) / 2. The wave grows if this factor is below -1; this
    limit of gamma is the same for all tau_phi.
    """
    waves = product((0, 1), repeat=lattice.D)
    each = ([w * (dot(c, k) % 2) for w, c in zip(lattice.w, lattice.c, strict=True)] for k in waves)
    return float(max(4 * sum(one) / lattice.cs2 for one in each))
