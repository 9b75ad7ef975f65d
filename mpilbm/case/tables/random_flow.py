"""The table of a random initial velocity."""

from typing import Annotated

from pydantic import Field

from mpilbm.case.tables.values import Positive
from mpilbm.core.quantity import VELOCITY
from mpilbm.core.registry import Parameters


class RandomFlow(Parameters):
    """A random velocity without divergence, for decaying turbulence in a periodic box, 2D or 3D.

    E(k) ~ k^slope exp(-slope/2 (k/peak)^2),  sum_k E(k) = speed^2 / 2

    k is the number of waves in the longest side of the box. The largest value of E is at `peak`,
    and E is 0 beyond 3 `peak`. Every wave is perpendicular to its wave vector: the divergence is
    zero for derivatives by Fourier transform, and small, of second order, for differences. The mean
    velocity is 0. The flow depends on `seed` and the proportions of the box, not on the number of
    cells or ranks.
    [Rogallo 1981, NASA TM 81315; Orszag & Patterson 1972, Phys. Rev. Lett. 28, 76]
    """

    speed: Annotated[Positive, VELOCITY] = Field(description="rms of |u|", examples=[0.05])
    peak: float = Field(
        4.0,
        ge=1,
        le=24,
        description="wave number of the largest energy, in waves per longest side; below a sixth "
        "of the cells of this side",
        examples=[4],
    )
    slope: float = Field(4.0, gt=0, le=16, description="power of k at small wave numbers")
    seed: int = Field(0, ge=0, lt=2**63, description="another number gives another flow")
