"""Boxes whose cells the kernels' numbers cannot count are refused before anything is allocated."""

import numpy as np
import pytest
from support.coupled import WET, two_fluids, walled
from support.faces import closed, table
from support.slabs import Cluster, box

from mpilbm.backends.cpu import CpuDevice
from mpilbm.case.case import parse_case
from mpilbm.core.registry import names
from mpilbm.core.units import in_words
from mpilbm.layouts.cells import LONGEST_SIDE
from mpilbm.parallel.ranks import Serial
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run
from mpilbm.solids.ghost_solids import wall_cells
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.memory_plan import (
    bytes_needed,
    limits,
    list_bytes,
    more_bytes,
    wall_bytes,
)
from mpilbm.solver.momentum_exchange import MomentumExchange

MODEL = {"name": "wall_model", "law": "log"}


@pytest.mark.parametrize(
    ("lattice", "size", "words"),
    [
        ("D3Q19", [11000, 11000, 10], "a plane across the last axis holds"),
        ("D2Q9", [LONGEST_SIDE + 1, 10], f"allowed: {LONGEST_SIDE}"),
        ("D2Q9", [10, LONGEST_SIDE + 1], f"allowed: {LONGEST_SIDE}"),
    ],
)
def test_a_box_beyond_the_limits_is_refused(lattice, size, words):
    (problem,) = limits(parse_case(box(lattice, size=size), "test.toml"))
    assert "domain.size" in problem
    assert words in problem


def test_a_box_at_the_limits_is_not():
    for lattice, size in (("D3Q19", [10000, 10000, 10]), ("D2Q9", [LONGEST_SIDE, 10])):
        assert limits(parse_case(box(lattice, size=size), "test.toml")) == []


@pytest.mark.parametrize("layout", ["ab", "moments"])
def test_check_counts_what_a_run_will_ask_for(layout, monkeypatch, tmp_path):
    """Also arrays of single lists: state, cells inwards, distances; forces; sums of statistics."""
    asked = {}

    def require(self, needed, what, first=False):
        asked[what] = needed

    monkeypatch.setattr(CpuDevice, "require", require)
    ball = {"name": "sphere", "centre": [5.2, 6.1], "radius": 2.4}
    faces = [
        {"name": "full_way", "where": ["x-"]},
        {"name": "bounce_back", "where": ["x+"], "velocity": [0, "0.01*y"]},
        {"name": "zou_he", "where": ["y-"], "velocity": [0.0, 0.01]},
        {"name": "neumann", "where": ["y+"], "rho": 1.0},
    ]
    outputs = [{"name": "body_forces", "every": 5}]
    outputs += [{"name": "statistics", "every": 1, "average": ["x"]}]
    tables = closed("D2Q9", [11, 13], faces, output=outputs, layout={"name": layout})
    tables["body"] = [{"label": "ball", "shape": ball, "boundary": {"name": "interpolated"}}]
    case = parse_case(tables, "test.toml")
    run(case, Serial(), tmp_path / "out")
    (section,) = (plan(case).sections["ranks"],)
    found = {line.what: line.value for line in section}
    on_host = sum(output.host_bytes(case, case.shape[0]) for output in case.outputs)
    assert on_host > 0
    asked["the sums of statistics"] += on_host  # in the same memory on a CPU
    assert found["memory"] == in_words(
        sum(n for what, n in asked.items() if "velocity" not in what)
    )
    assert found["forces on bodies"] == in_words(asked["the forces on bodies"])
    assert found["statistics"] == in_words(asked["the sums of statistics"])


@pytest.mark.parametrize("motion", [None, {"name": "rotation", "rate": 0.01}])
def test_check_counts_the_cells_of_bodies(motion, monkeypatch, tmp_path):
    asked = {}

    def require(self, needed, what, first=False):
        asked[what] = needed

    monkeypatch.setattr(CpuDevice, "require", require)
    tables = box("D2Q9", [14, 13], output=[{"name": "body_forces", "every": 5}])
    shape = {"name": "sphere", "centre": [5.2, 6.1], "radius": 2.4}
    tables["body"] = [
        {"label": "ball", "shape": shape, "boundary": {"name": "partially_saturated"}}
    ]
    if motion:
        tables["body"][0]["motion"] = motion
    case = parse_case(tables, "test.toml")
    run(case, Serial(), tmp_path / "out")
    found = {line.what: line.value for line in plan(case).sections["ranks"]}
    forces = asked["the forces in cells of bodies"]
    assert forces > 20 * 18
    assert found["forces on bodies"] == in_words(forces)


@pytest.mark.parametrize("layout", [n for n in names("layouts") if n != "moments"])
def test_check_knows_the_ghosts_of_boundaries_that_look_behind(layout):
    tables = box("D2Q9", size=[11, 12], layout={"name": layout})
    disc = {"name": "sphere", "centre": [5.2, 6.1], "radius": 2.4}
    tables["body"] = [{"shape": disc, "boundary": {"name": "interpolated", "order": 2}}]
    lines = plan(parse_case(tables, "test.toml"), 3).sections["ranks"]
    (halo,) = (line for line in lines if line.what == "halo")
    assert halo.verdict.startswith("sent per step")


SPLIT = {"interpolated": False, "tamm_mott_smith": True, "wall_model": True}


