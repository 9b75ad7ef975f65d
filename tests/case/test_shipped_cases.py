"""Each case in cases/ is one that would run, and says on top what it shows."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trimesh
from support import ROOT
from support.commands import call, refused

from mpilbm.case.case import load_case

CASES = sorted(path.name for path in ROOT.glob("cases/*.toml"))
FINDINGS = {  # coarse on purpose, as their comments say
    "porous.toml": {"channels"},
    "rock.toml": {"channels"},
    # the gap above the road, in which the wall model of the road has two cells; y+
    "ahmed.toml": {"channels", "body.car.shape", "'wall_model' in 532 places"},
    "elbow.toml": {"fluid.viscosity", "'interpolated' in 248 places"},  # y+, half-way links
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A copy of cases/ with the rock that two of them need."""
    folder = tmp_path_factory.mktemp("cases")
    for name in CASES:
        shutil.copy(ROOT / "cases" / name, folder)
    shutil.copy(ROOT / "cases" / "ahmed.stl", folder)
    make_rock(folder / "rock.npy")
    return folder


def make_rock(path, *options):
    command = [sys.executable, str(ROOT / "tools" / "make_rock"), str(path), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)


def test_the_cases_are_there():
    stems = {Path(name).stem for name in CASES}
    assert stems >= {
        "cavity2d_re1000",
        "cavity3d_re1000",
        "duct3d",
        "poiseuille2d",
        "porous",
        "sphere_in_channel",
        "taylor_green3d",
    }


@pytest.mark.parametrize("name", CASES)
def test_case_is_read(cases, name):
    case = load_case(cases / name)
    assert case.title
    assert len(case.domain.size) == case.dimensions


@pytest.mark.parametrize("name", CASES)
def test_case_passes_check(cases, name):
    done = call("check", cases / name)
    assert done.exit_code == 0, done.output
    found = [line for line in done.output.splitlines() if line.startswith(("serious:", "warning:"))]
    keys = {line.split(": ")[1] for line in found}
    assert keys == FINDINGS.get(name, set())


@pytest.mark.parametrize("name", CASES)
def test_comment_on_top_says_what_how_long_and_where_to_look(name):
    text = (ROOT / "cases" / name).read_text()
    comment = text[: text.index("title =")]
    for word in ("# What it shows", "# Time", "# Look at"):
        assert word in comment


def test_porous_without_its_rock_is_refused(tmp_path):
    shutil.copy(ROOT / "cases" / "porous.toml", tmp_path)
    assert "rock.npy" in refused("check", tmp_path / "porous.toml")


def test_same_seed_same_rock(tmp_path):
    make_rock(tmp_path / "a.npy", "--size", "24", "--radius", "4")
    make_rock(tmp_path / "b.npy", "--size", "24", "--radius", "4")
    make_rock(tmp_path / "c.npy", "--size", "24", "--radius", "4", "--seed", "2")
    a, b, c = ((tmp_path / f"{name}.npy").read_bytes() for name in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("cases/reference/cavity*.csv")), ids=lambda p: p.stem
)
def test_reference_is_a_table_from_wall_to_wall(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    header, *rows = csv.reader(lines)
    coordinate = [float(row[0]) for row in rows]
    assert coordinate == sorted(coordinate)
    assert (coordinate[0], coordinate[-1]) == (0, 1)
    assert all(len(row) == len(header) and all(map(float, row[1:])) for row in rows[1:-1])


def test_the_surface_of_the_ahmed_body_is_that_of_the_tool(tmp_path):
    """Closed, with the volume of the body: 0.1108 m^3."""
    make = [sys.executable, str(ROOT / "tools" / "make_ahmed")]
    subprocess.run([*make, str(tmp_path / "a.stl")], check=True, capture_output=True, timeout=200)
    assert (tmp_path / "a.stl").read_bytes() == (ROOT / "cases" / "ahmed.stl").read_bytes()
    surface = trimesh.load(tmp_path / "a.stl")
    assert surface.is_watertight
    assert surface.is_winding_consistent
    assert surface.extents == pytest.approx([1044, 389, 288])
    assert surface.volume / 1e9 == pytest.approx(0.1108, abs=1e-4)
    done = subprocess.run(
        [*make, str(tmp_path / "b.stl"), "--slant", "60"],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 2
    assert "--slant 60.0 must lie between 0 and 40" in done.stderr
