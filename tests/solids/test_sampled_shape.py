"""Bodies that move by a field of distances: shares, sums, and the same shape by formulas."""

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation
from support.body_forces import flow
from support.cell_shares import shares
from support.slabs import Cluster
from support.surfaces import mesh, write, write_ball

from mpilbm.core.registry import make
from mpilbm.solids.distance_field import SPACING
from mpilbm.solids.rigid_shape import RigidShape
from mpilbm.solids.sampled_shape import rigid_of, sampled
from mpilbm.solids.shares import share_behind

SIZE = (40, 40, 40)
CUBE = {"name": "box", "lower": [8.3, 8.1, 8.2], "upper": [20.4, 20.6, 20.1]}
PLATE = {"name": "box", "lower": [3.2, 4.1, 5.3], "upper": [7.9, 9.2, 7.6]}
BALL = {"name": "sphere", "centre": [5.7, 5.4, 6.1], "radius": 3.2}
SHAPES = {
    "ring": {"name": "torus", "centre": [8.7, 6.4], "radius": 3.1, "tube": 1.6},
    "cross": {
        "name": "union",
        "of": [
            {"name": "box", "lower": [3.1, 5.0], "upper": [12.2, 8.1]},
            {"name": "box", "lower": [6.4, 2.1], "upper": [9.8, 10.6]},
        ],
    },
    "torus": {"name": "torus", "centre": [5.7, 5.4, 6.1], "radius": 2.6, "tube": 1.5, "axis": "y"},
    "notched ball": {"name": "difference", "of": [BALL, PLATE]},
}
VOLUMES = {
    "ring": 4 * np.pi * 3.1 * 1.6, "torus": 2 * np.pi**2 * 2.6 * 1.5**2,
    "cross": 9.1 * 3.1 + 3.4 * 8.5 - 3.4 * 3.1,
}  # fmt: skip


def shape(given: dict, size=SIZE):
    """A sampled shape, also of one that has formulas."""
    return sampled(make("shapes", given), size)


def centres(form, D: int, margin: float = 3.0) -> np.ndarray:
    """The centres of the cells around a body that is far from 0, (3, n)."""
    n = int(form.reach + margin)
    axes = [np.arange(-n, n + 1) + 0.5] * D + [np.zeros(1)] * (3 - D)
    return np.stack(np.meshgrid(*axes, indexing="ij")).reshape(3, -1)


