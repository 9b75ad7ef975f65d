"""Spalding's law: one formula for viscous sublayer, buffer layer and logarithmic law."""

from math import log

from mpilbm.core.formulas.trees import binary_log, power_of_two, unnamed
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let
from mpilbm.physics.wall_laws import GRAINS, KAPPA, SMOOTH, WallLaw, first_u_plus

STEPS = 4  # of Newton's method


@register("wall_laws", "spalding")
class Spalding(WallLaw):
    """y+ = u+ + exp(-k B) (exp(x) - 1 - x - x^2/2 - x^3/6), x = k u+, k = 0.41, B = 5.2.

    For any y+: u+ = y+ in the viscous sublayer, and the logarithmic law far from the wall. On a
    rough wall (1 + GRAINS k_s+) exp(x) is in place of exp(x). Times u+ the law is Re_y = W(u+); the
    zero of ln(W) - ln(Re_y) is found by Newton's method in a fixed number of steps.
    [Spalding 1961, J. Appl. Mech. 28, 455]
    """

    rough = True

    def u_plus(self, Re: Expression, ratio: Expression = 0, let: Let = unnamed) -> Expression:
        """The zero of ln(W) - ln(Re_y); k_s+ u+ = ratio Re_y."""
        log_Re = let("log_Re", binary_log(Re))
        u = let("u_plus_0", first_u_plus(Re, log_Re))
        for k in range(1, STEPS + 1):
            x = let(f"exponent_{k}", KAPPA * u)
            power = let(f"power_{k}", power_of_two(x / log(2)))
            slope, grains = power - 1 - x - x**2 / 2, GRAINS * ratio * Re * power
            smooth = slope - x**3 / 6
            W = let(f"product_{k}", u**2 + SMOOTH * (u * smooth + grains))
            change = 2 * u + SMOOTH * (KAPPA * (u * slope + grains) + smooth)
            u = let(f"u_plus_{k}", u - log(2) * (binary_log(W) - log_Re) * W / change)
        return u
