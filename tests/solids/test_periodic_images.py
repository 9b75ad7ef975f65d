"""Shapes that continue across periodic faces: their cells, wall distances, and frames."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from support.body_forces import by_plane
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.core.registry import make
from mpilbm.parallel.slabs import split
from mpilbm.solids import periodic_images
from mpilbm.solids.build import build

N = 10
CENTRES = {
    "bcc": [(0, 0, 0), (0.5, 0.5, 0.5)],
    "fcc": [(0, 0, 0), (0.5, 0.5, 0), (0.5, 0, 0.5), (0, 0.5, 0.5)],
}
RADIUS = {"bcc": 3.1, "fcc": 2.6}


def array(lattice: str, kind: str, copies: bool) -> dict:
    """A cubic array of spheres as one body: from its basis, or with all copies by hand."""
    shifts = product((0, 1), repeat=3) if copies else [(0, 0, 0)]
    centres = {
        tuple(float(N * (a + k)) for a, k in zip(centre, shift, strict=True))
        for shift in shifts
        for centre in CENTRES[kind]
        if max(a + k for a, k in zip(centre, shift, strict=True)) <= 1
    }
    balls = [{"name": "sphere", "centre": c, "radius": RADIUS[kind]} for c in sorted(centres)]
    body = {"shape": {"name": "union", "of": balls}, "boundary": {"name": "interpolated"}}
    collision = {"name": "mrt" if lattice == "D3Q13" else "trt"}
    return box(lattice, [N, N, N], body=[body], collision=collision, force={"name": "guo",
               "value": [1e-5, 0, 0]}, precision=PRECISIONS["double"])  # fmt: skip


@pytest.mark.parametrize("kind", CENTRES)
@pytest.mark.parametrize("lattice", ["D3Q19", "D3Q13"])
def test_arrays_of_spheres_need_no_copies(lattice, kind):
    """Cells, and q of all links, which is that of the sphere nearest to the cell."""
    short, full = (parse_case(array(lattice, kind, copies), "a.toml") for copies in (False, True))
    for ranks in (1, 3):
        for slab in split(short.shape, ranks, True):
            one, other = build(short, slab), build(full, slab)
            np.testing.assert_array_equal(one.solid, other.solid)
            for mine, theirs in zip(one.lists, other.lists, strict=True):
                assert mine.per_link is not None
                np.testing.assert_array_equal(mine.links.bits, theirs.links.bits)
                q, wanted = mine.per_link.distance, theirs.per_link.distance
                np.testing.assert_allclose(q, wanted, rtol=0, atol=1e-13)
                assert np.ptp(q) > 0.7


@pytest.mark.parametrize("periodic", [[True, False], [True, True]])
def test_shapes_that_touch_no_periodic_face_are_evaluated_as_they_are(periodic):
    domain = box("D2Q9", [16, 12], domain={"size": [16, 12], "periodic": periodic})["domain"]
    shape = make("shapes", {"name": "sphere", "centre": [8.1, 6.2], "radius": 4.3})
    in_box = shape.in_box(type("Domain", (), domain))
    assert [image.shift for image in in_box.images] == [(0, 0)]
    assert in_box.bounds() == shape.bounds()
    points, step = np.array([[3.5, 2.5], [6.5, 6.5]]), np.array([[1.0, 2.0], [0.0, 0.0]])
    assert np.array_equal(in_box.distance(points, step), shape.distance(points, step))


def in_box(periodic, **shape):
    domain = type("Domain", (), {"size": (16, 12), "periodic": periodic})
    return make("shapes", shape).in_box(domain)


def test_infinite_shapes_are_not_repeated():
    """An oblique plane ends at the faces; a bar through the box continues across it only."""
    plane = in_box((True, True), name="half_space", point=[4, 3], normal=[1, 1])
    assert [image.shift for image in plane.images] == [(0, 0)]
    long = in_box((True, True), name="box", lower=[-1e9, -2], upper=[1e9, 1.5])
    assert [image.shift for image in long.images] == [(0, 0), (0, 12)]
    assert long.continues == (False, True)
    assert long.inside(np.array([8, 8, 8]), np.array([1, 5, 11])).tolist() == [True, False, True]


def test_an_infinite_shape_ends_at_the_face():
    """A link through the face meets the face, or the surface behind it, if that comes later."""
    wall = in_box((True, False), name="half_space", point=[3, 0], normal=[1, 0])
    points, step = np.array([[15.5], [4.5]]), np.array([[1.0], [0.0]])
    assert wall.distance(points, step) == pytest.approx(0.5, abs=1e-14)
    tip = in_box((True, False), name="half_space", point=[0.25, 0], normal=[-1, 0])
    assert tip.distance(np.array([[15.5], [4.5]]), step) == pytest.approx(0.75, abs=1e-14)
    slab = in_box((True, False), name="box", lower=[0, 0], upper=[16, 4.2])
    assert slab.distance(np.array([[15.5], [4.5]]), step - [[0], [1]]) == pytest.approx(0.3)


def test_of_several_images_the_nearest_counts():
    """Discs of radius 9 in a box 16 wide overlap their images."""
    disc = in_box((True, False), name="sphere", centre=[0, 0], radius=9)
    height = np.sqrt(81 - 64)
    points, step = np.array([[8.0], [height + 0.25]]), np.array([[0.0], [-1.0]])
    assert disc.distance(points, step) == pytest.approx(0.25, abs=1e-14)
    assert len(disc.images) == 2


def turning(x: float, slabs: int, name: str = "interpolated", **more) -> np.ndarray:
    """Forces and torque on a turning disc at a place of a channel, after some steps."""
    disc = {"name": "sphere", "centre": [x, 6.3], "radius": 3.2}
    spin = [f"-0.02*(y - 6.3)*(1 + 0*{x})", f"0.02*(x - {x})"]
    wall = {"name": name, "velocity": spin}
    tables = box(
        "D2Q9", [20, 13], domain={"size": [20, 13], "periodic": [True, False]},
        boundary=[{"name": "bounce_back", "where": ["y-", "y+"]}],
        body=[{"label": "disc", "shape": disc, "boundary": wall}],
        force={"name": "guo", "value": [1e-4, 0]}, initial={"u": [0, 0]}, collision={"name": "trt"},
        precision=PRECISIONS["double"],
        output=[{"name": "body_forces", "every": 1, "centre": [x, 6.3]}], **more,
    )  # fmt: skip
    cluster = Cluster(tables, slabs).start().run(40)
    force_x, force_y, torque = np.cumsum(np.concatenate(cluster.each(by_plane)), axis=0)[-1][0]
    return np.array([force_x, force_y, torque - (x * force_y - 6.3 * force_x)])


@pytest.mark.parametrize("name", ["interpolated", "bounce_back", "tamm_mott_smith"])
@pytest.mark.parametrize("x", [20.25, -19.75, 0.25, 19.25])
def test_a_body_at_a_periodic_face_is_the_one_in_the_middle(x, name):
    """Its drag, and what its turning wall and the torque about its centre are."""
    wanted = turning(10.25, 1, name)
    assert abs(wanted[0]) > 1e-4 < abs(wanted[2])
    np.testing.assert_allclose(turning(x, 1, name), wanted, rtol=0, atol=1e-13)
    if x < 0:
        np.testing.assert_allclose(turning(x, 3, name), wanted, rtol=0, atol=1e-13)


def test_a_turning_body_at_a_face_is_not_refused():
    from mpilbm.solids import diagnose, geometry_findings

    disc = {"name": "sphere", "centre": [0, 6.3], "radius": 3.2}
    for centre, refused in ((0, False), (1, True)):
        parts: list = []
        wall = {"name": "interpolated", "velocity": ["-0.02*(y - 6.3)", f"0.02*(x - {centre})"]}
        tables = box("D2Q9", [20, 13], body=[{"label": "disc", "shape": disc, "boundary": wall}])
        case = parse_case(tables, "a.toml")
        slab = split(case.shape, 1, True)[0]
        build(case, slab, lambda *seen, to=parts: to.append(diagnose.find(*seen)))
        assert bool(parts[0].through) == refused
        if not refused:
            geometry_findings.refuse(case, parts)


def test_images_of_a_body_share_no_cells_with_it():
    disc = {"name": "sphere", "centre": [0, 6], "radius": 9}
    tables = box("D2Q9", [16, 30], body=[
        {"label": "a", "shape": disc, "boundary": {"name": "bounce_back"}},
        {"label": "b", "shape": disc, "boundary": {"name": "bounce_back"}}])  # fmt: skip
    case, overlaps = parse_case(tables, "a.toml"), {}
    slab = split(case.shape, 1, True)[0]
    build(case, slab, lambda *seen: overlaps.update(seen[-1]))
    solid = int(np.count_nonzero(build(case, slab).solid))
    assert overlaps == {(0, 1): solid}


def test_a_difference_is_made_of_the_images_of_its_parts():
    """A box larger than the domain, without a cylinder: a pipe."""
    hole = {"name": "cylinder", "centre": [5, 5, 5], "radius": 4, "axis": "x"}
    box = {"name": "box", "lower": [-2, -2, -2], "upper": [12, 12, 12]}
    pipe = make("shapes", {"name": "difference", "of": [box, hole]})
    domain = SimpleNamespace(size=(10, 10, 10), periodic=(True,) * 3)
    x, y, z = np.meshgrid(*[np.arange(10) + 0.5] * 3, indexing="ij")
    solid = pipe.in_box(domain).inside(x, y, z)
    assert np.array_equal(solid, (y - 5) ** 2 + (z - 5) ** 2 > 16)
    points, step = np.array([[5.5], [8.5], [5.0]]), np.array([[0.0], [1], [0]])
    assert pipe.in_box(domain).distance(points, step) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("periodic", [True, False])
def test_a_difference_uses_the_distances_of_its_parts(periodic, monkeypatch):
    """The last surface on a link: that of the ball, or that of the bite through which it leaves."""
    ball = {"name": "sphere", "centre": [1, 5, 5], "radius": 4}
    bite = {"name": "sphere", "centre": [3.9, 5.2, 5.1], "radius": 2.6}
    shape = make("shapes", {"name": "difference", "of": [ball, bite]})
    domain = SimpleNamespace(size=(12, 11, 10), periodic=(periodic,) * 3)
    inside = shape.in_box(domain).inside
    centres = np.stack(np.meshgrid(*(np.arange(n) + 0.5 for n in domain.size), indexing="ij"))
    solid = inside(*centres)
    pairs = [
        (start + 0.5, np.array(c))
        for start in np.argwhere(~solid)
        for c in product((-1, 0, 1), repeat=3)
        if periodic or all(0 <= k < n for k, n in zip(start + c, domain.size, strict=True))
        if solid[tuple((start + c) % domain.size)]
    ]
    points, step = (np.array(each, float).T for each in zip(*pairs, strict=True))
    size = np.reshape(domain.size, (3, 1))
    wanted = periodic_images.bisected(lambda *x: inside(*(np.stack(x) % size)), points, step)
    bisect, bisections = periodic_images.bisected, []

    def noted(inside, points, step):
        bisections.append(points.shape[1])
        return bisect(inside, points, step)

    monkeypatch.setattr(periodic_images, "bisected", noted)
    np.testing.assert_allclose(shape.in_box(domain).distance(points, step), wanted, atol=1e-12)
    assert sum(bisections) <= (0.01 * points.shape[1] if periodic else 0)


def test_a_union_with_an_infinite_shape_keeps_the_images_of_the_others():
    ball = {"name": "sphere", "centre": [0, 5, 5], "radius": 2}
    floor = {"name": "half_space", "point": [0, 0, 0.9], "normal": [0, 0, 1]}
    both = make("shapes", {"name": "union", "of": [floor, ball]})
    domain = SimpleNamespace(size=(10, 10, 10), periodic=(True, True, False))
    assert both.in_box(domain).inside(*np.array([9.5, 5.5, 5.5]))


def test_a_function_is_evaluated_in_the_box_only():
    """A wall below y = 3 of a periodic box ends at its lower face, half-way along the links."""
    seen = []

    def floor(x, y):
        seen.append((y.min(), y.max()))
        return y < 3

    tables = box("D2Q9", [12, 12], body=[{"label": "f", "shape": floor,
                                          "boundary": {"name": "interpolated"}}])  # fmt: skip
    case = parse_case(tables, "a.toml")
    shape = case.bodies[0].shape.in_box(case.domain)
    q = shape.distance(np.array([[4.5, 4.5], [11.5, 3.5]]), np.array([[0.0, 0], [1, -1]]))
    assert q == pytest.approx([0.5, 0.5], abs=1e-12)
    assert all(low >= 0 and high < 12 for low, high in seen)
