"""Plane walls of bodies, and the cells that wall models sample there."""

import numpy as np
import pytest
from support.slabs import box
from support.surfaces import write
from support.walls import body

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.parallel.slabs import split
from mpilbm.physics.boundary_capabilities import CORNER_FALLBACK, INWARD_FALLBACK
from mpilbm.solids.build import build
from mpilbm.solids.plane_costs import require_planes

MODEL = {"name": "wall_model", "law": "spalding", "sample": 3}


def samples(slabs: int, *bodies: dict):
    """Of each slab: coordinates of the cells and of the sampled cells, and the samples."""
    case = parse_case(box("D2Q9", [9, 12], body=list(bodies)), "test.toml")
    for slab in split(case.shape, slabs, True):
        entries = next(each for each in build(case, slab).lists if each.samples)
        places = []
        for cells in (entries.cells, entries.samples.cells):
            plane, x = np.divmod(cells, 9)
            places.append(np.stack([x, (plane + slab.begin) % 12], axis=1))
        yield *places, entries


def test_a_block_and_a_plate_above_it():
    """Cells around a block sample two cells away; those below a plate the last fluid cell."""
    block = body(MODEL, "block", name="box", lower=[2, 3], upper=[7, 6])
    plate = body(MODEL, "plate", name="box", lower=[0, 8], upper=[9, 9])
    ((at, sampled, entries),) = samples(1, block, plate)
    triples = zip(at, sampled, entries.samples.height, strict=True)
    found = {tuple(a): (tuple(b), h) for a, b, h in triples}
    assert found[4, 2] == ((4, 0), 2.5)
    assert found[1, 4] == ((8, 4), 2.5)
    assert found[7, 4] == ((0, 4), 2.5)
    assert found[0, 9] == ((0, 11), 2.5)
    # a cell has an entry for each body; the later one is that of the plate
    assert found[4, 7] == ((4, 6), 1.5)
    corner = np.flatnonzero((at == [1, 2]).all(axis=1))  # its link meets the edge
    assert not entries.samples.normal[corner].any()
    assert not entries.samples.inclined.any()
    nearer, sloped = (entries.fallbacks[key] for key in (INWARD_FALLBACK, CORNER_FALLBACK))
    assert nearer == 3 + 5  # between block and plate; the ends of the block have no wall
    assert sloped == 8  # the ends of the sides of the block, in 2D


def test_a_disc():
    """Normal and distance are those of the tangent plane nearest to the cell."""
    disc = body(MODEL, "disc", name="sphere", centre=[4.6, 5.3], radius=2.4)
    ((at, sampled, entries),) = samples(1, disc)
    away = at + 0.5 - [4.6, 5.3]
    radius = np.sqrt((away**2).sum(axis=1))
    normal = away / radius[:, None]
    inclined = entries.samples.inclined
    assert inclined.all()
    assert entries.samples.curved.all()
    cosine = (entries.samples.normal * normal).sum(axis=1)
    assert cosine.min() > 0.9
    steps = (sampled - at + [4, 6]) % [9, 12] - [4, 6]
    own = entries.samples.height - (steps * entries.samples.normal).sum(axis=1)
    assert (own <= np.maximum(radius - 2.4, 0.25) + 0.2).all()
    assert entries.fallbacks[CORNER_FALLBACK] == 0


def test_inner_edges_have_no_wall():
    """Where surfaces meet at a right angle, both inclined to the cells."""
    sides = [{"name": "half_space", "point": [4, 3], "normal": n} for n in ([1, 2], [-2, 1])]
    ((at, _, entries),) = samples(1, body(MODEL, "corner", name="union", of=sides))
    blind = at[~entries.samples.normal.any(axis=1)].tolist()
    assert [3, 3] in blind
    assert [3, 4] in blind
    assert 2 <= entries.fallbacks[CORNER_FALLBACK] <= len(blind) < len(at) / 2


def test_slabs_do_not_show():
    block = body(MODEL, "block", name="box", lower=[2, 3], upper=[7, 6])
    ((at, sampled, entries),) = samples(1, block)
    cut = list(samples(4, block))
    assert np.array_equal(np.concatenate([each[0] for each in cut]), at)
    assert np.array_equal(np.concatenate([each[1] for each in cut]), sampled)
    heights = [each[2].samples.height for each in cut]
    assert np.array_equal(np.concatenate(heights), entries.samples.height)


def test_cells_behind_sheets_are_not_sampled(tmp_path):
    """Two sheets two cells apart: between them the second cell, elsewhere the third one."""
    corners = [[-9, 0, -9], [9, 0, -9], [9, 0, 9], [-9, 0, 9]]
    write(tmp_path / "plate.stl", corners, [[0, 1, 2], [0, 2, 3]])
    shape = {"name": "mesh", "file": str(tmp_path / "plate.stl"), "scale": 1, "thin": True}
    shape |= {"anchor": "origin"}
    sheets = [body(MODEL, f"sheet{y}", **(shape | {"at": [2, y, 2]})) for y in (3, 5)]
    case = parse_case(box("D3Q19", [3, 9, 3], body=sheets), "test.toml")
    (slab,) = split(case.shape, 1, True)
    (entries,) = build(case, slab).lists
    rows = [cells // 3 % 9 for cells in (entries.cells, entries.samples.cells)]
    found = set(zip(*(each.tolist() for each in (*rows, entries.samples.height)), strict=True))
    assert found == {(2, 0, 2.5), (3, 4, 1.5), (4, 3, 1.5), (5, 7, 2.5)}
    assert entries.fallbacks[INWARD_FALLBACK] == 2 * 9


def test_slabs_thinner_than_what_a_sample_reads_are_refused():
    block = body(MODEL, "block", name="box", lower=[2, 0], upper=[7, 1])
    for planes, slabs, fix in ((2, 1, "use more cells along y"), (8, 4, "start at most 2 ranks")):
        case = parse_case(box("D2Q9", [9, planes], body=[block]), "test.toml")
        with pytest.raises(CaseError, match=f"owns 2 planes of {planes}; needed: 3; {fix}"):
            require_planes(case, split(case.shape, slabs, True)[0])
