"""Files of surfaces: what is refused, with which words, and what is repaired."""

import re
import sys

import numpy as np
import pytest
import trimesh
from support.surfaces import case_of, cells, mesh, write, write_ball

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.core.units import Units

SIZE = (20, 20, 20)
AT = {"scale": 6, "at": [10, 10, 10]}
BOX = trimesh.creation.box((2, 2, 2))


def refused(folder, size=SIZE, **keys) -> str:
    try:
        mesh(folder, size, **keys)
    except ValueError as error:
        return str(error)
    raise AssertionError("was accepted")


def test_problems_name_the_key_and_the_file(tmp_path):
    tables = {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": [20, 20, 20], "periodic": [True] * 3},
        "fluid": {"viscosity": 0.1},
        "collision": {"name": "trt"},
        "body": [{"label": "car", "shape": {"name": "mesh", "file": "car.stl"} | AT,
                  "boundary": {"name": "interpolated"}}],
        "run": {"steps": 4},
    }  # fmt: skip
    wanted = re.escape(f"body.car.shape: 'car.stl' is missing: there is no file {tmp_path}/car.stl")
    with pytest.raises(CaseError, match=wanted):
        parse_case(tables, tmp_path / "case.toml")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.vtk", b"", "is not a surface; allowed: .stl, .obj, .ply"),
        (
            "a.stl",
            BOX.export(file_type="stl")[:-60],
            "cannot be read as STL (it has 624 bytes, but 684 follow from the 12 triangles in its "
            "header: it is incomplete or damaged; it begins with '\\x00",
        ),
        ("a.stl", b"\xff" * 84, "cannot be read as STL (it has 84 bytes, but 214,748,364,834 "),
        ("a.stl", b"solid \xff\xfe" * 20, "cannot be read as STL (it ends in line 1 where"),
        ("a.obj", b"\xff\xfe\x01" * 21, "cannot be read as OBJ (it is not text in UTF-16"),
        ("a.obj", b"v 1 2\0 3", "cannot be read as OBJ (it is not text: it contains null"),
        ("a.stl", b"\0" * 84, "contains no triangles"),
        ("a.stl", b"", "contains no triangles"),
        ("a.ply", b"no ply", "cannot be read as PLY"),
        ("a.obj", b"", "contains no triangles"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "contains no triangles"),
    ],
)
def test_files_that_are_no_surfaces(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    found = refused(tmp_path, file=name, **AT)
    assert found.startswith(f"'{name}' {message}")
    assert "Traceback" not in found


def test_numbers_that_are_not_finite(tmp_path):
    vertices = BOX.vertices.copy()
    vertices[3, 1] = np.nan
    write(tmp_path / "a.ply", vertices, BOX.faces)
    assert "triangles with coordinates that are not finite" in refused(tmp_path, file="a.ply", **AT)


def test_an_open_surface_is_refused_or_repaired(tmp_path):
    write(tmp_path / "open.stl", BOX.vertices, BOX.faces[1:])
    found = refused(tmp_path, file="open.stl", **AT)
    assert "has 3 open edges, the first at [" in found
    assert "repair = true" in found
    closed = mesh(tmp_path, SIZE, file="open.stl", **AT, repair=True)
    box = make("shapes", {"name": "box", "lower": [4] * 3, "upper": [16] * 3})
    assert np.array_equal(cells(closed, SIZE), cells(box, SIZE))
    assert "closed 3 open edges" in closed.loaded.repaired
    assert closed.loaded.repaired.endswith("; holes filled: 1")


def test_large_holes_are_filled_with_a_fan(tmp_path):
    """Two caps of a cylinder: each is closed by a fan, which is flat."""
    rod = trimesh.creation.cylinder(1, 2, sections=48)
    sides = np.abs(rod.face_normals[:, 2]) < 0.5
    write(tmp_path / "tube.stl", rod.vertices, rod.faces[sides])
    rod.export(tmp_path / "rod.stl")
    closed = mesh(tmp_path, SIZE, file="tube.stl", **AT, repair=True)
    whole = mesh(tmp_path, SIZE, file="rod.stl", **AT)
    assert np.array_equal(cells(closed, SIZE), cells(whole, SIZE))
    assert closed.loaded.repaired.endswith("; holes filled: 2")


def test_one_size_is_given(tmp_path):
    write_ball(tmp_path / "ball.stl")
    keys = {"file": "ball.stl", "at": [10, 10, 10]}
    for some in ({}, {"scale": 1, "length": 2}):
        assert "give one of scale (cells per length unit" in refused(tmp_path, **keys, **some)
    assert "but the case has no [units]" in refused(tmp_path, **keys, unit="mm")
    assert "has 2 entries; give 3" in refused(tmp_path, file="ball.stl", scale=1, at=[1, 2])


def test_lengths_and_units(tmp_path):
    trimesh.creation.box((8, 2, 4)).export(tmp_path / "box.stl")
    keys = {"name": "mesh", "file": "box.stl", "at": [10, 10, 10]}
    case = case_of(tmp_path, SIZE, units=Units(cell=5e-4, step=1, density=1))
    for size in ({"scale": 2}, {"length": 16}, {"unit": "mm"}):
        found = make("shapes", keys | size).resolved(case)
        assert found.bounds() == ((2, 8, 6), (18, 12, 14))
    assert found.resolved(case).bounds() == found.bounds()


def test_anchors(tmp_path):
    box = trimesh.creation.box((4, 4, 6))
    box.apply_translation([0, 1, 0])
    box.export(tmp_path / "box.stl")
    keys = {"file": "box.stl", "scale": 1}
    found = [mesh(tmp_path, SIZE, **keys, at=[8, 9, 2], anchor=anchor).bounds()[0]
             for anchor in ("centre", "bottom", "origin")]  # fmt: skip
    assert found == [(6, 7, -1), (6, 7, 2), (6, 8, -1)]
    flat = mesh(tmp_path, SIZE[:2], **keys, at=[8, 9], anchor="bottom")
    assert flat.bounds() == ((6, 9), (10, 13))


def test_a_plane_beside_the_surface(tmp_path):
    box = trimesh.creation.box((4, 4, 6))
    box.apply_translation([0, 0, 5])
    box.export(tmp_path / "box.stl")
    found = refused(tmp_path, SIZE[:2], file="box.stl", scale=1, at=[8, 9], anchor="origin")
    assert "has no section with the plane of the case" in found
    assert "from z = 2 to 8 cells" in found


def test_no_package_is_needed(tmp_path, monkeypatch):
    write(tmp_path / "open.stl", BOX.vertices, BOX.faces[1:])
    for name in ("trimesh", "scipy", "networkx"):
        monkeypatch.setitem(sys.modules, name, None)
    assert mesh(tmp_path, SIZE, file="open.stl", **AT, repair=True).loaded.closed


def test_a_surface_of_wrong_units_is_refused(tmp_path):
    write_ball(tmp_path / "a.stl")
    found = refused(tmp_path, file="a.stl", scale=1e12, at=[10, 10, 10])
    assert "extends to coordinates of 1e+12 cells; allowed: below 1e+09; compare the unit" in found


def test_the_position_of_a_repaired_edge_is_reported(tmp_path):
    write(tmp_path / "open.stl", BOX.vertices, BOX.faces[1:])
    found = mesh(tmp_path, SIZE, file="open.stl", **AT, repair=True).loaded.repaired
    assert found.startswith("closed 3 open edges, the first at [")
    assert found.endswith("] in coordinates of the file; holes filled: 1")


def test_the_file_is_kept(tmp_path):
    """A run does not replace it."""
    write_ball(tmp_path / "a.stl")
    assert mesh(tmp_path, SIZE, file="a.stl", **AT).files() == [tmp_path / "a.stl"]