@pytest.mark.parametrize(("name", "split"), SPLIT.items())
def test_forces_take_no_more_than_they_ask_for(name, split, monkeypatch):
    """All arrays of the device, but for the few values that are given to a list."""
    ball = {"name": "sphere", "centre": [20.2, 23.1], "radius": 11.4}
    tables = box("D2Q9", [41, 43], output=[{"name": "body_forces", "every": 5, "split": split}])
    wall = MODEL if name == "wall_model" else {"name": name}
    tables["body"] = [{"label": "ball", "shape": ball, "boundary": wall}]
    (solver,), taken, asked = Cluster(tables).solvers, [], []
    allocate = CpuDevice.allocate

    def take(*of):
        taken.append(allocate(*of))
        return taken[-1]

    monkeypatch.setattr(CpuDevice, "require", lambda _, needed, what, **of: asked.append(needed))
    monkeypatch.setattr(CpuDevice, "allocate", take)
    MomentumExchange(solver.fluids[0], solver.lists[0], solver.geometry)
    (needed,) = asked
    assert 0.7 * needed < sum(array.nbytes for array in taken) <= needed + 200


def planes_given(folder) -> dict:
    """A wall and an inlet that have a velocity for each cell."""
    np.save(folder / "u.npy", np.full((41, 2), [0.0, 0.01]))
    faces = {"bounce_back": ["x-", "x+"], "zou_he": ["y-"], "neumann": ["y+"]}
    u = {"velocity": str(folder / "u.npy")}
    more = {"bounce_back": u, "zou_he": u, "neumann": {"rho": 1.0}}
    faces = [{"name": name, "where": where} | more[name] for name, where in faces.items()]
    return closed("D2Q9", [41, 41], faces)


def beside_slip() -> dict:
    """Links that slip, of which an outlet knows where they are staged."""
    slip = {"name": "free_slip", "where": ["x-", "x+"]}
    return closed("D2Q9", [31, 7], [slip, *(table("characteristic", f, D=2) for f in ("y-", "y+"))])


def beside_curves() -> dict:
    """A body that others read and that reads none of them, beside a mirror and an outlet."""
    faces = [{"name": "free_slip", "where": ["x-"]}, table("central_linear", "x+", D=2)]
    faces += [table("characteristic", "y-", D=2), table("equilibrium", "y+", D=2)]
    disc = {"name": "sphere", "centre": [11.2, 13.1], "radius": 11.4}
    body = [{"shape": disc, "boundary": {"name": "interpolated", "order": 2}}]
    return closed("D2Q9", [31, 27], faces, body=body)


def rock() -> dict:
    """Links of a body, nearly all of which are handled at once, and of faces that wrap around."""
    faces = [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}]
    tables = closed("D2Q9", [41, 43], faces)
    disc = {"name": "sphere", "centre": [20.2, 23.1], "radius": 11.4}
    return tables | {"body": [{"shape": disc, "boundary": {"name": "bounce_back"}}]}


def block() -> dict:
    """Walls of a body that sample cells away from them."""
    shape = {"name": "box", "lower": [10, 10], "upper": [32, 32]}
    return box("D2Q9", [41, 43]) | {"body": [{"shape": shape, "boundary": MODEL}]}


@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("kind", ["block", "curves", "fluids", "planes", "rock", "slip"])
def test_lists_take_no_more_than_they_ask_for(kind, staged, monkeypatch, tmp_path):
    """All arrays of each fluid's lists, but for the few values that are given to a whole list."""
    tables = {
        "fluids": lambda: two_fluids("D2Q9", **walled("D2Q9")),
        "block": block,
        "curves": beside_curves,
        "rock": rock,
        "planes": lambda: planes_given(tmp_path),
        "slip": beside_slip,
    }[kind]()
    (solver,) = Cluster(tables).solvers
    taken = taken_from_now_on(monkeypatch)
    assert [BoundaryLists(fluid, solver.geometry, staged=staged) for fluid in solver.fluids]
    needed = list_bytes(solver.case, solver.slab, solver.geometry.lists, staged).sum()
    needed *= len(solver.fluids)
    assert 0.9 * needed < sum(array.nbytes for array in taken) <= needed + 200


def taken_from_now_on(monkeypatch) -> list:
    """The arrays that a device gives out."""
    taken, allocate = [], CpuDevice.allocate

    def take(*of):
        taken.append(allocate(*of))
        return taken[-1]

    monkeypatch.setattr(CpuDevice, "allocate", take)
    return taken


@pytest.mark.parametrize("wetting", [None, WET])
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_wall_cells_of_coupled_fluids_are_counted(lattice, wetting, monkeypatch):
    """In a run, and by `check`; neutral walls know the fluid around."""
    tables, asked = two_fluids(lattice, **walled(lattice, wetting)), {}
    tables["boundary"][1] |= {"wetting": wetting} if wetting else {}
    monkeypatch.setattr(
        CpuDevice, "require", lambda _, needed, what, **of: asked.setdefault(what, needed)
    )
    (solver,) = Cluster(tables).solvers
    taken = taken_from_now_on(monkeypatch)
    cells = wall_cells(solver.case, solver.slab, solver.geometry, solver.coupled.grid)
    solver.coupled._wall_launch(cells)
    of = solver.case, solver.slab, solver.geometry.lists
    needed = wall_bytes(*of).sum()
    assert needed <= sum(array.nbytes for array in taken) <= needed + 200
    (section,) = (plan(solver.case).sections["ranks"],)
    found = {line.what: line.value for line in section}
    assert found["wall cells"] == in_words(needed)
    assert more_bytes(*of)[:, 2].sum() == needed
    others = sum(bytes_needed(*of[:2], solver.geometry.around).values())
    assert asked["the fields of a slab"] == others + more_bytes(*of)[:, [0, 2]].sum()
