"""Shapes: bounds that hold them, parameters of the wrong dimension refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from support.surfaces import write_ball

from mpilbm.core.registry import make, names

SHAPES = {
    "sphere": ({"centre": [2.5, 2, 6], "radius": 2}, {"centre": [2.5, 2], "radius": 2}),
    "cylinder": (
        {"centre": [2.5, 2, 6], "radius": 2, "axis": "y", "length": 3},
        {"centre": [2.5, 2], "radius": 2},
    ),
    "box": (
        {"lower": [1, 0.5, 3], "upper": [2, 2, 4.5]},
        {"lower": [1, 0.5], "upper": [2, 2]},
    ),
    "half_space": (
        {"point": [2, 3, 4], "normal": [0, -1, 0]},
        {"point": [2, 3], "normal": [1, 0]},
    ),
    "spheres": (
        {"file": "two.csv", "at": [0, 0, 0.1]},
        {"file": "flat.csv", "at": [0.1, 0]},
    ),
    "torus": (
        {"centre": [4, 4, 5], "radius": 2, "tube": 0.7, "axis": "x"},
        {"centre": [4, 5], "radius": 2, "tube": 0.7},
    ),
}
SHAPES["tilted_ellipsoid"] = (
    {"centre": [2.5, 2, 6], "radii": [2.5, 1, 1.5], "rotate": [20, 0, 40]},
    {"centre": [2.5, 2], "radii": [2.5, 1], "rotate": [0, 0, 40]},
)
SHAPES["mesh"] = (
    {"file": "ball.stl", "scale": 2, "at": [2.5, 2, 6]},
    {"file": "ball.stl", "scale": 2, "at": [2.5, 2]},
)
for name in ("union", "difference"):
    SHAPES[name] = tuple(
        {"of": [{"name": each} | SHAPES[each][k] for each in ("sphere", "box")]} for k in (0, 1)
    )

ELSEWHERE = {"function", "voxels"}  # shapes with tests of their own


def test_every_shape_has_an_example():
    assert SHAPES.keys() | ELSEWHERE == set(names("shapes"))


def resolved(tmp_path, name, dimensions):
    """A shape of SHAPES; those from files have read them."""
    (tmp_path / "two.csv").write_text("2.5, 2, 6, 2\n3.5, 4, 7, 1.2\n")
    (tmp_path / "flat.csv").write_text("2.5, 2, 2\n3.5, 4, 1.2\n")
    write_ball(tmp_path / "ball.stl")
    shape = make("shapes", {"name": name, **SHAPES[name][3 - dimensions]})
    domain = SimpleNamespace(size=(8,) * dimensions)
    case = SimpleNamespace(directory=tmp_path, dimensions=dimensions, domain=domain)
    return shape.resolved(case)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dimensions", [2, 3])
def test_shapes_lie_in_their_bounds_and_know_their_dimension(tmp_path, name, dimensions):
    shape = resolved(tmp_path, name, dimensions)
    assert shape.problems(SimpleNamespace(dimensions=dimensions)) == []
    assert shape.problems(SimpleNamespace(dimensions=5 - dimensions)) != []
    axes = [np.arange(-2, 10, 0.25)] * dimensions
    points = np.meshgrid(*axes, indexing="ij", sparse=True)
    inside = np.argwhere(np.broadcast_to(shape.inside(*points), [len(axes[0])] * dimensions))
    lower, upper = shape.bounds()
    assert inside.size
    assert (axes[0][inside.min(axis=0)] >= lower).all()
    assert (axes[0][inside.max(axis=0)] <= upper).all()


@pytest.mark.parametrize("name", SHAPES)
def test_distances_end_at_the_surface(tmp_path, name):
    """Along steps that lead from outside into a shape."""
    shape = resolved(tmp_path, name, 3)
    points = np.random.default_rng(1).uniform(0, 8, (3, 4000))
    step = np.random.default_rng(2).choice([-1.0, 0, 1], (3, 4000))
    leads = ~shape.inside(*points) & shape.inside(*(points + step)) & (points + step < 8).all(0)
    leads &= (points + step >= 0).all(0)
    points, step = points[:, leads], step[:, leads]
    assert points.size
    q = shape.distance(points, step)
    assert shape.inside(*(points + (q + 1e-12) * step)).all()
    assert not shape.inside(*(points + (q - 1e-12) * step)).any()


@pytest.mark.filterwarnings("error")
def test_sizes_whose_squares_overflow_are_accepted():
    x = np.linspace(-9, 9, 5)
    far = {"centre": [1e300, 0, 0], "radius": 3}
    for name, more in (("sphere", {}), ("cylinder", {"axis": "z"}),
                       ("torus", {"axis": "z", "tube": 1, "radius": 1e200})):  # fmt: skip
        assert not make("shapes", {"name": name} | far | more).inside(x, x, x).any()


def test_shapes_are_joined_and_cut():
    """A pipe: a box without a cylinder, and one with a ball in it."""
    box = {"name": "box", "lower": [0, 0], "upper": [8, 8]}
    disc = {"name": "cylinder", "centre": [4, 4], "radius": 3}
    pipe = make("shapes", {"name": "difference", "of": [box, disc]})
    assert pipe.inside(np.array([0.5, 4]), np.array([0.5, 4])).tolist() == [True, False]
    ball = {"name": "sphere", "centre": [4, 4], "radius": 1}
    both = make("shapes", {"name": "union", "of": [pipe.model_dump(), ball]})
    assert both.inside(np.array([4, 4]), np.array([4, 6])).tolist() == [True, False]


def test_shape_problems_name_the_key():
    flat, deep = SimpleNamespace(dimensions=2), SimpleNamespace(dimensions=3)
    ball = make("shapes", {"name": "sphere", "centre": [1, 2], "radius": 1})
    assert ball.problems(deep) == ["centre = [1.0, 2.0] has 2 entries; give 3 (x, y, z) in 3D"]
    rod = make("shapes", {"name": "cylinder", "centre": [1, 2], "radius": 1, "axis": "z"})
    assert rod.problems(flat) == [
        "axis = 'z' has no meaning in 2D, where a cylinder is a disc; remove it"
    ]
    rod = make("shapes", {"name": "cylinder", "centre": [1, 2, 3], "radius": 1})
    assert rod.problems(deep) == ['axis is missing; give axis = "x", "y" or "z"']
    box = make("shapes", {"name": "box", "lower": [1, 2], "upper": [3, 1]})
    assert "give the smaller corner as lower" in box.problems(flat)[0]


def test_the_distance_from_an_ellipsoid():
    """That of the nearest of many points of the surface, also at the centre and on the axes."""
    shape = make("shapes", {"name": "tilted_ellipsoid", "centre": [0, 0, 0], "radii": [5, 3, 1],
                            "rotate": [10, 20, 30]})  # fmt: skip
    axes = Rotation.from_euler("xyz", [10, 20, 30], degrees=True).as_matrix()
    rng = np.random.default_rng(0)
    points = rng.uniform(-7, 7, (3, 100))
    points[:, :3] = axes @ np.diag([0, 4, 6])
    on = rng.normal(size=(3, 100_000))
    on = axes @ (on / np.linalg.norm(on, axis=0) * [[5], [3], [1]])
    far, _ = cKDTree(on.T).query(points.T)
    found = shape.signed_distance(points)
    assert np.abs(found) == pytest.approx(far, abs=0.02)
    assert (np.abs(found) < far + 1e-6).all()  # nearer than any point that is not the nearest
    assert found[:3] == pytest.approx([-1, 1, 5])
    assert np.array_equal(found < 0, shape.inside(*points))
    assert shape.bounds()[1] == pytest.approx(on.max(axis=1), abs=0.01)
    flat = SimpleNamespace(dimensions=2)
    given = {"name": "tilted_ellipsoid", "centre": [1, 2], "radii": [-1, 2], "rotate": [5, 0, 0]}
    assert make("shapes", given).problems(flat) == [
        "radii: found -1; allowed: positive numbers",
        "rotate: found [5.0, 0.0, 0.0]; allowed in 2D: [0, 0, degrees]",
    ]
