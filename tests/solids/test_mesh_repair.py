"""Surfaces that are nearly closed, contain triangles twice, overlap, or do not fit into the box."""

import numpy as np
import pytest
import trimesh
from support.surfaces import case_of, cells, mesh

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.core.units import Units
from mpilbm.run.preflight.plan import plan
from mpilbm.solids.shapes import Flow
from mpilbm.solids.surfaces.triangles import components, open_edges

SIZE = (24, 24, 24)
AT = {"scale": 1, "at": [0, 0, 0], "anchor": "origin"}
BOX = np.array(trimesh.creation.box((8, 8, 8)).apply_translation([10.25] * 3).triangles)
INSIDE_OUT = BOX[:, ::-1]


def write(folder, triangles) -> None:
    """A text file with all digits of the corners (n, 3, 3)."""
    facets = [
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in corners)
        + "endloop\nendfacet\n"
        for corners in np.asarray(triangles).tolist()
    ]
    (folder / "a.stl").write_text("".join(["solid a\n", *facets, "endsolid a\n"]))


def body(folder, triangles, **keys):
    write(folder, triangles)
    return mesh(folder, SIZE, file="a.stl", **(AT | keys))


def refused(folder, triangles, **keys) -> str:
    with pytest.raises(ValueError, match=r"'a\.stl' ") as error:
        body(folder, triangles, **keys)
    return str(error.value)


def findings(shape, folder) -> list[str]:
    case = case_of(folder, SIZE, fluids=[type("Fluid", (), {"viscosity": 0.01})])
    return [each.line for each in shape.findings(case, "body.a.shape", Flow(0, None))]


def beside(x):
    return BOX + np.array([x, 0, 0])


def loose(*corners):
    return np.concatenate([BOX, np.array([corners], float)])


@pytest.mark.parametrize(
    ("triangles", "changes"),
    [
        (BOX + np.random.default_rng(1).uniform(-4e-7, 4e-7, BOX.shape), "vertices merged: 28"),
        (np.concatenate([BOX, BOX[3:4]]), "repeated triangles dropped: 1"),
        (np.concatenate([BOX, INSIDE_OUT[3:4]]), "repeated triangles dropped: 1"),
        (loose([20, 2, 2], [22, 2, 2], [20, 4, 2.3]), "triangles of loose flat parts dropped: 1"),
        (loose(BOX[0, 0], BOX[0, 1], [1, 1, 1]), "loose triangles dropped: 1"),
        (loose(BOX[0, 0], BOX[0, 0] + 1e-7, [1, 1, 1]),
         "vertices merged: 1, collapsed triangles dropped: 1"),
        (BOX[1:], "holes filled: 1"),
        (BOX[2:], "holes filled: 1"),
    ],
)  # fmt: skip
def test_repairs(tmp_path, triangles, changes):
    assert " open edge" in refused(tmp_path, triangles)
    found = body(tmp_path, triangles, repair=True)
    assert found.loaded.repaired.startswith("closed ")
    assert found.loaded.repaired.endswith(f" in coordinates of the file; {changes}")
    whole = body(tmp_path, BOX)
    assert np.array_equal(cells(found, SIZE), cells(whole, SIZE))
    assert not any("thin" in line for line in findings(found, tmp_path))


def test_two_triangles_fill_a_hole_of_four_edges(tmp_path):
    found = body(tmp_path, BOX[2:], repair=True)
    assert found.surface.corners.shape == body(tmp_path, BOX).surface.corners.shape


def test_the_size_is_that_of_the_repaired_surface(tmp_path):
    far = loose([200, 0, 0], [202, 0, 0], [200, 3, 1])
    found = body(tmp_path, far, repair=True, scale=None, length=16, at=[12] * 3, anchor="centre")
    assert found.bounds() == pytest.approx(np.array([[4] * 3, [20] * 3]))
    assert cells(found, SIZE).sum() == 16**3


@pytest.mark.parametrize("again", [BOX, INSIDE_OUT])
def test_all_triangles_twice(tmp_path, again):
    both = np.concatenate([BOX, again])
    found = refused(tmp_path, both)
    assert "has 12 triangles more than once, the first at [" in found
    assert found.endswith("or set repair = true, which removes them")
    once = body(tmp_path, both, repair=True)
    assert once.loaded.repaired == "repaired; repeated triangles dropped: 12"
    assert cells(once, SIZE).sum() == 512


def test_a_face_shared_by_two_solids_is_not_a_repetition(tmp_path):
    both = np.concatenate([BOX, beside(8)])
    for repair in (False, True):
        found = body(tmp_path, both, repair=repair)
        assert found.loaded.repaired == ""
        assert cells(found, SIZE).sum() == 1024


