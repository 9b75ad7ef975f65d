"""Bodies from files of triangles: cells, distances of links, ties, slabs."""

from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from support.surfaces import cells, links, mesh, write, write_ball

from mpilbm.case.case import parse_case
from mpilbm.core.registry import make
from mpilbm.parallel.slabs import split
from mpilbm.solids import build
from mpilbm.solids.periodic_images import ShapeInBox

SIZE = (24, 20, 22)


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply"])
def test_a_fine_sphere_is_the_sphere(tmp_path, suffix):
    """Its surface lies at most R (1 - cos(angle)) = 0.0035 cells inside of the sphere."""
    write_ball(tmp_path / f"ball.{suffix}", 5)
    ball = mesh(tmp_path, SIZE, file=f"ball.{suffix}", scale=8.3, at=[12.1, 10.2, 11.3])
    sphere = make("shapes", {"name": "sphere", "centre": [12.1, 10.2, 11.3], "radius": 8.3})
    solid, exact = cells(ball, SIZE), cells(sphere, SIZE)
    assert not (solid & ~exact).any()
    missed = np.argwhere(exact & ~solid) + 0.5 - sphere.centre
    assert np.sqrt((missed**2).sum(axis=1)).min() > 8.3 - 0.0035
    points, step = links(solid)
    both = ~sphere.inside(*points) & sphere.inside(*(points + step))
    points, step = points[:, both], step[:, both]
    q, wanted = ball.distance(points, step), sphere.distance(points, step)
    surface = np.array(sphere.centre)[:, None] - points - wanted * step
    across = np.abs((surface * step).sum(axis=0)) / 8.3  # |n . step|, the depth of a unit of q
    assert points.shape[1] > 7000
    assert np.median(np.abs(q - wanted)) < 0.0035
    assert (np.abs(q - wanted) * across < 0.0036).all()


def test_a_box_on_cell_centres_is_the_box_bit_for_bit(tmp_path):
    """Faces, edges and corners of it pass through cell centres."""
    trimesh.creation.box((2, 1, 3)).export(tmp_path / "box.stl")
    solid = mesh(tmp_path, SIZE, file="box.stl", scale=4, at=[12.5, 10.5, 11.5])
    box = make("shapes", {"name": "box", "lower": [8.5, 8.5, 5.5], "upper": [16.5, 12.5, 17.5]})
    assert np.array_equal(cells(solid, SIZE), cells(box, SIZE))
    points, step = links(cells(box, SIZE))
    assert not np.isnan(solid.surface.first(points, step)).any()
    q, wanted = (shape.distance(points, step) for shape in (solid, box))
    np.testing.assert_allclose(q, wanted, rtol=0, atol=1e-14)
    assert set(np.unique(q.round(12))) == {0.0, 1.0}


def test_a_cylinder_in_3d_and_its_section_in_2d(tmp_path):
    trimesh.creation.cylinder(1, 4, sections=1024).export(tmp_path / "rod.stl")
    keys = {"file": "rod.stl", "scale": 5}
    rod = mesh(tmp_path, SIZE, **keys, at=[12.1, 10.2, 11])
    table = {"name": "cylinder", "radius": 5}
    exact = make("shapes", table | {"centre": [12.1, 10.2, 11], "axis": "z", "length": 20})
    assert np.array_equal(cells(rod, SIZE), cells(exact, SIZE))
    disc = mesh(tmp_path, SIZE[:2], **keys, at=[12.1, 10.2])
    flat = make("shapes", table | {"centre": [12.1, 10.2]})
    assert np.array_equal(cells(disc, SIZE[:2]), cells(flat, SIZE[:2]))
    points, step = np.array([[6.5, 19.5], [10.5, 3.5]]).T, np.array([[1.0, -1], [0, 1]]).T * 6
    q, wanted = (shape.distance(points, step) for shape in (disc, flat))
    np.testing.assert_allclose(q, wanted, rtol=0, atol=1e-5)


