"""Cells above curved walls in which friction acts, and the areas of the wall below them."""

import numpy as np
import pytest
from support.slabs import box
from support.surfaces import write
from support.walls import body

from mpilbm.case.case import parse_case
from mpilbm.parallel.slabs import split
from mpilbm.physics.boundary_capabilities import LAYER_FALLBACK
from mpilbm.solids.build import build, survey

MODEL = {"name": "wall_model", "law": "spalding"}


def layers(size: list[int], *bodies: dict, lattice: str = "D2Q9", slabs: int = 1, mirror: str = ""):
    """Of each slab: cells in the box, and the list of the cells above walls; None without one.

    mirror: an axis whose faces are planes of symmetry.
    """
    faces = [{"name": "free_slip", "where": [f"{mirror}-", f"{mirror}+"]}] if mirror else []
    domain = {"size": size, "periodic": [axis != mirror for axis in "xyz"[: len(size)]]}
    tables = box(lattice, size, body=list(bodies), boundary=faces, domain=domain)
    case = parse_case(tables, "test.toml")
    for slab in split(case.shape, slabs, domain["periodic"][-1]):
        lists = build(case, slab).lists
        found = next((each for each in lists if each.layer), None)
        plane = slab.shape[1] * slab.shape[2]
        yield (found.cells + slab.begin * plane if found else []), found, lists


def ball(centre: list[float], radius: float, label: str = "ball") -> dict:
    return body(MODEL, label, name="sphere", centre=centre, radius=radius)


@pytest.mark.parametrize(
    ("lattice", "size", "radius"),
    [("D2Q9", [40, 40], 9.0), ("D3Q15", [26] * 3, 6.0), ("D3Q19", [26] * 3, 6.0)],
)
def test_the_areas_are_those_of_the_wall(lattice, size, radius):
    D = len(size)
    centre = np.array([n / 2 + 0.2 for n in size])
    ((cells, entries, _),) = layers(size, ball(centre.tolist(), radius), lattice=lattice)
    layer = entries.layer
    area = 2 * np.pi * radius if D == 2 else 4 * np.pi * radius**2
    assert 0.99 < layer.area.sum() / area < 1.06  # of links to a ball of R: 1 + 0.3 / R
    assert (layer.area > 0).all()
    at = np.stack(np.unravel_index(cells, tuple(size[::-1])), axis=1)[:, ::-1] + 0.5
    away = at - centre
    distance = np.sqrt((away**2).sum(axis=1))
    share = layer.area / layer.area.sum()
    assert (share * np.abs(layer.height - (distance - radius))).sum() < 0.1
    assert (share * (layer.normal * away).sum(axis=1) / distance).sum() > 0.99
    np.testing.assert_allclose((layer.normal**2).sum(axis=1), 1)
    total = (layer.area[:, None] * layer.normal).sum(axis=0)
    assert np.abs(total).max() < 0.02 * area


def test_neither_slabs_nor_periodic_faces_show():
    """The bits are those of one slab, also for a disc in the corner of the box."""
    for centre in ([10.3, 11.2], [0.3, 1.2]):
        ((cells, entries, _),) = layers([21, 22], ball(centre, 4.0))
        cut = [each for each in layers([21, 22], ball(centre, 4.0), slabs=7) if each[1]]
        assert np.array_equal(np.concatenate([each[0] for each in cut]), cells)
        for name in ("normal", "height", "area"):
            parts = [getattr(each[1].layer, name) for each in cut]
            assert np.array_equal(np.concatenate(parts), getattr(entries.layer, name)), name


def test_neither_slabs_nor_faces_show_between_bodies():
    """As before; the walls of bodies in other slabs decide to which body cells belong."""
    discs = [ball([6.2, 9.3], 4.0, "left"), ball([11.9, 18.1], 3.0, "right")]
    ((cells, entries, _),) = layers([20, 26], *discs, mirror="x")
    assert set(entries.member.tolist()) == {0, 1}
    for slabs in (2, 5, 8):
        cut = [each for each in layers([20, 26], *discs, slabs=slabs, mirror="x") if each[1]]
        assert np.array_equal(np.concatenate([each[0] for each in cut]), cells)
        for name in ("normal", "height", "area"):
            parts = [getattr(each[1].layer, name) for each in cut]
            assert np.array_equal(np.concatenate(parts), getattr(entries.layer, name)), name


