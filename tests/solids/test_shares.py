"""Solid shares of cells: exact planes, volumes of bodies, periodic images, bodies in one cell."""

from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from support.surfaces import mesh

from mpilbm.core.registry import make
from mpilbm.parallel.slabs import split
from mpilbm.solids.shares import WHOLE, Shares, share_behind
from mpilbm.solids.solid_cells import padded_ids

RIM = 4 / WHOLE  # quantised shares of a few hundred cut cells, whose errors cancel


def centres(size):
    axes = np.meshgrid(*(np.arange(n) + 0.5 for n in size), indexing="ij")
    return np.stack([axis.reshape(-1) for axis in axes])


def counted(inside, points, n=40):
    """The shares of cells around points (D, m) by counting n^D points in each."""
    D = len(points)
    fine = centres((n,) * D) / n - 0.5
    return np.array([np.mean(inside(*(point[:, None] + fine))) for point in points.T])


@pytest.mark.parametrize("D", [2, 3])
def test_the_share_behind_a_plane_is_its_volume(D):
    """All cases of the formula, planes parallel to axes among them; 40^D points count to 1 %."""
    rng = np.random.default_rng(D)
    normal = rng.standard_normal((D, 120)) * 10.0 ** rng.uniform(-3, 0, (D, 120))
    normal[0, :20] = 0
    normal /= np.sqrt((normal**2).sum(axis=0))
    distance = rng.uniform(-0.9, 0.9, 120)
    found = share_behind(distance, normal)
    n, d = normal.T, distance
    for k in range(120):
        by_points = counted(lambda *x, k=k: n[k] @ np.array(x) <= -d[k], np.zeros((D, 1)))
        assert abs(found[k] - by_points[0]) < 0.013
    assert share_behind(-distance, normal) == pytest.approx(1 - found, abs=1e-12)
    assert share_behind(-distance, -normal) == pytest.approx(1 - found, abs=1e-12)


def test_the_share_is_continuous_and_ends_at_the_corners():
    """Between the cases of the formula, and where the plane leaves the cell."""
    normal = np.array([1.0, 2.0, 5.0]) / np.sqrt(30)
    distance = np.linspace(-0.8, 0.8, 20001)
    found = share_behind(distance, np.repeat(normal[:, None], distance.size, 1))
    end = normal.sum() / 2
    assert np.abs(np.diff(found)).max() < 1.2 * 8e-5
    assert (found[distance < -end] == 1).all()
    assert (found[distance > end] == 0).all()


BALLS = [(2, 3.0, 1e-3, 0.03), (2, 12.0, 2e-5, 0.01), (3, 3.0, 5e-4, 0.03), (3, 12.0, 1e-5, 0.01)]


@pytest.mark.parametrize(("D", "radius", "volume", "cell"), BALLS)
def test_balls(D, radius, volume, cell):
    """The relative error of the volume, and the largest error of a cell."""
    centre = [16.3, 15.8, 16.1][:D]
    ball = make("shapes", {"name": "sphere", "centre": centre, "radius": radius})
    points = centres((32,) * D)
    found = ball.share(points)
    exact = np.pi * radius**2 if D == 2 else 4 / 3 * np.pi * radius**3
    assert found.sum() == pytest.approx(exact, rel=volume)
    cut = np.flatnonzero((found > 0) & (found < 1))[::7]
    assert np.abs(found[cut] - counted(ball.inside, points[:, cut], 20)).max() < cell


def shapes():
    """(shape, exact volume, relative error) in a box of 24 x 24 x 24."""
    pi = np.pi
    tube = {"name": "cylinder", "centre": [11.7, 12.1, 12.3], "radius": 5.2, "axis": "z"}
    yield tube | {"length": 9.3}, pi * 5.2**2 * 9.3, 1e-3
    yield (
        {"name": "box", "lower": [3.2, 4.7, 5.1], "upper": [9.9, 4.9, 12.3]},
        6.7 * 0.2 * 7.2,
        1e-9,
    )
    plane = {"name": "half_space", "point": [12, 12, 12], "normal": [1, 2, -2]}
    yield plane, 24**3 / 2, 1e-9
    yield (
        {"name": "torus", "centre": [12, 12.2, 11.8], "radius": 7, "tube": 2.6, "axis": "x"},
        (2 * pi**2 * 7 * 2.6**2),
        5e-3,
    )
    block = {"name": "box", "lower": [4, 4, 6.4], "upper": [20, 20, 14.6]}
    yield {"name": "difference", "of": [block, tube]}, (256 - pi * 5.2**2) * 8.2, 7e-3
    apart = {"name": "sphere", "centre": [19.4, 19.9, 20.2], "radius": 3.1}
    both = tube | {"centre": [7, 7, 7.1], "length": 9.3}
    yield {"name": "union", "of": [both, apart]}, pi * (5.2**2 * 9.3 + 4 / 3 * 3.1**3), 1e-3


