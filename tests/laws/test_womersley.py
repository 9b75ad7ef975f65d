"""A channel in which the pressure gradient oscillates, and the torque between cylinders."""

import numpy as np
import pytest
from support.body_forces import OUTPUT, STILL, flow, sample
from support.faces import closed
from support.pairs import defined
from support.slabs import Cluster

from mpilbm.core.registry import names

NU, PERIOD = 0.1, 600


def womersley(n: int, t: float) -> np.ndarray:
    """u nu / (G n^2) at cell centres, for a force G cos(w t): (1 - cosh(k y) / cosh(k n/2)) / i w.

    k^2 = i w / nu, y from the middle. [Womersley 1955, J. Physiol. 127, 553, in a plane channel]
    """
    w = 2 * np.pi / PERIOD
    k, y = np.sqrt(1j * w / NU), np.arange(n) + 0.5 - n / 2
    u = (1 - np.cosh(k * y) / np.cosh(k * n / 2)) / (1j * w) * np.exp(1j * w * t)
    return u.real * NU / n**2


def error(tables: dict, n: int, G: float) -> float:
    """Largest over a period, of the profile in the middle, over the largest u."""
    cluster, worst, top = Cluster(tables).start().run(3 * PERIOD), 0.0, 0.0
    for step in range(3 * PERIOD, 4 * PERIOD, PERIOD // 8):
        u = cluster.fields("u")["u"]
        middle = u[u.shape[0] // 2, 0, :, 1]
        exact = womersley(n, step)
        worst = max(worst, float(np.abs(middle * NU / (G * n**2) - exact).max()))
        top = max(top, float(np.abs(exact).max()))
        cluster.run(PERIOD // 8)
    return worst / top


def channel(n: int, ends: list, **more) -> dict:
    sides = {"name": "bounce_back", "where": ["x-", "x+"]}
    more = {"fluid": {"viscosity": NU}, "collision": {"name": "trt"}} | more
    return closed("D2Q9", [n, 9], [*ends, sides], initial={"rho": 1, "u": [0, 0]}, **more)


COLLISIONS = [n for n in names("collisions") if defined("D2Q9", n) and n != "entropic"]


@pytest.mark.parametrize("collision", COLLISIONS)
def test_womersley_channel_by_a_force(collision):
    n, G = 14, 1e-6
    force = {"name": "guo", "value": [0.0, f"{G}*cos(2*pi*t/{PERIOD})"]}
    tables = channel(n, [], force=force, collision={"name": collision})
    tables["domain"]["periodic"] = [False, True]
    found = error(tables, n, G)
    print(f"{collision}: {found:.2e}")
    assert found < (0.005 if collision == "trt" else 0.02)


def test_womersley_channel_by_pressure():
    """Densities at both ends, eight cells apart: a moment of sound, a thousandth of the period."""
    n, G = 14, 1e-6
    high = f"1 + {3 * 8 * G}*cos(2*pi*t/{PERIOD})"
    ends = [{"name": "zou_he", "where": ["y-"], "rho": high},
            {"name": "zou_he", "where": ["y+"], "rho": 1.0}]  # fmt: skip
    found = error(channel(n, ends), n, G)
    print(f"pressure: {found:.2e}")
    assert found < 0.03


def test_torque_between_rotating_cylinders_whose_walls_are_interpolated():
    """4 pi mu Omega R1^2 R2^2 / (R2^2 - R1^2) on both, within 1 %."""
    n, inner, outer, speed, nu = 30, 5.5, 13.0, 0.004, 0.1
    centre = [n / 2 + 0.2, n / 2 - 0.1]
    x, y = (f"({a} - {c})" for a, c in zip("xy", centre, strict=True))
    spin = {"name": "interpolated", "velocity": [f"-{speed}*{y}", f"{speed}*{x}"]}
    ring = {"name": "torus", "centre": centre, "radius": outer + 1, "tube": 1}
    body = [
        {"label": "inner", "boundary": spin,
         "shape": {"name": "sphere", "centre": centre, "radius": inner}},
        {"label": "outer", "shape": ring, "boundary": {"name": "interpolated"}},
    ]  # fmt: skip
    tables = flow("D2Q9", size=[n, n], body=body, initial={"u": [0, 0]}, force=STILL)
    tables |= {"fluid": {"viscosity": nu}, "collision": {"name": "trt"}, "output": [OUTPUT]}
    moments = sample(Cluster(tables).start().run(3000))
    force, torque = moments[:, :2], moments[:, 2]
    torque = torque - centre[0] * force[:, 1] + centre[1] * force[:, 0]
    exact = 4 * np.pi * nu * speed * inner**2 * outer**2 / (outer**2 - inner**2)
    print(torque / exact - [-1, 1])
    assert torque == pytest.approx([-exact, exact], rel=0.01)
