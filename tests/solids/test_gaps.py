"""Gaps between shapes with formulas and with fields of distances, and the contacts in a box."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.body_forces import flow

from mpilbm.case.case import parse_case
from mpilbm.core.errors import BodyError, CaseError
from mpilbm.core.registry import make
from mpilbm.solids.contacts import Contacts
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.gaps import nearest
from mpilbm.solids.moving_bodies import MovingBody
from mpilbm.solids.sampled_shape import sampled

SIZE = (60, 60, 60)
CELLS = {"name": "partially_saturated"}


def placed(name: str, by_field: bool, turn: int):
    """A ball of radius 5, or a cube of 8 cells, with a rotation."""
    given = {
        "ball": {"name": "sphere", "centre": [30, 30, 30], "radius": 5},
        "cube": {"name": "box", "lower": [26, 26, 26], "upper": [34, 34, 34]},
    }[name]
    shape = make("shapes", given)
    rigid = sampled(shape, SIZE) if by_field else shape.rigid(3)
    R = Rotation.random(random_state=turn).as_matrix() if turn else np.eye(3)
    return SimpleNamespace(shape=rigid, rotation=R)


@pytest.mark.parametrize(("one", "two"), [*product([False, True], repeat=2)])
@pytest.mark.parametrize("gap", [-0.3, 0.4, 1.0, 1.4, 1.9])
def test_the_gap_between_two_balls(one, two, gap):
    """Exact by formulas; 0.1 cells by points of surfaces, of which each cell has one."""
    a, b = placed("ball", one, 1), placed("ball", two, 2)
    direction = np.array([0.6, -0.48, 0.64])
    found = nearest(a, b, (10 + gap) * direction, SIZE, 2.0)
    if one and two and gap > 1.5 and found is None:  # fields end there
        return
    error = 0.1 if one or two else 1e-9
    assert found.gap == pytest.approx(gap, abs=error)
    assert found.normal == pytest.approx(direction, abs=0.1 if one or two else 1e-6)
    assert np.linalg.norm(np.cross(found.point, direction)) < 0.6
    assert found.point @ direction == pytest.approx(-5 - gap / 2, abs=0.2)
    back = nearest(b, a, -(10 + gap) * direction, SIZE, 2.0)
    assert back.gap == pytest.approx(found.gap, abs=1e-9)
    assert back.normal == pytest.approx(-found.normal, abs=1e-9)
    assert nearest(a, b, 13 * direction, SIZE, 2.0) is None


@pytest.mark.parametrize(("one", "two"), [*product([False, True], repeat=2)])
def test_flat_sides_touch_in_their_middle(one, two):
    """A cube that lies on a cube: normal and point are those of the common part of the sides."""
    a, b = placed("cube", one, 0), placed("cube", two, 0)
    found = nearest(a, b, np.array([2.0, 1.0, 8.7]), SIZE, 2.0)
    assert found.gap == pytest.approx(0.7, abs=0.02)
    assert found.normal == pytest.approx([0, 0, 1], abs=0.05)
    assert found.point[2] == pytest.approx(-4.35, abs=0.05)
    assert np.abs(found.point[:2] - [-1, -0.5]).max() < 1


def test_the_gap_changes_continuously():
    """Of an ellipsoid that turns above another one: steps of the gap and of the point are small."""
    shape = make("shapes", {"name": "tilted_ellipsoid", "centre": [30, 30, 30], "radii": [8, 5, 4]})
    field, seen = sampled(shape, SIZE), []
    for angle in np.arange(0, 90, 0.6):
        R = Rotation.from_euler("y", angle, degrees=True).as_matrix()
        top = np.sqrt((8 * np.sin(np.radians(angle))) ** 2 + (4 * np.cos(np.radians(angle))) ** 2)
        a = SimpleNamespace(shape=field, rotation=R)
        b = SimpleNamespace(shape=field, rotation=np.eye(3))
        found = nearest(a, b, np.array([0.3, 0.2, top + 4.5]), SIZE, 1.5)
        seen.append([found.gap, *found.point, *found.normal])
    steps = np.abs(np.diff(seen, axis=0)).max(axis=0)
    print(f"largest step of gap, point and normal: {steps.round(3)}")
    assert steps[0] < 0.03
    assert steps[1:4].max() < 0.8
    assert steps[4:].max() < 0.3


def contacts(size, *bodies, periodic=True) -> tuple[Contacts, list[FreePath]]:
    """The contacts of a case in 2D, and the paths of its free bodies."""
    tables = flow("D2Q9", size=size, body=list(bodies), initial={"u": [0, 0]})
    tables["domain"] = {"size": size, "periodic": [periodic, False]}
    tables["boundary"] = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    if not periodic:
        tables["boundary"][0]["where"] += ["x-", "x+"]
    del tables["force"]
    case = parse_case(tables, "test.toml")
    moving, paths = [], []
    for body in MovingBody.all(case):
        label = case.bodies[body.number].label
        path = FreePath(case, label, body.motion, body.shape, body.size)
        moving.append(MovingBody(case, body.number, body.shape, path, body.first))
        paths.append(path)
    return Contacts(case, tuple(moving)), paths


def free(label: str, shape: dict, **motion) -> dict:
    motion = {"name": "free", "density": 2.0} | motion
    return {"label": label, "shape": shape, "boundary": CELLS, "motion": motion}


def test_a_long_body_is_near_two_images_of_another_one():
    """A disc between both ends of a bar, through a periodic face: both repel it."""
    bar = {"name": "box", "lower": [4.4, 8.0], "upper": [25.4, 11.0]}
    still = {"label": "bar", "shape": bar, "boundary": {"name": "bounce_back"}}
    disc = {"name": "sphere", "centre": [0.0, 9.5], "radius": 3.0}
    found, (path,) = contacts([30, 20], free("disc", disc), still)
    force, _ = found.loads(0)["disc"]
    right, left = (path.strength * (1 - gap / 2) ** 2 for gap in (1.4, 1.6))
    assert force[:2] == pytest.approx([left - right, 0], abs=1e-9)


OTHERS = {
    "field": {"name": "tilted_ellipsoid", "centre": [12.0, 5.0], "radii": [7, 3]},
    "union": {
        "name": "union",
        "of": [
            {"name": "box", "lower": [5, 2], "upper": [19, 8]},
            {"name": "sphere", "centre": [19, 5], "radius": 2},
        ],
    },
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("by_field", [False, True])
def test_bodies_at_rest_of_any_shape_repel(name, by_field):
    """Upwards, where their gap is 1; they refuse a body in them."""
    still = {"label": "rock", "shape": OTHERS[name], "boundary": {"name": "bounce_back"}}
    radii = [3.0, 3.0] if by_field else None
    disc = {"name": "sphere", "centre": [12.0, 12.0], "radius": 3.0}
    if radii:
        disc = {"name": "tilted_ellipsoid", "centre": [12.0, 12.0], "radii": radii}
    found, (path,) = contacts([24, 24], free("disc", disc), still, periodic=False)
    force, torque = found.loads(0)["disc"]
    contact = 1.5 if by_field else 2.0
    assert force[1] == pytest.approx(path.strength * (1 - 1 / contact) ** 2, rel=0.15)
    assert abs(force[0]) < 0.1 * force[1]
    assert abs(torque[2]) < 0.5 * force[1]
    inner = {key: value for key, value in disc.items() if key != "centre"} | {"centre": [12, 6.0]}
    with pytest.raises(CaseError, match="touches body 'rock' at the start"):
        contacts([24, 24], free("disc", inner), still, periodic=False)


def test_a_wall_turns_a_body_that_lies_on_its_edge():
    """An ellipse upright and tilted near the floor: the torque turns it further, to its flat side.

    The force acts half a cell or less from the point that is nearest to the wall.
    """
    for tilt in (0.0, 20.0):
        angle = np.radians(90 - tilt)
        high = np.sqrt((8 * np.sin(angle)) ** 2 + (4 * np.cos(angle)) ** 2)
        lies = {"name": "tilted_ellipsoid", "centre": [15.2, high + 1.0], "radii": [8, 4]}
        found, (path,) = contacts([30, 24], free("seed", lies | {"rotate": [0, 0, 90 - tilt]}))
        force, torque = found.loads(0)["seed"]
        assert force[:2] == pytest.approx([0, path.strength / 4], rel=0.1)
        arm = (64 - 16) * np.sin(angle) * np.cos(angle) / high  # x of the lowest point is -arm
        assert torque[2] / force[1] == pytest.approx(-arm, abs=0.5)


def test_a_body_through_a_wall_of_the_box_is_refused():
    lies = {"name": "tilted_ellipsoid", "centre": [15.2, 3.0], "radii": [8, 4]}
    with pytest.raises(CaseError, match="touches the wall at y- at the start"):
        contacts([30, 24], free("seed", lies))
    parts = {"one": 8.0, "two": 18.0}
    shape = {"name": "tilted_ellipsoid", "radii": [4, 3]}
    pair = (free(label, shape | {"centre": [x, 12.0]}) for label, x in parts.items())
    found, paths = contacts([30, 24], *pair)
    state = paths[1].at(0)
    paths[1].begin(0, type(state)(**(vars(state) | {"centre": np.array([14.0, 12.0, 0])})))
    with pytest.raises(BodyError, match="touches body 'two' in step 1"):
        found.loads(0)
