"""Packings of spheres from files: cells and distances of the union, and wrong files."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.slabs import PRECISIONS, box

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight.plan import plan
from mpilbm.solids import sphere_packing
from mpilbm.solids.build import build


def packing(D: int, n: int = 60, size: float = 14) -> np.ndarray:
    """Overlapping spheres, a few of them large, some outside the box."""
    random = np.random.default_rng(D)
    radii = np.where(np.arange(n) % 20, random.uniform(0.4, 1.3, n), 3.1)
    return np.column_stack([random.uniform(-1, size + 1, (n, D)), radii])


def cases(folder, lattice: str, periodic: bool):
    """The same case with a file of spheres, and with a union of spheres."""
    D = int(lattice[1])
    rows = packing(D, 40 if D == 2 else 60)
    np.savetxt(folder / "packing.csv", rows, delimiter=",", fmt="%.17g",
               header=",".join([*"xyz"[:D], "r"]), comments="")  # fmt: skip
    balls = [{"name": "sphere", "centre": row[:-1].tolist(), "radius": row[-1]} for row in rows]
    size = [14, 12, 16][:D]
    walls = [{"name": "bounce_back", "where": [a + s for a in "xyz"[:D] for s in "-+"]}]
    for shape in ({"name": "spheres", "file": "packing.csv"}, {"name": "union", "of": balls}):
        body = {"label": "p", "shape": shape, "boundary": {"name": "central_linear"}}
        tables = box(
            lattice, size, body=[body], domain={"size": size, "periodic": [periodic] * D},
            boundary=[] if periodic else walls, precision=PRECISIONS["double"],
            collision={"name": "mrt" if lattice == "D3Q13" else "trt"},
        )  # fmt: skip
        yield parse_case(tables, folder / "case.toml")


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q13"])
def test_a_packing_is_the_union_of_its_spheres(tmp_path, monkeypatch, lattice, periodic):
    """Cells and links; q is that of the first sphere on the link. In any number of batches."""
    monkeypatch.setattr(sphere_packing, "TOGETHER", 500)
    packed, union = cases(tmp_path, lattice, periodic)
    for ranks in (1, 3):
        for slab in split(packed.shape, ranks, periodic):
            one, other = build(packed, slab), build(union, slab)
            np.testing.assert_array_equal(one.solid, other.solid)
            assert 0.1 < (one.solid == 0).mean() < 0.95
            for mine, theirs in zip(one.lists, other.lists, strict=True):
                np.testing.assert_array_equal(mine.links.bits, theirs.links.bits)
                if mine.per_link is None:
                    continue
                q, wanted = mine.per_link.distance, theirs.per_link.distance
                assert (q <= wanted + 1e-13).all()  # a union leaves out spheres without the end
                assert np.mean(np.abs(q - wanted) < 1e-13) > 0.95


def spheres(folder, text: str, D: int = 3, **more):
    (folder / "p.csv").write_text(text)
    shape = make("shapes", {"name": "spheres", "file": "p.csv", **more})
    return shape.resolved(SimpleNamespace(directory=folder, dimensions=D))


def test_scale_and_position(tmp_path):
    """x = at + scale x of the file; columns may be separated by spaces."""
    shape = spheres(tmp_path, "# mm\n 1 2 3 0.5\n\n2 2 3 0.25 # small\n", scale=4, at=[1, 0, -2])
    assert shape.bounds() == ((3, 6, 8), (10, 10, 12))
    x, y, z = np.ogrid[0:12:0.5, 0:12:0.5, 5:14:0.5]
    wanted = (x - 5) ** 2 + (y - 8) ** 2 + (z - 10) ** 2 <= 4
    wanted = wanted | ((x - 9) ** 2 + (y - 8) ** 2 + (z - 10) ** 2 <= 1)
    np.testing.assert_array_equal(shape.inside(x, y, z), wanted)
    flat = [each.reshape(-1) for each in np.broadcast_arrays(x, y, z)]
    np.testing.assert_array_equal(shape.inside(*flat), wanted.reshape(-1))
    q = shape.distance(np.array([[6.5], [8], [12.5]]), np.array([[-1.0], [0], [-1]]))
    root = (4 - np.sqrt(16 - 2 * (1.5**2 + 2.5**2 - 4))) / 2
    assert q == pytest.approx(root, abs=1e-15)


WRONG = {
    "1,2,3\n": "line 1: found 3 columns; allowed: 4 (x, y, z, r) in 3D",
    "x,y,z,r\n1,2,3,1\n1,2,3,4,5\n": "line 3: found 5 columns; allowed: 4 (x, y, z, r) in 3D",
    "1,2,3,1\n1,two,3,1\n": "line 2: y = 'two' is not a number; correct the row",
    "1,2,3,1\n1,2,nan,1\n": "line 2: z = 'nan' is not a number; correct the row",
    "1,2,3,-1\n": "line 1: r = -1; allowed: a radius above 0; correct or remove the row",
    "r,x,y,z\n1,2,3,1\n": "line 1: found the columns r, x, y, z; allowed: "
    "x, y, z, r, in this order",
    "x,y,z,r\n": "holds no sphere; write rows of x, y, z, r",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_files(tmp_path, text):
    with pytest.raises(ValueError, match=re.escape(f"'p.csv' {WRONG[text]}") + "$"):
        spheres(tmp_path, text)


def test_the_case_names_the_key_of_a_wrong_file(tmp_path):
    body = {"label": "p", "shape": {"name": "spheres", "file": "no.csv"},
            "boundary": {"name": "bounce_back"}}  # fmt: skip
    with pytest.raises(CaseError, match=r"body.p.shape: 'no.csv' is missing: there is no file"):
        parse_case(box("D2Q9", [8, 8], body=[body]), tmp_path / "case.toml")
    (tmp_path / "no.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(CaseError, match=r"body.p.shape: 'no.csv' is not UTF-8 text"):
        parse_case(box("D2Q9", [8, 8], body=[body]), tmp_path / "case.toml")
    (tmp_path / "no.csv").write_text("1,2,3\n")
    body["shape"]["at"] = [1, 2, 3]
    with pytest.raises(CaseError, match=r"body.p.shape.at = .* has 3 entries; give 2 \(x, y\)"):
        parse_case(box("D2Q9", [8, 8], body=[body]), tmp_path / "case.toml")


@pytest.mark.parametrize("D", [2, 3])
def test_random_packings(D):
    """Decimal numbers as in files: the lowest sphere lies in the first bin despite rounding."""
    random = np.random.default_rng(7)
    for _ in range(400):
        n = int(random.integers(1, 7))
        centres = random.uniform(0, 16, (D, n)).round(2)
        radii = random.uniform(0.3, 3, n).round(2)
        points = centres + radii * random.uniform(-1, 1, (D, n))  # in the box around each
        step = np.sign(centres - points)
        packed = sphere_packing.SphereBins(centres, radii)
        offset = points[:, :, None] - centres[:, None]
        solid = ((offset**2).sum(axis=0) <= radii**2).any(axis=1)
        np.testing.assert_array_equal(packed.inside(points), solid)
        q = packed.distance(points[:, ~solid], step[:, ~solid])
        assert ((q >= 0) & (q <= 1)).all()


def test_a_packing_whose_lowest_bin_is_rounded(tmp_path):
    (tmp_path / "pk.csv").write_text("2.22,12.53,7.57,1.95\n")
    body = {"label": "pack", "shape": {"name": "spheres", "file": "pk.csv"},
            "boundary": {"name": "bounce_back"}}  # fmt: skip
    tables = box("D3Q13", [16] * 3, body=[body], collision={"name": "mrt"})
    assert plan(parse_case(tables, tmp_path / "case.toml")).runs


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("1,2,3,1\n", {"scale": 1e300}),
        ("0,0,0,1\n1,2,1e10,1\n", {"scale": 1e308}),
        ("1,2,3,1e16\n", {}),
        ("1,2,3,1\n", {"at": [0, -1e300, 0]}),
    ],
)
def test_spheres_of_which_squares_overflow(tmp_path, text, more):
    with pytest.raises(ValueError, match=r"'p.csv': sphere . has the centre .*; allowed: at most"):
        spheres(tmp_path, text, **more)
