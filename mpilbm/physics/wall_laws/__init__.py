"""Wall laws: the mean velocity near a wall as a function of the distance, in wall units.

    u+ = u / u_tau,  y+ = y u_tau / nu,  u_tau = sqrt(stress / rho)

To add a law, write one file with a class derived from `WallLaw` and `@register("wall_laws", name)`
that defines `u_plus`. A wall model knows the velocity u at the distance y, and so the number
Re_y = u y / nu = u+ y+. The law is solved for u+, from which the stress follows:

    stress = rho nu (u / y) (Re_y / u+^2)
"""

from math import exp
from typing import ClassVar

from mpilbm.core.formulas.trees import largest, smallest, sqrt, unnamed
from mpilbm.core.registry import Parameters
from mpilbm.model.expressions import Expression, Let

KAPPA, B = 0.41, 5.2  # u+ = ln(y+) / KAPPA + B [Pope 2000, Turbulent Flows, eq. 7.43 and 7.44]
FULLY_ROUGH = 8.5  # u+ = ln(y / k_s) / KAPPA + FULLY_ROUGH [Nikuradse 1933, VDI-Forschungsheft 361]
SMOOTH = exp(-KAPPA * B)  # y+ = SMOOTH exp(KAPPA u+) is the logarithmic law of a smooth wall
GRAINS = exp(KAPPA * (B - FULLY_ROUGH))
VISCOUS = 5  # y+ at the edge of the viscous sublayer, in which u+ = y+
RISE = 1.54  # u+ is about RISE log2(Re_y) for y+ from 100 to 1e5: the start of iterations


class WallLaw(Parameters):
    """The mean velocity u+ near a wall as a function of Re_y = u y / nu.

    Laws with a roughness (`rough`) take the height k_s of sand grains. It multiplies the part of y+
    that grows exponentially with u+ by 1 + GRAINS k_s+, k_s+ = k_s u_tau / nu; on a fully rough
    wall then u+ = ln(y / k_s) / KAPPA + FULLY_ROUGH.
    [the interpolation: Colebrook 1939, J. Inst. Civ. Eng. 11, 133]
    """

    rough: ClassVar[bool] = False

    def u_plus(self, Re: Expression, ratio: Expression = 0, let: Let = unnamed) -> Expression:
        """Return u+ for Re_y > 0; `ratio` = k_s / y, and `let` as in Collision.collide.

        Iterations have a fixed number of steps and use functions of mpilbm/core/formulas/trees.py
        that have the same bits on all devices without fused operations.
        """
        raise NotImplementedError


def first_u_plus(Re: Expression, log_Re: Expression) -> Expression:
    """About u+ on a smooth wall, from Re_y and log2(Re_y): where an iteration starts."""
    return smallest(sqrt(Re), RISE * largest(log_Re, 1))