def random_body(folder, name="body.stl"):
    """A closed surface without symmetry, in the unit box."""
    body = trimesh.creation.icosphere(2)
    rng = np.random.default_rng(4)
    body.vertices *= rng.uniform(0.6, 1, (len(body.vertices), 1)) * [1, 0.7, 0.8]
    body.export(folder / name)
    return body


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_rotation_of_file_and_box_changes_nothing(tmp_path, axis):
    random_body(tmp_path)
    size, turned = np.array([24, 24, 24]), [0.0, 0.0, 0.0]
    turned[axis] = 90.0
    keys = {"file": "body.stl", "scale": 9, "anchor": "origin", "at": [12, 12, 12]}
    before, after = mesh(tmp_path, size, **keys), mesh(tmp_path, size, **keys, rotate=turned)
    b, c = (axis + 1) % 3, (axis + 2) % 3  # b turns to c, c to -b
    solid = cells(before, size)
    assert 500 < solid.sum() < 2000
    assert np.array_equal(np.rot90(solid, 1, (b, c)), cells(after, size))
    points, step = links(solid)
    there, along = points.copy(), step.copy()
    there[b], there[c] = 24 - points[c], points[b]
    along[b], along[c] = -step[c], step[b]
    q, same = before.distance(points, step), after.distance(there, along)
    np.testing.assert_allclose(q, same, rtol=0, atol=1e-12)


def test_rotations_follow_each_other_about_x_y_and_z(tmp_path):
    """(1, 0, 0) goes to (0, 0, -1) about y; (0, 1, 0) to (0, 0, 1) about x and to (1, 0, 0)."""
    write(tmp_path / "a.ply", [[0, 0, 0], [4, 0, 0], [0, 2, 0], [0, 0, 1]],
          [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])  # fmt: skip
    keys = {"file": "a.ply", "scale": 1, "anchor": "origin", "at": [10, 10, 10]}
    found = mesh(tmp_path, SIZE, **keys, rotate=[90, 90, 0])
    assert found.bounds() == ((10, 9, 6), (12, 10, 10))
    found = mesh(tmp_path, SIZE, **keys, rotate=[0, 0, 45])
    assert found.bounds()[1][1] == pytest.approx(10 + 4 * np.sqrt(0.5), abs=1e-14)


@pytest.mark.parametrize("shift", [0.0, 0.5, 1 / 3])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_line_leaves_the_body_again(tmp_path, shift, axis):
    """Vertices and edges on the lines: an octahedron around a cell centre, and beside it."""
    octahedron = trimesh.creation.icosahedron() if shift == 1 / 3 else trimesh.Trimesh(
        [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]],
        [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]],
    )  # fmt: skip
    octahedron.export(tmp_path / "gem.stl")
    gem = mesh(tmp_path, SIZE, file="gem.stl", scale=5, at=[10 + shift] * 3)
    solid = cells(gem, SIZE)
    points = np.stack(np.meshgrid(*(np.arange(n) + 0.5 for n in SIZE), indexing="ij"))
    distance = np.abs(points - 10 - shift).sum(axis=0)
    if shift != 1 / 3:
        assert solid[distance < 5 - 1e-9].all()
        assert not solid[distance > 5 + 1e-9].any()
    for c in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, -1, 1], [0, 1, -1]):
        step = np.roll(np.array(c, float), axis)
        found, _ = gem.surface.hits(points.reshape(3, -1), step, (-99, 99))
        assert (np.bincount(found.line) % 2 == 0).all()
    start, step = links(solid)
    q = gem.distance(start, step)
    ends = np.abs(start + q * step - 10 - shift).sum(axis=0)
    if shift != 1 / 3:
        np.testing.assert_allclose(ends, 5, rtol=0, atol=1e-9)


def test_any_points_are_those_of_the_rows(tmp_path):
    random_body(tmp_path)
    body = mesh(tmp_path, SIZE, file="body.stl", scale=9, at=[12, 10, 11])
    solid = cells(body, SIZE)
    order = np.random.default_rng(1).permutation(solid.size)
    points = np.argwhere(np.ones(SIZE, bool)).T[:, order] + 0.5
    assert np.array_equal(body.inside(*points), solid.reshape(-1)[order])
    staggered = np.arange(0.5, 24, 2) + np.arange(2)[:, None, None]  # x of every second row
    found = body.inside(staggered, np.array([8.5, 9.5])[:, None, None], 11.5)
    assert np.array_equal(found[0, 0], solid[0::2, 8, 11])
    assert np.array_equal(found[1, 0], solid[1::2, 9, 11])


