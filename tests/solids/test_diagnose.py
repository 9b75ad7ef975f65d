"""Gaps, isolated fluid, overlaps, and walls that would move over cells, on any cut of the box."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.slabs import Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.cli import cli
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.parallel.slabs import split
from mpilbm.solids import build, diagnose, geometry_findings, isolated_fluid

SIZES = {"D2Q9": [17, 13], "D3Q19": [7, 6, 9], "D3Q27": [6, 7, 9], "D3Q13": [8, 6, 10]}
FACES = ["x-", "x+", "y-", "y+", "z-", "z+"]
REST = {"name": "bounce_back"}


def collision(lattice):
    return {"name": "mrt" if lattice == "D3Q13" else "bgk"}


def diagnoses_of(case, ranks=1):
    parts = []
    for slab in split(case.shape, ranks, case.domain.periodic[-1]):
        build.build(case, slab, lambda *of: parts.append(diagnose.find(*of)))
    return parts


def found_in(case, ranks=1):
    return [str(found) for found in geometry_findings.findings(case, diagnoses_of(case, ranks))]


def rock(tmp_path, lattice, periodic, share=0.6, **wall):
    """A box full of random stones, closed in the directions that are not periodic."""
    size = SIZES[lattice]
    D = len(size)
    solid = np.random.default_rng(5).random(size[::-1]) < share
    np.save(tmp_path / "rock.npy", solid)
    faces = [f for f in FACES[: 2 * D] if not periodic["xyz".index(f[0])]]
    tables = box(lattice, size, domain={"size": size, "periodic": periodic[:D]})
    tables["collision"] = collision(lattice)
    tables["boundary"] = [REST | wall | {"where": faces}] if faces else []
    tables["body"] = [{"label": "rock", "mask": "rock.npy", "boundary": REST}]
    return parse_case(tables, tmp_path / "rock.toml"), solid.T


def flood(lattice, fluid):
    """Pieces of fluid cells, each a set, along the links; nothing wraps."""
    left, pieces = {tuple(map(int, cell)) for cell in np.argwhere(fluid)}, []
    while left:
        piece, todo = set(), [left.pop()]
        while todo:
            cell = todo.pop()
            piece.add(cell)
            for c in lattice.c:
                there = tuple(a + b for a, b in zip(cell, c, strict=True))
                if there in left:
                    left.remove(there)
                    todo.append(there)
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q27"])
@pytest.mark.parametrize("periodic", [[False] * 3, [True, False, False], [False, True, True]])
@pytest.mark.parametrize("planes", [1, 2, 100])
def test_isolated_fluid_is_that_of_a_flood(tmp_path, monkeypatch, lattice, periodic, planes):
    monkeypatch.setattr(isolated_fluid, "CELLS", planes * np.prod(SIZES[lattice][:-1]))
    case, solid = rock(tmp_path, lattice, periodic, {"D2Q9": 0.6}.get(lattice, 0.85))
    pieces, size = flood(case.lattice, ~solid), case.domain.size

    def at_periodic(piece):
        closed = [k for k, p in enumerate(case.domain.periodic) if p]
        return any(cell[k] in (0, size[k] - 1) for cell in piece for k in closed)

    most = max(map(len, pieces))
    wanted = [p for p in pieces if len(p) < most and not at_periodic(p)]
    assert len(wanted) > 2
    count, cells = len(wanted), sum(map(len, wanted))
    first = min(cell[::-1] for piece in wanted for cell in piece)[::-1]
    at = ", ".join(f"{a}={n}" for a, n in zip("xyz", first, strict=False))
    for ranks in (1, 2, 3, 5):
        found = [w for w in found_in(case, ranks) if w.startswith("isolated")]
        assert len(found) == 1
        assert found[0].startswith(f"isolated fluid: {count} regions, {cells} cell")
        assert f"first at {at} (counted" in found[0]


def test_pieces_that_something_drives_are_not_isolated(tmp_path):
    """With a wall that moves, the pieces beside it belong to the flow; the others do not."""
    closed = [False] * 3
    at_rest, solid = rock(tmp_path, "D2Q9", closed)
    moving, _ = rock(tmp_path, "D2Q9", closed, velocity=[0.01, 0])
    pieces, (nx, ny) = flood(at_rest.lattice, ~solid), at_rest.domain.size
    outside = {cell for cell in itertools.product(range(nx), range(ny))
               if cell[0] in (0, nx - 1) or cell[1] in (0, ny - 1)}  # fmt: skip
    most = max(map(len, pieces))
    inner = sum(not (p & outside) and len(p) < most for p in pieces)
    assert 0 < inner < len(pieces) - 1
    for case, count in ((at_rest, len(pieces) - 1), (moving, inner)):
        assert any(w.startswith(f"isolated fluid: {count} ") for w in found_in(case))


def test_forces_that_differ_move_isolated_fluid_too(tmp_path):
    case, _ = rock(tmp_path, "D2Q9", [False] * 3)
    for value, warned in ((["1e-6*y", 0], False), ([1e-6, 0], True)):
        force = make("forcing", {"name": "guo", "value": tuple(value)})
        fluid = case.fluids[0].model_copy(update={"force": force})
        pushed = case.model_copy(update={"fluids": (fluid,)})
        assert warned == any("isolated" in w for w in found_in(pushed))


@pytest.mark.parametrize("lattice", SIZES)
def test_gaps_are_cells_between_two_solids(tmp_path, lattice):
    case, solid = rock(tmp_path, lattice, [True, False, False], 0.7 if lattice == "D3Q13" else 0.3)
    D, staggered = case.lattice.D, case.lattice.staggered
    fluid = ~np.pad(solid, 1, constant_values=True)
    fluid[[0, -1]] = fluid[[-2, 1]]  # x is periodic
    found, first = 0, None
    for cell in itertools.product(*map(range, reversed(case.domain.size))):
        here = np.array(cell[::-1]) + 1
        if not fluid[tuple(here)] or (staggered and sum(cell) % 2):
            continue
        for axis in range(D):
            sides = [[c for c in case.lattice.stencil if c[axis] * s > 0] for s in (-1, 1)]
            if not any(fluid[tuple(here + c)] for c in sides[0]) and not any(
                fluid[tuple(here + c)] for c in sides[1]
            ):
                found, first = found + 1, first or cell[::-1]
                break
    assert found > 0
    at = ", ".join(f"{a}={n}" for a, n in zip("xyz", first, strict=False))
    for ranks in (1, 3):
        (line,) = [w for w in found_in(case, ranks) if "between two solids or faces" in w]
        said = re.search(r"\d+ fluid cells? between.*", line)[0]
        assert said.startswith(f"{found} fluid cells ")
        assert f"first at {at} (counted" in said


def test_a_ball_in_a_wide_channel_gives_no_warning():
    ball = {"label": "ball", "shape": {"name": "sphere", "centre": [8, 7, 6], "radius": 3}}
    tables = box("D3Q19", [15, 14, 13], body=[ball | {"boundary": REST}])
    case = parse_case(tables)
    assert found_in(case, 2) == []


def test_overlaps_name_both_their_cells_and_who_wins():
    def block(label, lower, upper):
        shape = {"name": "box", "lower": lower, "upper": upper}
        return {"label": label, "shape": shape, "boundary": REST}

    bodies = [block("a", [2, 2], [6, 6]), block("b", [4, 0], [8, 5])]
    faces = [REST | {"where": ["y-", "y+"]}]
    tables = box("D2Q9", [12, 11], boundary=faces, body=bodies)
    tables["domain"] |= {"periodic": [True, False]}
    case = parse_case(tables)
    for ranks in (1, 2, 3):
        at_face, shared = (text for text in found_in(case, ranks) if text.startswith("body.b"))
        assert shared.startswith("body.b: shares 6 cells with body 'a': they belong to 'b', which")
        assert at_face.startswith("body.b: has 4 cells next to the face y-: the boundary")


# ------------------------------------------------------------------------------- moving bodies

SPHERE = {"name": "sphere", "centre": [8.2, 7.1, 6.3], "radius": 3.4}
DISC = {"name": "cylinder", "centre": [8.2, 7.1], "radius": 3.4}
ROD = {"name": "cylinder", "centre": [8.2, 7.1, 6], "radius": 3.4, "axis": "z"}
PLATE = {"name": "half_space", "point": [0, 3.3], "normal": [0.3, 1]}
BLOCK = {"name": "box", "lower": [4, 4, 4], "upper": [9, 9, 8]}
TORUS = {"name": "torus", "centre": [8, 7, 6], "radius": 4, "tube": 1.5, "axis": "z"}
HOLED = {"name": "difference", "of": [{"name": "sphere", "centre": [8, 7], "radius": 20}, DISC]}
SPIN = ["-0.01*(y - 7.1)", "0.01*(x - 8.2)"]
ALONG = [  # what moves along itself
    ("D2Q9", DISC, SPIN),
    ("D2Q9", HOLED, SPIN),
    ("D2Q9", PLATE, [0.02, -0.006]),
    ("D3Q19", ROD, [0, 0, 0.01]),
    ("D3Q19", ROD, [*SPIN, "0.02*sin(t)"]),
    ("D3Q27", SPHERE, [*SPIN, 0]),
    ("D3Q15", TORUS, ["-0.01*(y - 7)", "0.01*(x - 8)", 0]),
    ("D3Q13", SPHERE, [0, "-0.01*(z - 6.3)", "0.01*(y - 7.1)"]),
]
THROUGH = [  # with the component that is found, and the normal of the first place
    ("D2Q9", DISC, [0.01, 0], "lead through"),
    ("D2Q9", DISC, ["-0.01*(y - 6)", "0.01*(x - 8.2)"], "lead through"),
    ("D2Q9", PLATE, [0.02, 0], r"0.005747 lead through the surface, along the normal \[0.2873,"),
    ("D3Q19", ROD, [0, 0.01, 0], "lead through"),
    ("D3Q19", SPHERE, [0, 0, "0.01*t"], r"at t = \d"),
    ("D3Q27", BLOCK, [0, 0, 0.01], r"-0.01 lead through the surface, along the normal \[0, 0, -1"),
    ("D3Q13", SPHERE, [0.01, 0, 0], "lead through"),
]


def turning(lattice, shape, velocity, name="bounce_back"):
    body = {"label": "it", "shape": shape, "boundary": {"name": name, "velocity": velocity}}
    size = [16, 14, 12][: 2 + (lattice[1] == "3")]
    return parse_case(box(lattice, size, body=[body], collision=collision(lattice)))


@pytest.mark.parametrize(("lattice", "shape", "velocity"), ALONG)
def test_a_body_may_slide_along_its_surface(lattice, shape, velocity):
    geometry_findings.refuse(case := turning(lattice, shape, velocity), diagnoses_of(case))


@pytest.mark.parametrize(("lattice", "shape", "velocity", "sentence"), THROUGH)
def test_a_velocity_through_the_surface_is_refused(lattice, shape, velocity, sentence):
    case, found = turning(lattice, shape, velocity, "interpolated"), set()
    for ranks in (1, 2, 3):
        with pytest.raises(CaseError) as error:
            geometry_findings.refuse(case, diagnoses_of(case, ranks))
        found.add(str(error.value))
    (line,) = found
    assert line.startswith("case.toml: body.it.boundary.velocity: at the surface point x=")
    assert re.search(sentence, line), line


def test_so_it_is_where_a_boundary_sets_whole_cells():
    """Its entries hold what rests, too, which crosses no surface."""
    case = turning("D2Q9", DISC, [0.01, 0], "tamm_mott_smith")
    with pytest.raises(CaseError, match="lead through the surface"):
        geometry_findings.refuse(case, diagnoses_of(case))


# ------------------------------------------------------------------------------------ commands

CASE = """
[lattice]
name = "D2Q9"
[domain]
size = [12, 12]
periodic = [true, false]
[fluid]
viscosity = 0.05
[[boundary]]
name = "bounce_back"
where = ["y-", "y+"]
[[body]]
label = "low"
shape = {name = "box", lower = [0, 0], upper = [12, 5]}
boundary = {name = "bounce_back"}
[[body]]
label = "post"
shape = {name = "box", lower = [3, 4], upper = [4, 11]}
boundary = {name = "bounce_back"}
[run]
steps = 1
[backend]
name = "cpu"
"""


def test_a_run_and_check_say_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("post.toml").write_text(CASE)
    run = CliRunner().invoke(cli, ["run", "post.toml"])
    check = CliRunner().invoke(cli, ["check", "post.toml", "--ranks", "4"])
    assert (run.exit_code, check.exit_code) == (0, 0), run.output + check.output
    for result in (run, check):
        assert "1 fluid cell between two solids or faces, the first at x=3, y=11" in (result.output)
        assert "body.post: shares 1 cell with body 'low': they belong to 'post'" in result.output
    assert "ranks: the slabs of 1 of 4 ranks (0) hold no fluid" in check.output


@pytest.mark.parametrize("layout", ["ab", "indirect", "moments"])
def test_slabs_without_fluid_change_nothing(layout):
    low = {"name": "box", "lower": [0, 0], "upper": [9, 6]}
    tables = box("D2Q9", [9, 13], layout={"name": layout}, body=[{"shape": low, "boundary": REST}])
    tables["collision"] = {"name": "regularized"}
    wanted, found = (Cluster(tables, slabs).start().run(3).state() for slabs in (1, 5))
    np.testing.assert_array_equal(found, wanted)
    assert (wanted[6:] != 0).any()