def test_solids_with_coplanar_sides_that_overlap(tmp_path):
    """The second begins in the middle of the first; four of their sides are in the same planes."""
    found = body(tmp_path, np.concatenate([BOX, beside(4)]))
    assert found.problems_in_cells(case_of(tmp_path, SIZE)) == []
    first, second = findings(found, tmp_path)
    assert first.startswith("serious: body.a.shape: parts of the surface overlap or intersect: 256 "
                            "cells in an even number of parts")  # fmt: skip
    assert second.startswith("note: body.a.shape: the sides")


def test_a_two_sided_sheet_is_a_sheet(tmp_path):
    """Two coincident surfaces where the line enters the part and leaves it."""
    side = BOX[:2]
    found = body(tmp_path, np.concatenate([side, side[:, ::-1]]))
    (problem,) = found.problems_in_cells(case_of(tmp_path, SIZE))
    assert problem.startswith("is a sheet: at ")


def test_all_holes_of_a_damaged_ball_are_closed(tmp_path):
    ball = np.array(trimesh.creation.icosphere(3, 8).apply_translation([12] * 3).triangles)
    kept = ball[np.random.default_rng(2).random(len(ball)) > 0.05]
    found = body(tmp_path, kept, repair=True).loaded
    assert found.closed
    corners = found.surface.corners.transpose(2, 1, 0).reshape(-1, 3)
    _, index = np.unique(corners, axis=0, return_inverse=True)
    assert not len(open_edges(index.reshape(-1, 3)))


def test_components():
    order = np.random.default_rng(3).permutation(1000)
    chains = np.stack([order[:-1], order[1:]], axis=1)
    label = components(np.delete(chains, 499, axis=0).T, 1001)
    assert set(label[order[:500]]) == {order[:500].min()}
    assert set(label[order[500:]]) == {order[500:].min()}
    assert label[1000] == 1000


def test_a_body_in_a_wrong_unit_is_refused_with_the_right_one(tmp_path):
    found = refused(tmp_path, BOX, scale=1000)
    assert "has sides of 8000 x 8000 x 8000 cells in a box of 24 x 24 x 24; allowed: a " in found
    assert found.endswith(
        "; scale = 1, for a file in mm read as one in m, would give 8 x 8 x 8 cells"
    )
    assert refused(tmp_path, BOX, scale=None, length=99).endswith("; length = 24 would fit")
    case = case_of(tmp_path, SIZE, units=Units(cell=1e-3, step=1, density=1))
    keys = {"name": "mesh", "file": "a.stl", "at": [12, 12, 12]}
    with pytest.raises(ValueError, match="unit = 'mm' would give 8 x 8 x 8 cells"):
        make("shapes", keys | {"unit": "m"}).resolved(case)
    with pytest.raises(ValueError, match="unit = 'mm' would give 8 x 8 x 8 cells"):
        make("shapes", keys | {"unit": "cm"}).resolved(case)
    assert make("shapes", keys | {"unit": "mm"}).resolved(case)


def test_a_long_body_is_a_note(tmp_path):
    """Such as a pipe that is longer than the part of it in the box; a sheet of any size."""
    found = body(tmp_path, (BOX - 10.25) * [10, 1, 1] + 10.25)
    assert findings(found, tmp_path)[0].startswith(
        "note: body.a.shape: its sides of 80 x 8 x 8 cells are more than twice as long as the "
        "box along x; only the part in the box counts"
    )
    sheet = body(tmp_path, BOX, scale=1000, thin=True)
    assert findings(sheet, tmp_path)[0].startswith("warning: body.a.shape: its sides of 8000 x ")


def test_a_body_outside_a_periodic_box_is_a_warning(tmp_path):
    write(tmp_path, beside(4.4 * 24))
    tables = {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": list(SIZE), "periodic": [True] * 3},
        "fluid": {"viscosity": 0.1},
        "body": [{"label": "a", "shape": {"name": "mesh", "file": "a.stl"} | AT,
                  "boundary": {"name": "bounce_back"}}],
        "run": {"steps": 2},
    }  # fmt: skip
    lines = [each.line for each in plan(parse_case(tables, tmp_path / "case.toml")).findings]
    assert (
        "warning: body.a.shape: lies outside the box, from x = 111.9 to 119.9; the box of 24 cells "
        "is periodic, so that the body appears from x = 15.85 to 23.85; change `at` to place it "
        "there" in lines
    )
    tables["body"][0]["shape"]["scale"] = 1000
    with pytest.raises(CaseError, match=r"body.a.shape: 'a.stl' has sides of 8000 x 8000 x 8000"):
        parse_case(tables, tmp_path / "case.toml")
