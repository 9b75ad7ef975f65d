"""The power law of Werner and Wengle, which needs no iteration."""

from mpilbm.core.formulas.trees import smallest, sqrt, unnamed
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let
from mpilbm.physics.wall_laws import WallLaw

FACTOR = 8.3


@register("wall_laws", "power")
class Power(WallLaw):
    """u+ = y+ for y+ <= 11.8, and u+ = 8.3 y+^(1/7) beyond.

    The solution is u+ = min(sqrt(Re_y), 8.3 (Re_y / 8.3)^(1/8)), by square roots alone. From
    y+ = 40 to 1000 u+ differs by at most 3 % from `spalding`; at y+ = 10 000 it is 10 % larger.
    For smooth walls.
    [Werner & Wengle 1993, Turbulent Shear Flows 8, 155]
    """

    def u_plus(self, Re: Expression, ratio: Expression = 0, let: Let = unnamed) -> Expression:
        """The smaller one of both branches."""
        eighth = sqrt(let("root_4", sqrt(let("root_2", sqrt(Re / FACTOR)))))
        return smallest(let("viscous", sqrt(Re)), let("turbulent", FACTOR * eighth))
