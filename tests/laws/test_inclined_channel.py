"""Channels that cross the cells at a slope of 1/2: walls at a different distance on each link."""

import numpy as np
import pytest
from support.faces import closed
from support.slabs import Cluster
from support.walls import CENTRAL, LINEAR, QUADRATIC, body

STRETCH = 2 / np.sqrt(5)  # width of the channel, divided by its width along y
ALONG = np.array([2, 1]) / np.sqrt(5)


def named(wall: dict) -> str:
    return f"{wall['name']}{wall.get('order', '')}"


def strip(low: float, high: float) -> dict:
    """The points with low <= y - x/2 <= high."""
    ends = ({"name": "half_space", "point": [0, at], "normal": [-1.0, 2.0]} for at in (high, low))
    return {"name": "difference", "of": [*ends]}


def inclined(wall: dict, n: int, offset: float, nu: float) -> tuple[float, float]:
    """Errors of the velocity, relative to its largest value, in a channel n cells wide along y.

    The first is the root mean square of the mean of two steps, the second the largest difference
    between these steps. The box of 8/3 n x 4/3 n cells is periodic, and the flow starts as the
    solution.
    """
    ny = 4 * n // 3
    width, top = n * STRETCH, 0.06 / n
    force = 8 * nu * top / width**2
    s = f"(y - x/2 - {offset})"
    s = f"({s} + where({s} < 0, {ny}, 0) - where({s} >= {ny}, {ny}, 0))*{STRETCH}"
    flow = f"{4 * top / width**2}*{s}*({width} - {s})"
    solid = [strip(offset + n + k * ny, offset + (k + 1) * ny) for k in (-2, -1, 0, 1)]
    tables = closed(
        "D2Q9", [2 * ny, ny], [], body=[body(wall, "walls", name="union", of=solid)],
        fluid={"viscosity": nu}, collision={"name": "trt"},
        force={"name": "guo", "value": [float(force * e) for e in ALONG]},
        initial={"rho": 1, "u": [f"{e}*{flow}" for e in ALONG]},
    )  # fmt: skip
    tables["domain"]["periodic"] = [True, True]
    cluster = Cluster(tables).start().run(round(width**2 / (2 * nu)))
    y, x = np.mgrid[:ny, : 2 * ny] + 0.5
    s = (y - x / 2 - offset) % ny
    fluid, s = s < n, s * STRETCH
    one = cluster.fields("u")["u"][:, 0]
    two = cluster.run(1).fields("u")["u"][:, 0]
    exact = (4 * top * s * (width - s) / width**2)[..., None] * ALONG
    error = np.linalg.norm((one + two) / 2 - exact, axis=-1)[fluid] / top
    apart = np.linalg.norm(two - one, axis=-1)[fluid].max() / top
    return float(np.sqrt((error**2).mean())), float(apart)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("nu", [0.1, 0.5])
@pytest.mark.parametrize("wall", [CENTRAL, LINEAR, QUADRATIC], ids=named)
def test_walls_at_a_slope_are_of_second_order(wall, nu):
    for offset in (0.13, 0.71):
        (coarse, _), (fine, apart) = (inclined(wall, n, offset, nu) for n in (9, 18))
        slope = np.log2(coarse / fine)
        print(f"{wall}, offset {offset}, nu {nu}: {coarse:.2e}, {fine:.2e}, order {slope:.2f}")
        assert slope > 1.85
        assert apart < 0.2 * fine


def table() -> None:
    """Print the rows of the manual."""
    for wall in (CENTRAL, LINEAR, QUADRATIC, {"name": "bounce_back"}):
        for nu in (0.5, 0.1, 0.02):
            for offset in (0.13, 0.37, 0.71):
                found = [inclined(wall, n, offset, nu)[0] for n in (12, 24, 48)]
                orders = -np.diff(np.log2(found))
                print(wall, nu, offset, *(f"{e:.2e}" for e in found), *np.round(orders, 2))


if __name__ == "__main__":
    table()
