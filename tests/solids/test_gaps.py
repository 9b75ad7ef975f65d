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
from mpilbm.solids.gaps import gaps
from mpilbm.solids.moving_bodies import MovingBody
from mpilbm.solids.sampled_shape import sampled

SIZE = (60, 60, 60)
CELLS = {"name": "partially_saturated"}


def nearest(*given):
    """The least gap of two shapes, or None."""
    return min(gaps(*given), key=lambda near: near.gap, default=None)


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


TILTED = {
    "box": ({"name": "box", "lower": [27, 27, 15], "upper": [33, 33, 45]}, 18 / np.sqrt(2)),
    "rod": (
        {"name": "tilted_ellipsoid", "centre": [30, 30, 30], "radii": [3, 3, 15]},
        np.sqrt((3**2 + 15**2) / 2),
    ),
}


@pytest.mark.parametrize("name", TILTED)
@pytest.mark.parametrize("gap", [-0.7, 1.2])
def test_the_end_of_a_tilted_body_is_near_an_endless_cylinder(name, gap):
    """The nearest point is 6 cells or more above or below the centre of the body."""
    given, furthest = TILTED[name]
    shape = make("shapes", given)
    R = Rotation.from_euler("y", 45, degrees=True).as_matrix()
    a = SimpleNamespace(shape=shape.rigid(3) or sampled(shape, SIZE), rotation=R)
    pole = make("shapes", {"name": "cylinder", "centre": [30, 30, 30], "axis": "z", "radius": 2})
    b = SimpleNamespace(shape=pole.rigid(3), rotation=np.eye(3))
    offset = np.array([2 + furthest + gap, 0, 0])
    for found, sign in (
        (nearest(a, b, offset, SIZE, 2.0), 1),
        (nearest(b, a, -offset, SIZE, 2), -1),
    ):
        if gap < 0:
            assert found.gap < 0
            continue
        assert found.gap == pytest.approx(gap, abs=0.15)
        assert found.normal == pytest.approx([sign, 0, 0], abs=0.1)


CROSSED = {
    "box": ({"name": "box", "lower": [27, 27, 10], "upper": [33, 33, 50]}, 3 * np.sqrt(2), 45),
    "cylinder": (
        {"name": "cylinder", "centre": [30, 30, 30], "axis": "z", "radius": 5, "length": 40},
        5,
        0,
    ),
}


@pytest.mark.parametrize("name", CROSSED)
@pytest.mark.parametrize("gap", [-0.5, 0.1, 0.5, 1.5])
def test_long_bodies_that_cross(name, gap):
    """Edge to edge or side to side, away from the middle of both."""
    given, half, turn = CROSSED[name]
    shape = make("shapes", given).rigid(3)
    one = Rotation.from_euler("z", turn, degrees=True).as_matrix()
    two = Rotation.from_euler("zx", [turn, 90], degrees=True).as_matrix()
    a, b = (SimpleNamespace(shape=shape, rotation=R) for R in (one, two))
    found = nearest(a, b, np.array([2 * half + gap, 11.3, 12.1]), SIZE, 2.0)
    if gap < 0:
        assert found.gap < 0
    else:
        assert found.gap == pytest.approx(gap, abs=0.1)


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
    assert force[1] == pytest.approx(path.strength * 2 / contact * (1 - 1 / contact) ** 2, rel=0.15)
    assert abs(force[0]) < 0.1 * force[1]
    assert abs(torque[2]) < 0.5 * force[1]
    inner = {key: value for key, value in disc.items() if key != "centre"} | {"centre": [12, 6.0]}
    with pytest.raises(CaseError, match="touches body 'rock' at the start"):
        contacts([24, 24], free("disc", inner), still, periodic=False)