@pytest.mark.parametrize(
    ("lattice", "radius", "axis"),
    [("D2Q9", 6.0, "y"), ("D2Q9", 9.5, "x"), ("D3Q19", 5.0, "y"), ("D3Q19", 6.3, "z")],
)
def test_half_models(lattice, radius, axis):
    """Cut by a plane of symmetry they have half of the area; 6 to 12 % less without its row."""
    D, n = int(lattice[1]), 2 * round(radius) + 10
    k = "xyz".index(axis)
    centre, size = [n / 2] * D, [n] * D
    ((_, whole, _),) = layers(size, ball(centre, radius), lattice=lattice)
    centre[k], size[k] = 0.0, n // 2
    ((_, half, _),) = layers(size, ball(centre, radius), lattice=lattice, mirror=axis)
    assert half.layer.area.sum() == pytest.approx(whole.layer.area.sum() / 2, rel=0.005)
    slanted = (
        half.layer.area @ np.abs(half.layer.normal),
        whole.layer.area @ np.abs(whole.layer.normal),
    )
    np.testing.assert_allclose(slanted[0], slanted[1] / 2, rtol=0.05)


def test_a_quarter_model():
    """Cut by two planes of symmetry."""
    ((_, whole, _),) = layers([22, 22], ball([11.0, 11.0], 6.0))
    faces = [{"name": "free_slip", "where": ["x-", "x+", "y-", "y+"]}]
    domain = {"size": [11, 11], "periodic": [False, False]}
    tables = box("D2Q9", [11, 11], body=[ball([0.0, 0.0], 6.0)], boundary=faces, domain=domain)
    case = parse_case(tables, "test.toml")
    (slab,) = split(case.shape, 1, False)
    (area,) = (each.layer.area.sum() for each in build(case, slab).lists if each.layer)
    assert area == pytest.approx(whole.layer.area.sum() / 4, rel=1e-9)


def test_a_curved_sheet(tmp_path):
    """Half of a cylinder without an inside has friction on both sides, of the area of each."""
    R, planes = 6.0, 4
    angles = np.linspace(0, np.pi, 41)
    arc = np.stack([R * np.cos(angles), R * np.sin(angles)], axis=1)
    points = [[*xy, z] for z in (-20.0, 20.0) for xy in arc]
    pairs = [(k, k + 1, k + 41, k + 42) for k in range(40)]
    triangles = [t for a, b, c, d in pairs for t in ([a, b, d], [a, d, c])]
    write(tmp_path / "arc.stl", points, triangles)
    shape = {"name": "mesh", "file": str(tmp_path / "arc.stl"), "scale": 1, "thin": True}
    arc = body(MODEL, "arc", **shape, anchor="origin", at=[11.2, 8.3, 2.0])
    ((_, entries, _),) = layers([22, 22, planes], arc, lattice="D3Q19")
    assert entries.layer.area.sum() == pytest.approx(2 * np.pi * R * planes, rel=0.05)


def test_counts_of_planes_hold_the_cells_above_walls():
    """From which `check` computes the memory of the start."""
    case = parse_case(box("D2Q9", [30, 31], body=[ball([15.2, 15.3], 5.0)]), "test.toml")
    (slab,) = split(case.shape, 1, True)
    cells = np.concatenate([each.cells for each in build(case, slab).lists])
    counts = survey(case, 7, lambda *seen: None).entries
    assert np.array_equal(counts, np.bincount(cells // 30, minlength=31))


def test_walls_parallel_to_the_cells_have_none():
    block = body(MODEL, "block", name="box", lower=[4, 5], upper=[9, 10])
    ((_, entries, _),) = layers([20, 20], block)
    assert entries is None


def test_two_discs_share_no_cell():
    """A cell above both belongs to one of them, and the other one has no less friction.

    Where no cell is left between them, it is lost, and counted.
    """
    discs = [ball([8.2, 12.3], 4.0, "left"), ball([20.4, 12.1], 4.0, "right")]
    ((cells, entries, lists),) = layers([30, 24], *discs)
    assert np.unique(cells).size == cells.size
    area = np.bincount(entries.member, entries.layer.area)
    alone = [layers([30, 24], disc) for disc in discs]
    expected = [float(entries.layer.area.sum()) for ((_, entries, _),) in alone]
    np.testing.assert_allclose(area, expected, rtol=1e-12)
    assert sum(each.fallbacks.get(LAYER_FALLBACK, 0) for each in lists) == 0
    discs[1] = ball([18.4, 12.1], 4.0, "right")
    ((_, entries, lists),) = layers([30, 24], *discs)
    assert entries.layer.area.sum() < 0.97 * 2 * np.pi * 8
    assert sum(each.fallbacks.get(LAYER_FALLBACK, 0) for each in lists) > 2


def test_walls_on_both_sides_of_a_gap():
    """Of one body, the normals of both sides do not cancel: friction is along the gap."""
    halves = [{"name": "sphere", "centre": [x, 20.0], "radius": 14.0} for x in (4.0, 37.0)]
    ((cells, entries, _),) = layers([41, 40], body(MODEL, "gap", name="union", of=halves))
    y, x = np.divmod(cells, 41)
    between = (x == 20) & (np.abs(y + 0.5 - 20) < 4)
    assert between.sum() >= 8
    assert np.abs(entries.layer.normal[between, 0]).min() > 0.95
