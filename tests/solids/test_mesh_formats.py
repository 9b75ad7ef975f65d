"""What STL, OBJ and PLY files may look like, and where errors in them are reported."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import trimesh
from support.surfaces import cells, mesh

SIZE = (24, 24, 24)
AT = {"scale": 1, "at": [0, 0, 0], "anchor": "origin"}


def box(*at, side=8):
    found = trimesh.creation.box((side,) * 3)
    return found.apply_translation(np.add(at, 0.25))


ONE, OTHER = box(10, 10, 10), box(18, 18, 18, side=4)
TEXT = ONE.export(file_type="stl_ascii").replace("solid ", "solid a ", 1)
SECOND = OTHER.export(file_type="stl_ascii")
BOTH = 8**3 + 4**3


def count(folder, name, content, **keys) -> int:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return int(cells(mesh(folder, SIZE, file=name, **(AT | keys)), SIZE).sum())


def refused(folder, name, content, **keys) -> str:
    with pytest.raises(ValueError, match="'") as error:
        count(folder, name, content, **keys)
    return str(error.value)


@pytest.mark.parametrize(
    ("content", "solid"),
    [
        (TEXT.replace("solid a", "solid vertex_model", 1), 512),
        (TEXT.replace("solid a", "solid my endsolid vertex 1 2 facet", 1), 512),
        (TEXT.replace("endsolid", "endsolid solid part"), 512),
        (TEXT.replace("endsolid", "end solid"), 512),
        (TEXT.replace("endloop", "end loop").replace("endfacet", "END FACET"), 512),
        (TEXT.replace("\n", "\r"), 512),
        (TEXT.replace("\n", "\r\n").upper(), 512),
        (TEXT.replace("\n", " "), 512),
        ((TEXT + SECOND).replace("\n", " "), BOTH),
        (TEXT + SECOND, BOTH),
        (TEXT + SECOND + "\n\0\0\x1a", BOTH),
        ("\ufeff" + TEXT, 512),
        (TEXT.encode("utf-16"), 512),
        (TEXT.replace("solid a", "solid K\xf6rper", 1).encode("latin-1"), 512),
        (TEXT.replace("\n", "\ncolor 0.1 0.2 0.3\n# by hand\n", 1), 512),
        (TEXT.replace("normal -1.0 0.0 0.0", "normal -1.#IND nan x"), 512),
    ],
)
def test_text_of_stl(tmp_path, content, solid):
    assert count(tmp_path, "a.stl", content) == solid


def test_many_solids_in_one_line(tmp_path):
    """The time is proportional to their number: here less than 1 s, not minutes."""
    corner = "facet normal 0 0 0 outer loop vertex 1 1 1 vertex 1 1 1 vertex 1 1 1 endloop endfacet"
    begin = time.perf_counter()
    many = f"solid a {corner} endsolid a " * 50_000
    assert count(tmp_path, "a.stl", many + TEXT.replace("\n", " ")) == 512
    assert time.perf_counter() - begin < 20


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TEXT + SECOND[: SECOND.index("endloop", 600) + 4],
         "expected 'endloop', found 'endl' at the end of the file: it is incomplete"),
        (TEXT + SECOND[: SECOND.index("endsolid")], "it ends in line 172 where 'facet' or "
         "'endsolid' is expected in the solid of line 88: it is incomplete"),
        (TEXT.replace("6.25", "6,25"), "(line 4: '6,25' has a decimal comma; allowed: a decimal "
         "point); replace the commas, or set the language of the exporting program"),
        (TEXT.replace("vertex 6.25 6.25 14.25", "vertex 6.25, 6.25, 14.25"),
         "(line 4: '6.25,' has a comma; allowed: spaces between numbers"),
        (TEXT.replace("vertex 6.25 6.25 14.25", "vertex 6.25,6.25,14.25"),
         "(line 4: '6.25,6.25,14.25' has a comma"),
        (TEXT.replace("14.25", "1.425D+01"), "(line 4: '1.425D+01' has the exponent D of Fortran"),
        (TEXT.replace("14.25", "high"), "(line 4: 'high' is not a number)"),
        (TEXT.replace("14.25", "1_4"), "(line 4: '1_4' is not a number)"),
        (TEXT.replace("endloop", "vertex 1 2 3\nendloop", 1),
         "(line 7: expected 'endloop', found 'vertex')"),
        (TEXT.replace("solid a", "a solid", 1), "(line 1: expected 'solid', found 'a')"),
    ],
)  # fmt: skip
def test_errors_in_stl_name_the_line(tmp_path, content, message):
    found = refused(tmp_path, "a.stl", content)
    assert found.startswith("'a.stl' cannot be read as STL (")
    assert message in found


def test_a_binary_stl_that_begins_with_solid(tmp_path):
    content = b"solid x".ljust(80) + ONE.export(file_type="stl")[80:]
    assert count(tmp_path, "a.stl", content) == 512
    assert "has 600 bytes, but 684 follow from the 12" in refused(tmp_path, "a.stl", content[:600])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.stl", b"<!DOCTYPE html><html>404</html>", "is a web page (HTML), not STL: it begins "
         "with '<!DOCTYPE html><html>404</html>'; download the file itself"),
        ("a.obj", b"\n<?xml version='1.0'?><html>", "is a web page (HTML), not OBJ"),
        ("a.ply", b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer (the "
         "name of a file without its content), not PLY: it begins with 'version https://git-lfs."
         "github.com/spec/v1\\n'; run git lfs pull"),
        ("a.stl", b"ISO-10303-21;\nHEADER;", "is a STEP file (CAD), not STL"),
        ("a.stl", b"PK\x03\x04\x14\0", "is a zip archive, not STL: it begins with 'PK\\x03\\x04"),
        ("a.obj", b"ply\nformat ascii 1.0\n", "is a PLY surface, not OBJ"),
        ("a.stl", b"mesh of a car", "cannot be read as STL (line 1: expected 'solid', found "),
    ],
)  # fmt: skip
def test_files_of_another_kind_are_named(tmp_path, name, content, message):
    assert refused(tmp_path, name, content).startswith(f"'{name}' {message}")


def part(body, first=None) -> str:
    """A part of an OBJ file, with indices relative to its last vertex or from `first` on."""
    begin = -len(body.vertices) if first is None else first
    return "\n".join(
        [f"v {x} {y} {z}" for x, y, z in body.vertices]
        + [f"f {a + begin} {b + begin}/1 {c + begin}//2" for a, b, c in body.faces]
    )


def test_relative_indices_count_from_the_face(tmp_path):
    parts = [part(ONE), "o second", part(OTHER), "g third", part(box(4, 4, 4, side=2), 17)]
    assert count(tmp_path, "a.obj", "\n".join(parts)) == BOTH + 2**3


def test_polygons_of_obj(tmp_path):
    corners = [(x, y, z) for z in (6, 14) for y in (6, 14) for x in (6, 14)]
    lines = [f"v {x}.25 {y}.25 {z}.25 1 0.5 0.5" for x, y, z in corners]
    lines += ["f 1 3 4 2", "f 5 6 8 7", "f 1 2 6 5", "f 2 4 8 6 \\", "", "f 4 3 7 8", "f 3 1 5",
              "f 3 5\\", "7"]  # fmt: skip
    assert count(tmp_path, "a.obj", "\r\n".join(lines)) == 512


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f 1 2 9", "line 14: a face has the vertex 9, but 8 vertices precede the line"),
        ("f -1 -2 -9", "line 14: a face has the vertex -9"),
        ("f 1 2 0", "line 14: a face has the vertex 0"),
        ("f 1 2", "line 14: a face has 2 vertices; allowed: 3 or more"),
        ("f 1 2 x", "line 14: 'x' is not the number of a vertex"),
        ("v 1,5 2 3", "line 14: '1,5' has a decimal comma"),
        ("v 1_5 2 3", "line 14: '1_5' is not a number"),
        ("v 1 2", "line 14: a vertex has 2 numbers; allowed: 3 or more"),
    ],
)
def test_errors_in_obj_name_the_line(tmp_path, line, message):
    lines = part(ONE).split("\n")
    lines.insert(13, line)
    assert message in refused(tmp_path, "a.obj", "\n".join(lines))


@pytest.mark.parametrize(
    "comment", ["# made from C:\\models\\", "mtllib C:\\models\\", "#v 1 2 3 \\"]
)
def test_comments_of_obj(tmp_path, comment):
    """A backslash at their end does not join the next line; they may follow a vertex or a face."""
    lines = [f"{line} # {k}" for k, line in enumerate(part(ONE).split("\n"))]
    assert count(tmp_path, "a.obj", "\n".join([comment, *lines])) == 512


HEADER = """ply
format {} 1.0
comment by hand
element vertex 8
property double x
property double y
property double z
property uchar red
element face 7
property list uchar int vertex_indices
property list uchar float texcoord
end_header
"""
CORNERS = [(x, y, z) for z in (6.25, 14.25) for y in (6.25, 14.25) for x in (6.25, 14.25)]
FACES = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (1, 3, 7, 5), (3, 2, 6, 7), (2, 0, 4), (2, 4, 6)]


@pytest.mark.parametrize(("name", "order"), [("little", "<"), ("big", ">")])
def test_binary_ply_of_triangles_and_quadrilaterals(tmp_path, name, order):
    content = HEADER.format(f"binary_{name}_endian").encode()
    for corner in CORNERS:
        content += np.array(corner, f"{order}f8").tobytes() + b"\7"
    for face in FACES:
        content += bytes([len(face)]) + np.array(face, f"{order}i4").tobytes() + b"\0"
    assert count(tmp_path, "a.ply", content) == 512
    assert "the 7 elements 'face' of its header" in refused(tmp_path, "a.ply", content[:-3])


def test_text_of_ply(tmp_path):
    rows = [f"{x} {y} {z} 7" for x, y, z in CORNERS]
    rows += [f"{len(face)} {' '.join(map(str, face))} 0" for face in FACES]
    content = HEADER.format("ascii") + "\n".join(rows)
    assert count(tmp_path, "a.ply", content) == 512
    assert count(tmp_path, "a.ply", content.replace("\n", "\r\n")) == 512
    assert count(tmp_path, "a.ply", content.replace("by hand", "by Åse \x0b x")) == 512
    found = refused(tmp_path, "a.ply", content.replace("14.25", "14,25", 1))
    assert "(line 14: '14,25' has a decimal comma" in found
    assert "whose vertices are not whole numbers" in refused(
        tmp_path, "a.ply", content.replace("4 0 2 3 1", "4 0 2 3 1.5")
    )


def test_an_empty_ply(tmp_path):
    content = HEADER.format("ascii").replace("vertex 8", "vertex 0").replace("face 7", "face 0")
    assert refused(tmp_path, "a.ply", content).startswith("'a.ply' contains no triangles")


CASE = """
[lattice]
name = "D3Q19"
[domain]
size = [24, 24, 24]
periodic = [true, true, true]
[fluid]
viscosity = 0.05
[[body]]
label = "b"
shape = {name = "mesh", file = "a.obj", scale = 1, at = [0, 0, 0], anchor = "origin"}
boundary = {name = "bounce_back"}
[[body]]
label = "c"
shape = {name = "mesh", file = "a.ply", scale = 1, at = [0, 0, 0], anchor = "origin"}
boundary = {name = "bounce_back"}
[run]
steps = 2
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_files_are_not_opened(tmp_path):
    """A pipe without a writer would block the reader."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.obj").write_text(f"mtllib pipe\nusemtl a\n{part(ONE)}")
    ply = OTHER.export(file_type="ply").replace(b"comment", b"comment TextureFile pipe\ncomment")
    (tmp_path / "a.ply").write_bytes(ply)
    (tmp_path / "case.toml").write_text(CASE)
    done = subprocess.run([sys.executable, "-m", "mpilbm", "check", "case.toml"], text=True,
                          cwd=tmp_path, capture_output=True, timeout=200)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "512 cells" in done.stdout
    assert "64 cells" in done.stdout