def test_a_ray_tracer_finds_the_same_cells(tmp_path):
    """Embree, for a body in general position."""
    tracer = pytest.importorskip("trimesh.ray.ray_pyembree")
    if not tracer:
        pytest.skip("embreex is not installed")
    random_body(tmp_path)
    body = mesh(tmp_path, SIZE, file="body.stl", scale=9, at=[12.03, 10.07, 11.01])
    corners = body.surface.corners.transpose(2, 1, 0).reshape(-1, 3)
    surface = trimesh.Trimesh(corners, np.arange(len(corners)).reshape(-1, 3), process=False)
    rows = np.argwhere(np.ones(SIZE[1:], bool)) + 0.5
    start = np.column_stack([np.full(len(rows), -1.0), rows])
    along = np.tile([1.0, 0, 0], (len(rows), 1))
    points, row, _ = tracer.RayMeshIntersector(surface).intersects_location(start, along)
    counts = np.zeros((len(rows), SIZE[0] + 1), int)
    np.add.at(counts, (row, np.clip(np.ceil(points[:, 0] - 0.5), 0, SIZE[0]).astype(int)), 1)
    traced = np.cumsum(counts, axis=1)[:, :-1].reshape(*SIZE[1:], SIZE[0]) % 2 == 1
    assert np.array_equal(np.moveaxis(traced, -1, 0), cells(body, SIZE))


def test_fluid_in_a_pipe(tmp_path):
    trimesh.creation.cylinder(1, 10, sections=64).export(tmp_path / "pipe.stl")
    keys = {"file": "pipe.stl", "scale": 6, "at": [12, 10, 11]}
    rod, pipe = mesh(tmp_path, SIZE, **keys), mesh(tmp_path, SIZE, **keys, invert=True)
    assert np.array_equal(cells(pipe, SIZE), ~cells(rod, SIZE))
    assert pipe.bounds() == ((-np.inf,) * 3, (np.inf,) * 3)
    q = pipe.distance(np.array([[17.5], [10.0], [11.0]]), np.array([[1.0], [0], [0]]))
    assert q == pytest.approx(0.5, abs=1e-12)


def test_links_across_a_periodic_face_meet_the_surface_on_the_other_side(tmp_path):
    trimesh.creation.box((4, 4, 4)).export(tmp_path / "box.stl")
    box = mesh(tmp_path, (12, 12, 12), file="box.stl", scale=1, at=[9.75, 6, 6])
    points, step = np.array([[0.5], [6.5], [6.5]]), np.array([[-1.0], [0], [0]])
    in_box = ShapeInBox.of(box, SimpleNamespace(size=(12, 12, 12), periodic=(True,) * 3))
    assert in_box.distance(points, step) == pytest.approx(0.75, abs=1e-12)


def tables(file, size=SIZE):
    """A closed box with a body."""
    shape = {"name": "mesh", "file": str(file), "scale": 9, "at": [n / 2 for n in size]}
    return {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": list(size), "periodic": [True] * 3},
        "fluid": {"viscosity": 0.1},
        "collision": {"name": "trt"},
        "body": [{"label": "a", "shape": shape, "boundary": {"name": "interpolated"}}],
        "run": {"steps": 4},
    }


def test_slabs_have_the_bits_of_the_box(tmp_path):
    random_body(tmp_path)
    case = parse_case(tables(tmp_path / "body.stl"))
    (whole,) = (build.build(case, slab) for slab in split(case.shape, 1, True))
    parts = [build.build(case, slab) for slab in split(case.shape, 5, True)]
    assert np.array_equal(np.concatenate([part.solid for part in parts]), whole.solid)
    found = np.concatenate([each.per_link.distance for part in parts for each in part.lists])
    assert np.array_equal(found, np.concatenate([each.per_link.distance for each in whole.lists]))
