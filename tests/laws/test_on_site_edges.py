"""Boxes that on-site faces close on all sides: where they meet nothing grows."""

import numpy as np
import pytest
from support.faces import closed, on_faces, table
from support.findings import warnings_of
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.registry import find, make, names
from mpilbm.parallel import slabs
from mpilbm.solids import build


def cavity(name: str, lattice: str, n: int, lid_first: bool, steps: int) -> dict:
    D, speed = make("lattices", lattice).D, 0.1
    axes = "xyz"[:D]
    faces = [axis + side for axis in axes for side in "-+"]
    lid = {"name": name, "where": [faces.pop()], "velocity": [speed] + [0.0] * (D - 1)}
    still = {"name": name, "where": faces, "velocity": [0.0] * D}
    tables = closed(
        lattice, [n] * D, [lid, still] if lid_first else [still, lid],
        collision={"name": "mrt" if lattice == "D3Q13" else "bgk"}, initial={"u": [0] * D},
        fluid={"reynolds": 20, "length": n - 1, "velocity": speed},
    )  # fmt: skip
    return Cluster(tables).start().run(steps).fields("rho", "u")


@pytest.mark.parametrize("lattice", names("lattices"))
def test_a_cavity_of_zou_he_faces(lattice):
    fields = cavity("zou_he", lattice, 8, lattice != "D3Q19", 150)
    inner = fields["u"][-1, 1:-1, 1:-1] if lattice != "D2Q9" else fields["u"][-1, :, 1:-1]
    assert np.abs(inner[..., 0] - 0.1).max() < 1e-12
    assert np.abs(fields["rho"] - 1).max() < 0.3
    assert abs(fields["rho"].mean() - 1) < 0.01