@pytest.mark.parametrize("by_field", [False, True])
def test_bodies_without_distances_refuse_one_through_a_periodic_face(by_field):
    """A half-space has no field; the disc is in it beyond the face, where its centre is not."""
    rock = {"name": "half_space", "point": [22.0, 12.0], "normal": [-1, 0]}
    still = {"label": "rock", "shape": rock, "boundary": {"name": "bounce_back"}}
    disc = {"name": "sphere", "centre": [2.0, 12.0], "radius": 3.5}
    if by_field:
        disc = {"name": "tilted_ellipsoid", "centre": [2.0, 12.0], "radii": [3.5, 3.5]}
    with pytest.raises(CaseError, match="touches body 'rock' at the start"):
        contacts([24, 24], free("disc", disc), still)


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


BUMPS = {
    "name": "union",
    "of": [
        {"name": "box", "lower": [9.5, 0.5], "upper": [50.5, 3.5]},
        {"name": "sphere", "centre": [15.0, 4.0], "radius": 4.0},
        {"name": "sphere", "centre": [45.0, 4.0], "radius": 4.0},
    ],
}


def bar(x: float, y: float, **motion) -> dict:
    """A bar of 36 x 4 cells."""
    box = {"name": "box", "lower": [x - 18, y - 2], "upper": [x + 18, y + 2]}
    return free("bar", box, **motion)


def turn(path: FreePath, angle: float) -> None:
    """Turn a body at the start."""
    state = path.at(0)
    turned = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    path.begin(0, type(state)(**(vars(state) | {"turn": turned, "angle": np.array([angle])})))


def test_a_bar_on_two_bumps_of_a_body_has_two_contacts():
    """As on two bodies: the force is that of both, and each pushes where it touches."""
    still = {"label": "rock", "shape": BUMPS, "boundary": {"name": "bounce_back"}}
    found, (path,) = contacts([60, 30], bar(32.0, 11.0), still, periodic=False)
    force, torque = found.loads(0)["bar"]
    one = path.strength * (1 - 1.0 / 2) ** 2
    assert force[:2] == pytest.approx([0, 2 * one], rel=0.05, abs=0.02 * one)
    assert torque[2] == pytest.approx(one * ((45 - 32) + (15 - 32)), rel=0.05)


def test_contacts_change_continuously_as_a_bar_tilts():
    """From one contact, of the right bump, through both to one of the left bump."""
    still = {"label": "rock", "shape": BUMPS, "boundary": {"name": "bounce_back"}}
    found, (path,) = contacts([60, 30], bar(30.0, 11.0), still, periodic=False)
    seen = []
    for angle in np.arange(-0.06, 0.06, 0.001):
        turn(path, angle)
        force, torque = found.loads(0)["bar"]
        seen.append([force[1] / path.strength, torque[2] / path.strength / 15])
    steps = np.abs(np.diff(seen, axis=0)).max(axis=0)
    print(f"largest changes of force and torque: {steps}")
    assert steps.max() < 0.05  # 0.015 cells of the gap at the bumps
    assert seen[0][1] > 0.5
    assert seen[-1][1] < -0.5


def fallen(found: Contacts, path: FreePath, steps: int) -> np.ndarray:
    """Height, angle and energy of a body after each step; the fluid in it follows at once."""
    rows, inertia, floor = [], path.inertia, path.at(0).centre[1]
    moment = inertia.density * inertia.moments[2, 2]
    for _ in range(steps):
        force, torque = found.loads(path.last)[path.label]
        path.advance(force + path.weight, torque)
        state = path.at(path.last)
        path.took(-state.gained, -state.turned)
        kinetic = inertia.mass * state.velocity[1] ** 2 + moment * state.spin[2] ** 2
        height = state.centre[1] - floor
        rows.append([state.centre[1], state.angle[0], kinetic / 2 - path.weight[1] * height])
    return np.array(rows)


def test_a_bar_that_falls_on_a_corner_does_not_gain_energy():
    """Its force turns it back; without the rotation of half a step it gains energy each time."""
    found, (path,) = contacts([60, 30], bar(30.0, 9.0, gravity=1e-4), periodic=False)
    turn(path, 0.17)
    rows = fallen(found, path, 1200)
    print(f"energy {rows[:, 2].min()} to {rows[:, 2].max()}")
    assert rows[:, 2].max() < 0.02 * abs(path.weight[1]) * 9.0
    assert np.abs(rows[:, 1]).max() < 0.6