def case_of(size, bodies, periodic=True):
    """What the shares ask of a case; bodies: (table or shape, whether it acts in cells)."""
    domain = SimpleNamespace(size=size, periodic=(periodic,) * len(size))
    found = []
    for shape, in_cells in bodies:
        shape = make("shapes", shape) if isinstance(shape, dict) else shape
        boundary = SimpleNamespace(capabilities=SimpleNamespace(in_cells=in_cells))
        found.append(SimpleNamespace(shape=shape, mask=None, boundary=boundary, motion=None))
    lattice = make("lattices", "D2Q9" if len(size) == 2 else "D3Q19")
    shape = tuple(size[::-1]) if len(size) == 3 else (size[1], 1, size[0])
    return SimpleNamespace(
        domain=domain,
        bodies=found,
        dimensions=len(size),
        lattice=lattice,
        shape=shape,
        ghost=1,
    )


def shares_of(case, ranks=1):
    slabs = split(case.shape, ranks, case.domain.periodic[-1])
    found = [Shares.find(case, s, padded_ids(case, s)[1:-1]) for s in slabs]
    return (np.concatenate([getattr(each, name) for each in found]) for name in ("share", "body"))


@pytest.mark.parametrize(("shape", "volume", "error"), list(shapes()), ids=lambda v: str(v)[:30])
def test_volumes_of_shapes(shape, volume, error):
    """Also in slabs, bit for bit."""
    case = case_of((24, 24, 24), [(shape, True)], periodic=False)
    share, body = shares_of(case)
    rounded = RIM * np.sqrt(np.count_nonzero((share > 0) & (share < WHOLE))) / volume
    assert share.sum() / WHOLE == pytest.approx(volume, rel=error + rounded)
    assert ((body > 0) == (share > 0)).all()
    for one, other in zip((share, body), shares_of(case, 5), strict=True):
        assert np.array_equal(one, other)


def test_a_body_that_crosses_periodic_faces_is_whole():
    ball = {"name": "sphere", "centre": [0.3, 11.9, 0.1], "radius": 4.2}
    share, _ = shares_of(case_of((16, 16, 16), [(ball, True)]))
    middle = ball | {"centre": [8.3, 3.9, 8.1]}
    moved, _ = shares_of(case_of((16, 16, 16), [(middle, True)]))
    assert np.array_equal(np.roll(share, (8, -8, 8), (0, 1, 2)), moved)


def test_bodies_in_one_cell():
    """Shares are added, the larger one gives the body; a body with links has no share."""
    lower = {"name": "box", "lower": [0, 0], "upper": [8, 3.3]}
    upper = {"name": "box", "lower": [0, 3.3], "upper": [8, 8]}
    share, body = shares_of(case_of((8, 8), [(lower, True), (upper, True)], periodic=False))
    assert (share == WHOLE).all()
    assert (body[:, 0, 0] == [1, 1, 1, 2, 2, 2, 2, 2]).all()
    share, body = shares_of(case_of((8, 8), [(lower, True), (upper, False)], periodic=False))
    assert (share[:, 0, 0] == [WHOLE] * 3 + [0] * 5).all()
    assert (body[:, 0, 0] == [1] * 3 + [0] * 5).all()


def test_meshes(tmp_path):
    """A ball of triangles has their volume, a rotated box that of its faces; inverted: the rest."""
    trimesh.creation.icosphere(3).export(tmp_path / "ball.stl")
    ball = mesh(tmp_path, (24,) * 3, file="ball.stl", scale=8, at=[12.2, 11.9, 12.1])
    share, _ = shares_of(case_of((24, 24, 24), [(ball, True)], periodic=False))
    volume = 8**3 * trimesh.creation.icosphere(3).volume
    assert share.sum() / WHOLE == pytest.approx(volume, rel=1 / (4 * 8**2) + 1e-3)
    outside = mesh(
        tmp_path, (24,) * 3, file="ball.stl", scale=8, at=[12.2, 11.9, 12.1], invert=True
    )
    rest, _ = shares_of(case_of((24, 24, 24), [(outside, True)], periodic=False))
    assert np.abs(share.astype(int) + rest - WHOLE).max() <= 1
    block = trimesh.creation.box((14, 9, 8))
    block.export(tmp_path / "block.stl")
    turned = mesh(
        tmp_path, (24,) * 3, file="block.stl", scale=1, at=[12, 12, 12], rotate=[20, 30, 10]
    )
    share, _ = shares_of(case_of((24, 24, 24), [(turned, True)], periodic=False))
    assert share.sum() / WHOLE == pytest.approx(14 * 9 * 8, rel=0.015)  # edges are cut by one plane
    points = centres((24, 24, 24))
    found = turned.share(points)
    cut = np.flatnonzero((found > 0.05) & (found < 0.95))[::29]
    error = np.abs(found[cut] - counted(turned.inside, points[:, cut], 12))
    assert np.median(error) < 0.005  # on faces
    assert error.max() < 0.2  # at edges
