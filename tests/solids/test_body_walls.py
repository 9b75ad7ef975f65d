"""Words of the cells next to half-way walls of bodies."""

from itertools import product

import numpy as np
import pytest
from support.slabs import box
from support.surfaces import write

from mpilbm.case.case import parse_case
from mpilbm.layouts.grid import Grid
from mpilbm.parallel.slabs import split
from mpilbm.physics.boundaries import reflecting
from mpilbm.solids import build
from mpilbm.solids.body_walls import BLOCK, SOLID, BodyWalls
from mpilbm.solids.solid_cells import padded_ids, solids

HALF_WAY = {"name": "bounce_back"}
WALLS = [{"name": "bounce_back", "where": ["y-", "y+"]}]


def case_of(**more):
    """Two bodies at periodic faces and at a wall, and one that is filled."""
    shapes = [
        {"name": "sphere", "centre": [38.6, 4.4, 6.3], "radius": 2.7},
        {"name": "box", "lower": [0, 0, 1], "upper": [39, 2, 3]},
        {"name": "sphere", "centre": [20.5, 4.4, 3.3], "radius": 1.7},
    ]
    kinds = HALF_WAY, HALF_WAY, {"name": "partially_saturated"}
    bodies = [{"shape": s, "boundary": k} for s, k in zip(shapes, kinds, strict=True)]
    domain = {"size": [39, 7, 8], "periodic": [True, False, True]}
    tables = {"domain": domain, "boundary": WALLS, "body": bodies} | more
    return parse_case(box("D3Q19", domain["size"], **tables), "test.toml")


def walls_of(case, slab, ghost) -> BodyWalls:
    slots = tuple(range(10))
    grid = Grid.dense("f", slab.planes, *slab.shape[1:], slots, ghost)
    return BodyWalls.of(case, slab, build.build(case, slab), grid)


def words(walls: BodyWalls, nx: int) -> np.ndarray:
    """The words of all cells, (planes, rows, nx)."""
    found = walls.words[walls.blocks]
    return found.reshape(*found.shape[:2], -1)[:, :, :nx]


def expected(case) -> np.ndarray:
    """The words of the box, from the solid cells at the other ends of links."""
    (slab,) = split(case.shape, 1, True)
    solid = solids(case, padded_ids(case, slab))[1:-1] > 0
    found = solid.astype(np.uint32)
    for at in product(*map(range, case.shape)):
        for i in range(1, case.lattice.Q):
            there = np.subtract(at, case.lattice.offset(i))
            inside = 0 <= there[1] < case.shape[1]
            if inside and not solid[at] and solid[tuple(there % case.shape)]:
                found[at] |= 1 << i
    return found


def test_links_from_solid_cells():
    case = case_of()
    (slab,) = split(case.shape, 1, True)
    walls = walls_of(case, slab, ghost=1)
    assert np.array_equal(words(walls, 39)[1:-1], expected(case))
    assert not walls.blocks[[0, -1]].any()
    used = np.unique(walls.blocks)
    assert np.array_equal(used, np.arange(len(walls.words)))
    assert (walls.blocks == SOLID).sum() == 2 * 2 * 2  # two planes and rows of two blocks
    assert walls.words.shape[1] == BLOCK
    assert walls.owners == {1, 2}  # the walls of the box come first


@pytest.mark.parametrize("count", [2, 3])
def test_planes_of_neighbours(count):
    """With two ghost planes, those beside the slab have words."""
    case = case_of()
    whole = expected(case)
    for slab in split(case.shape, count, True):
        planes = [p % case.shape[0] for p in range(slab.begin - 1, slab.end + 1)]
        assert np.array_equal(words(walls_of(case, slab, ghost=2), 39)[1:-1], whole[planes])


def test_other_bodies_have_none(tmp_path):
    """Bodies that move, that act in cells, with interpolated walls, and sheets."""
    ball = {"name": "sphere", "centre": [9, 3, 4], "radius": 2}
    kinds = [{"name": "interpolated"}, {"name": "partially_saturated"}]
    kinds.append({"name": "bounce_back", "velocity": [0, 0.01, 0]})
    bodies = [{"shape": ball, "boundary": kind} for kind in kinds]
    corners = [[a, 0, b] for a, b in ((-9, -9), (9, -9), (9, 9), (-9, 9))]
    write(tmp_path / "plate.stl", np.array(corners), [[0, 1, 2], [0, 2, 3]])
    sheet = {"name": "mesh", "file": str(tmp_path / "plate.stl"), "scale": 1, "thin": True}
    sheet |= {"at": [20.5, 3.5, 3.5], "anchor": "origin"}
    case = case_of(body=[*bodies, {"shape": sheet, "boundary": HALF_WAY}])
    assert not reflecting(case)
    (slab,) = split(case.shape, 1, True)
    walls = walls_of(case, slab, ghost=2)
    assert not walls.blocks.any()
    assert not walls.owners
