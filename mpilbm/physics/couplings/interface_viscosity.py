"""The viscosity within a diffuse interface, and the error that its mean causes in layered flows."""

from collections.abc import Sequence
from math import log
from typing import Literal

import numpy as np

from mpilbm.core.formulas.functions import largest, smallest
from mpilbm.model.expressions import Expression

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