def turned(form, points: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The shares of cells at points (3, n) around the centre of a turned body, with NumPy."""
    q = R.T @ points
    distance, gradient = form.field.at(q + form.middle[:, None])
    size = np.linalg.norm(gradient, axis=0)
    normal = R @ np.where(size > 1e-8, gradient / np.maximum(size, 1e-8), 0)
    return share_behind(distance, normal[: form.dimensions])


@pytest.mark.parametrize("name", SHAPES)
def test_the_kernel_has_the_shares_of_the_field(name):
    """Those that NumPy finds for the body at rest, at most one unit of 255 apart.

    They differ from those of the same body at rest by 0.05 in the mean over the cells that the
    surface cuts. Their sum is the volume within 0.6 %: of the torus -0.04 % (at rest 1.2 %).
    """
    given = SHAPES[name]
    D = 2 if name in ("ring", "cross") else 3
    body = {"label": "body", "shape": given, "boundary": {"name": "partially_saturated"}}
    still = {"motion": {"name": "translation", "displacement": [0] * D}}
    box = {"size": [18, 17, 16][:D], "output": []}
    case = flow("D2Q9" if D == 2 else "D3Q19", body=[body | still], **box)
    cluster = Cluster(case, slabs=2)
    found = shares(cluster).astype(int)
    (planes, rows, nx), form = found.shape, shape(given, tuple(case["domain"]["size"]))
    z, y, x = np.indices(found.shape).reshape(3, -1) + 0.5
    points = np.stack([x, y if D == 3 else z, z if D == 3 else 0 * z])
    expected = np.rint(255 * form.field.share(points)).reshape(planes, rows, nx)
    assert np.abs(found - expected).max() <= 1
    assert ((found > 0) & (found < 255)).sum() > 20
    case["body"] = [body]
    (solver,) = Cluster(case).solvers
    rest = solver.context.geometry.shares.share.astype(int)
    cut = (rest > 0) & (rest < 255)
    volume = found.sum() / 255
    print(name, np.abs(found - rest)[cut].mean() / 255, volume, rest.sum() / 255)
    assert np.abs(found - rest)[cut].mean() < 0.05 * 255
    assert volume == pytest.approx(VOLUMES.get(name, rest.sum() / 255), rel=0.006)


@pytest.mark.parametrize(("radius", "error"), [(4, 1e-3), (8, 1e-4), (16, 1e-5)])
def test_the_volume_of_a_ball(radius, error):
    """Turned and moved by any part of a cell: the interpolation has the curvature's correction."""
    form = shape({"name": "union", "of": [BALL | {"radius": radius, "centre": [20.0] * 3}] * 2})
    moved = np.array([0.21, -0.37, 0.44])[:, None]
    found = turned(form, centres(form, 3) + moved, np.eye(3)).sum()
    exact = 4 / 3 * np.pi * radius**3
    print(f"volume of a ball of radius {radius}: {found / exact - 1:+.1e}")
    assert found == pytest.approx(exact, rel=error)


EGG = {"name": "tilted_ellipsoid", "centre": [20.3, 19.9, 20.2], "radii": [8, 4, 3]}
SOLIDS = {
    "cube": ({"name": "box", "lower": [8, 8, 8], "upper": [15, 15, 15]}, 0.006, 0.015),
    "bar": ({"name": "box", "lower": [8, 8, 8], "upper": [24, 11, 11]}, 0.006, 0.015),
    "egg": (EGG, 0.002, 0.005),
}


@pytest.mark.parametrize("name", SOLIDS)
def test_the_inertia_of_flat_and_round_bodies(name):
    """Volume, centre of mass, moments and area, also where flat sides lie between cells.

    A cube of 7 cells: volume +0.3 %, moments +0.8 %; a bar of 16 x 3 x 3: +0.3 %, +1.1 %.
    """
    given, of_volume, of_moments = SOLIDS[name]
    twice = {"name": "union", "of": [given, given]}
    form = shape(twice)
    if name == "egg":
        half, mean = np.array(given["radii"]), 5
        volume, centre = 4 / 3 * np.pi * half.prod(), np.array(given["centre"])
        pairs = (half * np.roll(half, 1)) ** 1.6075
        area = 4 * np.pi * pairs.mean() ** (1 / 1.6075)  # Thomsen's formula, within 1 %
    else:
        low, high = np.array(given["lower"]), np.array(given["upper"])
        half, mean, volume, centre = (high - low) / 2, 3, (high - low).prod(), (low + high) / 2
        area = 2 * volume * (1 / (high - low)).sum()
    moments = volume / mean * ((half**2).sum() - half**2)
    found = np.diag(form.inertia(SIZE))
    print(name, form.volume(SIZE) / volume - 1, found / moments - 1)
    assert form.volume(SIZE) == pytest.approx(volume, rel=of_volume)
    assert form.middle == pytest.approx(centre, abs=1e-3)
    assert found == pytest.approx(moments, rel=of_moments)
    assert form.surface_to_volume == pytest.approx(area / volume, rel=0.05)
    ends = [form.furthest(axis)[0] for axis in (*np.eye(3), *-np.eye(3))]
    assert ends == pytest.approx([*half, *half], abs=0.08)
    points = form.outline(SIZE)
    assert np.abs(points).max(axis=0) == pytest.approx(half, abs=0.08)


def test_a_cube_of_triangles_is_the_box(tmp_path):
    """A turned cube: its volume within 0.3 %, its shares within 0.03 on average at the surface."""
    low, high = np.array(CUBE["lower"]), np.array(CUBE["upper"])
    cube = trimesh.creation.box(high - low)
    write(tmp_path / "cube.stl", cube.vertices, cube.faces)
    found = rigid_of(
        mesh(tmp_path, SIZE, file="cube.stl", scale=1, at=((low + high) / 2).tolist()), SIZE
    )
    box = make("shapes", CUBE).rigid(3)
    assert isinstance(box, RigidShape)
    assert found.middle == pytest.approx(box.middle, abs=1e-3)
    assert found.volume(SIZE) == pytest.approx(box.volume(SIZE), rel=3e-3)
    inertia = found.inertia(SIZE)
    assert inertia == pytest.approx(box.inertia(SIZE), rel=5e-3, abs=30)
    assert found.reach == pytest.approx(box.reach, abs=0.6)  # its corners are round
    for k in range(3):
        R = Rotation.random(random_state=k).as_matrix()
        points = centres(found, 3) + 0.3
        volume = turned(found, points, R).sum()
        assert volume == pytest.approx(box.volume(SIZE), rel=3e-3)
        fine = np.stack(np.meshgrid(*[(np.arange(6) + 0.5) / 6 - 0.5] * 3)).reshape(3, -1)
        inside = [box.distance((R.T @ (points + p[:, None])).T) <= 0 for p in fine.T]
        exact = np.mean(inside, axis=0)
        cut = (exact > 0) & (exact < 1)
        assert np.abs(turned(found, points, R) - exact)[cut].mean() < 0.03
        below, above = found.extent(R)
        for each, wanted in ((below, box.extent(R)[0]), (above, box.extent(R)[1])):
            assert each == pytest.approx(wanted, abs=0.6)


def test_a_ball_of_triangles_is_the_ball(tmp_path):
    """Distances within 1e-3 cells near the surface, apart from the facets; points on it."""
    write_ball(tmp_path / "ball.stl", 4)
    found = rigid_of(mesh(tmp_path, SIZE, file="ball.stl", scale=8, at=[20.2, 19.7, 20.1]), SIZE)
    points = found.points(SIZE)
    assert np.linalg.norm(points, axis=1) == pytest.approx(np.full(len(points), 8), abs=0.05)
    assert found.distance(1.1 * points) == pytest.approx(np.full(len(points), 0.8), abs=0.06)
    assert found.distance(3 * points).min() > 8
    assert found.volume(SIZE) == pytest.approx(4 / 3 * np.pi * 512, rel=4e-3)
    inertia = found.inertia(SIZE)
    assert inertia == pytest.approx(0.4 * found.volume(SIZE) * 64 * np.eye(3), rel=4e-3, abs=5)
    assert found.thickness == 3


def test_distances_from_inside_alone():
    """A torus by bisection: within 0.05 cells of the formula near the surface, 0.005 on average."""
    torus = make("shapes", {"name": "torus", "centre": [12, 12, 12], "radius": 7, "tube": 3.5,
                            "axis": "z"})  # fmt: skip
    rng = np.random.default_rng(1)
    points = 12 + rng.uniform(-11, 11, (3, 4000))
    exact = torus.signed_distance(points)
    near = np.abs(exact) < 1.2
    found = super(type(torus), torus).signed_distance(points[:, near])
    error = np.abs(found - exact[near])
    print(f"distances from inside alone: error {error.max():.2g}, mean {error.mean():.2g}")
    assert error.max() < 0.05
    assert error.mean() < 0.005
    assert near.sum() > 300


def test_the_same_shape_is_sampled_once():
    given = make("shapes", SHAPES["torus"])
    assert sampled(given, SIZE) is sampled(make("shapes", SHAPES["torus"]), SIZE)
    assert sampled(given, SIZE).field.values.dtype == np.float32
    assert np.sqrt(0.5) == SPACING


@pytest.mark.parametrize(("width", "found"), [(1.4, 1.5), (2.6, 2.75), (6.0, 3.0)])
def test_thickness(width, found):
    """In steps of a quarter cell, 3 and more of thick bodies."""
    plate = {"name": "box", "lower": [10, 10, 10], "upper": [24, 10 + width, 24]}
    assert shape({"name": "union", "of": [plate, plate]}).thickness == found


def test_a_shape_far_larger_than_the_box_is_refused():
    """Such as one in another unit, before memory is used."""
    huge = {"name": "tilted_ellipsoid", "centre": [20, 20], "radii": [2e5, 1e5]}
    with pytest.raises(ValueError, match=r"found sides of 4e\+05 x 2e\+05 cells"):
        sampled(make("shapes", huge), (40, 40))


def test_no_distance_beyond_the_field():
    """Where all points around one have the largest distance, interpolation rounds it down."""
    given = {"name": "tilted_ellipsoid", "centre": [44, 26], "radii": [7, 4], "rotate": [0, 0, 50]}
    shape = sampled(make("shapes", given), (48, 60))
    places = np.stack(np.meshgrid(np.linspace(2, 8, 61), np.linspace(-9, -7, 21)), -1).reshape(
        -1, 2
    )
    q = np.pad(places, ((0, 0), (0, 1)))
    found = np.array([shape.beside(each[None], np.inf)[0][0] for each in q])
    nearest = np.sqrt(((q[:, None] - shape.outline(())) ** 2).sum(axis=-1)).min(axis=1)
    assert np.isinf(found[nearest > 2.5]).all()
    assert np.isfinite(found[nearest < 1.4]).all()