def test_its_flow_is_that_between_half_way_walls():
    """Smallest u on the centre line; the walls of one go through its outermost nodes."""
    n = 17
    on_site, half_way = (
        cavity(name, "D2Q9", cells, True, 2500)["u"][:, 0]
        for name, cells in (("zou_he", n), ("bounce_back", 2 * n))
    )
    found = on_site[:, n // 2, 0].min(), half_way[:, n - 1 : n + 1, 0].mean(axis=1).min()
    print(found)
    assert found[0] == pytest.approx(found[1], rel=0.1)


def test_a_lid_beside_walls_that_set_whole_cells():
    lid = {"name": "zou_he", "where": ["y+"], "velocity": [0.05, 0.0]}
    walls = {"name": "tamm_mott_smith", "where": ["x-", "x+", "y-"]}
    tables = closed(
        "D2Q9", [10, 10], [walls, lid], collision={"name": "trt"}, initial={"u": [0, 0]}
    )
    fields = Cluster(tables).start().run(400).fields("rho", "u")
    assert np.abs(fields["u"]).max() < 0.06
    assert np.abs(fields["rho"] - 1).max() < 0.3


def between(name: str, lattice: str, given: dict, walls_first: bool, wall="bounce_back") -> dict:
    """A channel along the slowest axis whose side walls move with the flow."""
    D = make("lattices", lattice).D
    axes, u = "xyz"[:D], [0.0] * (D - 1) + [0.05]
    sides = [axis + side for axis in axes[:-1] for side in "-+"]
    walls = {"name": wall, "where": sides, "velocity": u}
    inlet = {"name": "zou_he", "where": [axes[-1] + "-"], "velocity": u}
    outlet = table(name, axes[-1] + "+", D=D, **given)
    outlet |= {"velocity": u} if "velocity" in outlet else {}
    ends = [inlet, outlet]
    return closed(
        lattice, [4, 6, 8][-D:], [walls, *ends] if walls_first else [*ends, walls],
        collision={"name": "mrt" if lattice == "D3Q13" else "bgk"}, initial={"u": u},
    )  # fmt: skip


ON_SITE = [name for name in on_faces() if find("boundaries", name).wall_at == "node"]
WALLS = ["bounce_back", "full_way", "interpolated"]


@pytest.mark.parametrize(
    ("name", "lattice", "walls_first", "wall"),
    [(name, "D2Q9", k % 2 > 0, WALLS[k % 3]) for k, name in enumerate(ON_SITE)]
    + [("zou_he", "D3Q13", False, "full_way"), ("zou_he", "D3Q19", False, "bounce_back")],
)
def test_uniform_flow_passes_between_walls_that_move_with_it(name, lattice, walls_first, wall):
    by_rho = {"rho": 1.0} if "rho" in find("boundaries", name).model_fields else {}
    for given in {str(given): given for given in ({}, by_rho)}.values():
        tables = between(name, lattice, given, walls_first, wall)
        cluster = Cluster(tables, 2).start().run(20)
        fields = cluster.fields("rho", "u")
        assert np.abs(fields["rho"] - 1).max() < 1e-13
        assert np.abs(fields["u"] - tables["initial"]["u"]).max() < 1e-13


def test_a_wall_that_sets_the_cells_of_an_inlet_gives_a_warning():
    """tamm_mott_smith next to an inlet gives a warning; opposite to it, none."""
    tables = between("zou_he", "D2Q9", {"rho": 1.0}, True, "tamm_mott_smith")
    (text,) = warnings_of(parse_case(tables, "test.toml"))
    assert text.startswith(
        "boundary.0.where: in the cells shared with 'zou_he' at y-, 'zou_he' at y+, "
    )
    tables["boundary"][0]["where"], tables["boundary"][2]["where"] = ["y+"], ["x-", "x+"]
    tables["boundary"][1]["name"] = tables["boundary"][2]["name"] = "bounce_back"
    tables["boundary"][2].pop("rho")
    assert not [t for t in warnings_of(parse_case(tables, "test.toml")) if "cells shared with" in t]


SPELLED = {
    "x and y": ["0.0*x", "0.05 + 0.0*y"],
    "t": [0.0, "0.05*where(t > 0.4, 1, 2)"],
    "both": ["0.0*t*x", "0.05 + 0.0*y*t"],
    "series": "t,u,v\n0.5,0,0.05\n90,0,0.05\n",
    "plane": np.full((8, 2), [0.0, 0.05]),
}


@pytest.mark.parametrize("kind", SPELLED)
def test_however_the_velocity_of_the_walls_is_spelled(kind, tmp_path):
    """The flux through the inlet is what is given; walls that count as at rest add 10 %."""
    tables, given = between("zou_he", "D2Q9", {}, kind != "t"), SPELLED[kind]
    tables["domain"]["size"] = [4, 8]
    if kind == "series":
        (tmp_path / "u.csv").write_text(given)
    elif kind == "plane":
        np.save(tmp_path / "u.npy", given)
    files = {"series": "u.csv", "plane": "u.npy"}
    wall = next(each for each in tables["boundary"] if each["name"] == "bounce_back")
    wall["velocity"] = str(tmp_path / files[kind]) if kind in files else given
    fields = Cluster(tables, 2).start().run(20).fields("rho", "u")
    flux = (fields["rho"] * fields["u"][..., 1]).sum(axis=(1, 2))
    assert np.abs(flux / (4 * 0.05) - 1).max() < 1e-12
    assert np.abs(fields["u"] - [0.0, 0.05]).max() < 1e-13


@pytest.mark.parametrize("equilibrium", names("equilibria"))
def test_a_moving_wall_is_known_where_and_when_it_moves(equilibrium):
    """feq_i - feq_opp of the velocity half a link out of each cell that another boundary sets."""
    lattice = (find("equilibria", equilibrium).lattices or ["D3Q15"])[-1]
    D = make("lattices", lattice).D
    u = ["0.02*x", "0.01*cos(t)*y*x", "0.03*sin(z + t)"][:D]
    sides = [axis + side for axis in "xyz"[: D - 1] for side in "-+"]
    walls = {"name": "bounce_back", "where": sides, "velocity": u}
    ends = table("equilibrium", *(f"{'xyz'[D - 1]}{side}" for side in "-+"), D=D)
    tables = closed(lattice, [4, 5, 3][-D:], [walls, ends], collision={
        "name": "mrt" if equilibrium == "dhumieres" else "bgk",
        "equilibrium": {"name": equilibrium}})  # fmt: skip
    case = parse_case(tables, "test.toml")
    (slab,) = slabs.split(case.shape, 1, False)
    (each,) = (e for e in build.build(case, slab).lists if e.boundary.name == "equilibrium")
    collision, size, t = case.fluids[0].collision, case.domain.size, 2.5
    motions, seen = each.motion.table.motions(collision, case.lattice, size, t), 0
    assert each.motion.table.timed
    for cell, row in zip(each.cells, each.motion.rows[0], strict=True):
        plane, line, x = np.unravel_index(cell, case.shape)
        for i, c in enumerate(case.lattice.c):
            at = np.array([x, line, plane] if D == 3 else [x, plane]) + 0.5 - np.array(c) / 2
            inside = all(0 < a < n for a, n in zip(at, size, strict=True))
            ends_there = not 0 < at[-1] < size[-1]
            expected = 0
            if not inside and not ends_there:
                x_, y_, z_ = (*at, 0)[:3]
                wall = [0.02 * x_, 0.01 * np.cos(t) * y_ * x_, 0.03 * np.sin(z_ + t)][:D]
                feq = collision.feq(case.lattice, 0.0, 1.0, [float(v) for v in wall])
                expected, seen = float(feq[i] - feq[case.lattice.opp[i]]), seen + 1
            assert abs(motions[row, i] - expected) < 1e-16
    assert seen


def test_slabs_know_moving_walls_with_the_same_bits():
    """Slabs that share no cell with a moving wall, and slabs with few and many velocities."""
    tables = closed("D2Q9", [4, 12], [
        {"name": "bounce_back", "where": ["x-"], "velocity": [0, "0.05 + 0.001*y*cos(t)"]},
        {"name": "free_slip", "where": ["x+"]},
        table("equilibrium", "y-", D=2, velocity=[0.01, 0.05]),
        {"name": "characteristic", "where": ["y+"], "rho": 1.0},
    ])  # fmt: skip
    expected = Cluster(tables).start().run(5).state()
    assert np.array_equal(Cluster(tables, 3).start().run(5).state(), expected)
