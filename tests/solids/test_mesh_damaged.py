"""Damaged files of surfaces end in a surface or in an error of one line, within 5 s each.

2000 files, with MPILBM_TEST_ALL 20 000.
"""

import os
import random
import time
import warnings

import pytest
import trimesh
from support.surfaces import cells, mesh

from mpilbm.core.printable import one_line

FILES = 20_000 if os.environ.get("MPILBM_TEST_ALL") else 2000
LONGEST = 5  # seconds
SIZE = (12, 12, 12)
AT = {"length": 8, "at": [6, 6, 6]}
BOX = trimesh.creation.box((2, 3, 4))
BALL = trimesh.creation.icosphere(1)
QUADS = b"""ply
format ascii 1.0
element vertex 8
property float x
property float y
property float z
property uchar red
element face 6
property list uchar int vertex_indices
end_header
0 0 0 1\n1 0 0 1\n1 1 0 1\n0 1 0 1\n0 0 1 1\n1 0 1 1\n1 1 1 1\n0 1 1 1
4 3 2 1 0\n4 4 5 6 7\n4 0 1 5 4\n4 1 2 6 5\n4 2 3 7 6\n4 3 0 4 7
"""
RELATIVE = b"""mtllib none.mtl\no a
v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1
f -4 -2 -3\nf -4/1 -3/1 -1/1\nf -3//1 -2//1 -1//1\nf -2 -4 -1
o b\nv 2 0 0\nv 3 0 0\nv 2 1 0\nv 2 0 1 \\\n 1
f 5 7 6\nf 5 6 8\nf 6 7 8\nf 7 5 8
"""
WHOLE = {
    "binary.stl": BALL.export(file_type="stl"),
    "text.stl": BOX.export(file_type="stl_ascii").encode(),
    "two.stl": BOX.export(file_type="stl_ascii").encode()
    + trimesh.creation.box((9, 9, 9)).export(file_type="stl_ascii").encode(),
    "box.obj": BOX.export(file_type="obj").encode(),
    "relative.obj": RELATIVE,
    "binary.ply": BALL.export(file_type="ply"),
    "text.ply": BOX.export(file_type="ply", encoding="ascii"),
    "quads.ply": QUADS,
}
WORDS = [b"nan", b"-1", b"0", b"1e999", b"99999999999999999999", b"1,5", b"1.5D0", b"_", b"x", b"",
         b"facet", b"endsolid", b"solid", b"f", b"v", b"list", b"element vertex 9999999999",
         b"element face 99999", b"property double x", b"end_header", b"\\", b"\r", b"\0",
         b"\xff\xfe", b"#", b"3", b"255", b" " * 5000, b"\n" * 500, b"-" * 9000]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A file with one to four random changes."""
    for _ in range(rng.randint(1, 4)):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        kind = rng.randrange(8)
        if kind == 0:  # cut short
            data = data[:b]
        elif kind == 1:  # a byte
            data = data[:a] + bytes([rng.randrange(256)]) + data[a + 1 :]
        elif kind == 2:  # a bit in the first bytes, where headers are
            a = rng.randrange(min(len(data), 300) + 1)
            data = data[:a] + bytes([data[a] ^ 1 << rng.randrange(8)] if data[a:] else b"") + data[
                a + 1 :]  # fmt: skip
        elif kind == 3:  # a part is missing
            data = data[:a] + data[min(b, a + 200) :]
        elif kind == 4:  # a part occurs twice
            data = data[:b] + data[a:b] + data[b:]
        elif kind == 5:  # random bytes
            data = data[:a] + rng.randbytes(rng.randint(1, 40)) + data[a:]
        else:  # another word
            words = data.split(b" ")
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            data = b" ".join(words)
    return data


@pytest.mark.parametrize("name", WHOLE)
def test_damaged_files(tmp_path, name):
    rng = random.Random(name)
    path = tmp_path / name
    path.write_bytes(WHOLE[name])
    assert mesh(tmp_path, SIZE, file=name, **AT).loaded.closed
    surfaces = 0
    for number in range(FILES // len(WHOLE)):
        data = damaged(WHOLE[name], rng)
        path.write_bytes(data)
        begin, error = time.perf_counter(), None
        try:
            with warnings.catch_warnings(action="error"):
                found = mesh(tmp_path, SIZE, file=name, repair=bool(number % 2), **AT)
                assert cells(found, SIZE).shape == SIZE
            assert found.loaded.closed
            surfaces += 1
        except ValueError as problem:
            error = problem
        assert time.perf_counter() - begin < LONGEST, path
        if error is not None:
            assert type(error) is ValueError
            assert str(error) == one_line(error)
            assert "; " in str(error), "names no fix"
    assert 0 < surfaces < FILES // len(WHOLE)
