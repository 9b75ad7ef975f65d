"""The shares of bodies that move, on the device, against those of bodies at rest."""

import numpy as np
import pytest
from support.body_forces import flow
from support.cell_shares import shares
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.codegen.program import MOVED
from mpilbm.parallel.slabs import split
from mpilbm.solids import build

BOUNDARY = {"name": "partially_saturated"}
STILL = {"name": "translation", "displacement": [0, 0, 0]}
SHAPES = {
    "disc": {"name": "sphere", "centre": [8.7, 6.4], "radius": 3.1},
    "disc across a corner": {"name": "sphere", "centre": [0.3, 11.8], "radius": 2.9},
    "cylinder in 2D": {"name": "cylinder", "centre": [8.5, 6.0], "radius": 3.0},
    "rectangle": {"name": "box", "lower": [3.3, 4.5], "upper": [9.1, 8.0]},
    "sphere": {"name": "sphere", "centre": [5.7, 5.4, 6.1], "radius": 2.3},
    "cylinder": {
        "name": "cylinder", "centre": [5.7, 5.4, 6.1], "radius": 2.3, "axis": "y", "length": 3.7,
    },
    "endless cylinder": {"name": "cylinder", "centre": [5.7, 5.4, 1.0], "radius": 2.3, "axis": "z"},
    "cuboid": {"name": "box", "lower": [3.3, 4.5, 5.2], "upper": [6.1, 7.0, 8.4]},
}  # fmt: skip


def bodies(shape: dict, **motion) -> list[dict]:
    """A body, which moves if there is a motion."""
    more = {"motion": motion} if motion else {}
    return [{"label": "body", "shape": shape, "boundary": BOUNDARY} | more]


def tables(shape: dict, **motion) -> dict:
    D = len(shape.get("centre", shape.get("lower")))
    size = [17, 13] if D == 2 else [11, 12, 13]
    return flow("D2Q9" if D == 2 else "D3Q19", size=size, body=bodies(shape, **motion), output=[])


def at_rest(shape: dict) -> np.ndarray:
    case = parse_case(tables(shape), "rest.toml")
    (slab,) = split(case.shape, 1, case.domain.periodic[-1])
    return build.build(case, slab).shares.share


@pytest.mark.parametrize("name", SHAPES)
def test_a_body_that_does_not_move_has_the_shares_of_a_body_at_rest(name):
    """Byte for byte, though one is computed by NumPy and the other by the kernel."""
    D = len(SHAPES[name].get("centre", SHAPES[name].get("lower")))
    still = STILL | {"displacement": [0] * D}
    found = shares(Cluster(tables(SHAPES[name], **still), slabs=2))
    expected = at_rest(SHAPES[name])
    assert np.array_equal(found, expected)
    assert ((expected > 0) & (expected < 255)).sum() > 5


@pytest.mark.parametrize("name", ["rectangle", "cuboid", "cylinder"])
def test_a_quarter_turn(name):
    """A body that has turned by 90 degrees has the shares of the turned shape."""
    shape = SHAPES[name]
    D = len(shape.get("centre", shape.get("lower")))
    c = np.array([6.5, 6.5, 6.5][:D])

    def turned(x):
        return [float(c[0] - (x[1] - c[1])), float(c[1] + x[0] - c[0]), *x[2:]]

    if "centre" in shape:
        expected = shape | {"centre": turned(shape["centre"]), "axis": "x"}
    else:
        corners = np.array([turned(shape["lower"]), turned(shape["upper"])])
        ends = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
        expected = shape | {"lower": ends[0], "upper": ends[1]}
    motion = {"name": "rotation", "angle": "pi/2", "point": c.tolist()}
    found = shares(Cluster(tables(shape, **motion)))
    assert np.abs(found.astype(int) - at_rest(expected)).max() <= 1


def test_a_turning_box_keeps_its_volume():
    """To the rounding of shares, and to 1 % in 2D where the corners are products."""
    shape = {"name": "box", "lower": [5.0, 4.0], "upper": [10.0, 8.0]}
    found = []
    for angle in np.linspace(0, 1.5, 7):
        motion = {"name": "rotation", "angle": float(angle)}
        found.append(shares(Cluster(tables(shape, **motion))).sum() / 255)
    print("area of a turned rectangle, 20 cells:", np.round(found, 3))
    assert found == pytest.approx([20.0] * 7, rel=0.01)


def test_cells_that_the_body_has_left_are_fluid_again():
    """The shares after 30 steps are those of a body that begins there."""
    disc, speed = SHAPES["disc"], 0.3
    motion = {"name": "translation", "velocity": [speed, -speed / 2]}
    cluster = Cluster(tables(disc, **motion), slabs=3).start().run(30)
    there = [disc["centre"][0] + 30 * speed, disc["centre"][1] - 15 * speed]
    found, numbers = shares(cluster), shares(cluster, MOVED)
    assert np.array_equal(found, at_rest(disc | {"centre": there}))
    assert np.array_equal(numbers > 0, found > 0)


def test_bodies_that_move_and_bodies_at_rest_share_cells():
    """Shares are added; the cell has the velocity of the body with the largest share."""
    left = {"name": "sphere", "centre": [5.2, 6.4], "radius": 3.1}
    right = left | {"centre": [10.9, 6.4]}
    top = {"name": "box", "lower": [0, 9.2], "upper": [17, 11.3]}
    parts = [
        bodies(each)[0] | {"label": k} for k, each in zip("abc", (left, right, top), strict=True)
    ]
    rest = flow("D2Q9", size=[17, 13], body=parts, output=[])
    still = STILL | {"displacement": [0, 0]}
    moving = rest | {"body": [part | {"motion": still} for part in parts[:2]] + parts[2:]}
    case = parse_case(rest, "rest.toml")
    (slab,) = split(case.shape, 1, case.domain.periodic[-1])
    expected, cluster = build.build(case, slab).shares, Cluster(moving, slabs=2)
    assert np.abs(shares(cluster).astype(int) - expected.share).max() <= 1
    both = (expected.body == 1) | (expected.body == 2)
    assert np.array_equal(shares(cluster, MOVED)[both], expected.body[both])
