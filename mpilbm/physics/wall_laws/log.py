"""The logarithmic law with a viscous sublayer, without a buffer layer between them."""

from math import log

from mpilbm.core.formulas.trees import binary_log, largest, smallest, sqrt, unnamed
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let
from mpilbm.physics.wall_laws import GRAINS, KAPPA, B, WallLaw, first_u_plus

STEPS = 3  # of Newton's method


@register("wall_laws", "log")
class Log(WallLaw):
    """u+ = min(y+, ln(y+) / k + B), k = 0.41, B = 5.2: the smaller one for y+ > 1.

    They meet at y+ = 11.2 on a smooth wall. In the buffer layer, at y+ from 5 to 30, u+ is up to
    16 % larger than with `spalding`. On a rough wall ln(y+ / (1 + GRAINS k_s+)) is in place of
    ln(y+). [von Karman 1930]
    """

    rough = True

    def u_plus(self, Re: Expression, ratio: Expression = 0, let: Let = unnamed) -> Expression:
        """The zero of k (u+ - B) + ln(u+ + GRAINS ratio Re_y) - ln(Re_y), at most sqrt(Re_y)."""
        limited = let("limited_Re", largest(Re, 1))  # below, u+ = sqrt(Re_y) in any case
        log_Re = let("log_Re", binary_log(limited))
        u = let("u_plus_0", first_u_plus(limited, log_Re))
        for k in range(1, STEPS + 1):
            factor = let(f"factor_{k}", u + GRAINS * ratio * limited)
            excess = KAPPA * (u - B) + log(2) * (binary_log(factor) - log_Re)
            u = let(f"u_plus_{k}", u - excess / (KAPPA + 1 / factor))
        return smallest(let("viscous", sqrt(Re)), let("turbulent", largest(u, 1)))
