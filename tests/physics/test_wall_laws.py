"""Wall laws: each solves its own equation, and has the known limits on smooth and rough walls."""

from math import exp, log, sqrt

import pytest

from mpilbm.core.registry import find, make, names
from mpilbm.physics.wall_laws import FULLY_ROUGH, GRAINS, KAPPA, SMOOTH, B

LAWS = names("wall_laws")
ROUGH = [name for name in LAWS if find("wall_laws", name).rough]
RE = [10 ** (k / 4) for k in range(-16, 37)]  # y+ from 0.01 to 3e7


def y_plus(name: str, u: float, ratio: float, Re: float) -> float:
    """The equation of a law in its own form; k_s+ = ratio y+, y+ = Re / u+."""
    x, grains = KAPPA * u, 1 + GRAINS * ratio * Re / u
    if name == "spalding":
        return u + SMOOTH * (grains * exp(x) - 1 - x - x**2 / 2 - x**3 / 6)
    if name == "log":
        return max(u, SMOOTH * grains * exp(x)) if Re > 1 else u
    return u if u < (8.3**7) ** (1 / 6) else (u / 8.3) ** 7


@pytest.mark.parametrize("ratio", [0.0, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("name", LAWS)
def test_laws_are_solved(name, ratio):
    """Re_y = u+ y+ to rounding; the exponential makes 100 roundings of one in u+."""
    if ratio and name not in ROUGH:
        pytest.skip("the law has no roughness")
    law = make("wall_laws", name)
    for Re in RE:
        u = float(law.u_plus(Re, ratio))
        assert u * y_plus(name, u, ratio, Re) == pytest.approx(Re, rel=1e-9), Re


@pytest.mark.parametrize("name", LAWS)
def test_near_the_wall_the_flow_is_laminar(name):
    law = make("wall_laws", name)
    for Re in (1e-6, 1e-2, 1.0):
        assert float(law.u_plus(Re)) == pytest.approx(sqrt(Re), rel=1e-4)


@pytest.mark.parametrize("name", ROUGH)
def test_far_from_the_wall_the_flow_is_logarithmic(name):
    """Smooth, and fully rough: then u+ depends on y / k_s alone."""
    law, Re = make("wall_laws", name), 1e9
    smooth = float(law.u_plus(Re))
    assert smooth == pytest.approx(log(Re / smooth) / KAPPA + B, rel=1e-5)
    for ratio in (0.01, 0.3):
        rough = float(law.u_plus(Re, ratio))
        assert rough == pytest.approx(log(1 / ratio) / KAPPA + FULLY_ROUGH, rel=1e-3)


def test_laws_agree_where_they_hold():
    """In the logarithmic layer up to y+ = 1000 within 3 %."""
    for y in (50, 100, 300, 1000):
        Re = y * (log(y) / KAPPA + B)
        found = [float(make("wall_laws", name).u_plus(Re)) for name in LAWS]
        assert max(found) / min(found) < 1.03, (y, found)
