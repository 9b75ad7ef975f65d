"""Walls at the surface of shapes in closed flows: mass, density, and what the run reports."""

import json
from functools import cache

import numpy as np
import pytest
from support.faces import closed
from support.slabs import Cluster
from support.walls import CENTRAL, LINEAR, QUADRATIC, between_cylinders, body, rocks

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run

WALLS = [LINEAR, QUADRATIC, CENTRAL]
KEEP = {"conserve_mass": True}


def named(wall: dict) -> str:
    return f"{wall['name']}{wall.get('order', '')}"


def mass(cluster: Cluster) -> float:
    return float(cluster.sums()[1][:, 0].sum())


def stirred(wall: dict, speed: float = 0.1, n: int = 6, **tables) -> dict:
    """A closed annulus of radii n and 2n in a periodic box; the inner wall turns."""
    centre, box = [2.3 * n + 0.13] * 2, round(4.6 * n)
    everything = {"name": "box", "lower": [0, 0], "upper": [box, box]}
    hole = {"name": "cylinder", "centre": centre, "radius": 2 * n}
    turning = wall | {"rotation": {"centre": centre, "rate": speed / n}}
    bodies = [
        body(turning, "inner", name="cylinder", centre=centre, radius=n),
        body(wall, "outer", name="difference", of=[everything, hole]),
    ]
    found = closed("D2Q9", [box, box], [], body=bodies, fluid={"viscosity": 0.05},
                   collision={"name": "trt"}, **tables)  # fmt: skip
    found["domain"]["periodic"] = [True, True]
    return found


@pytest.mark.parametrize("wall", WALLS, ids=named)
def test_a_stirred_flow_conserves_the_mass(wall):
    """The bound corresponds to a change of 1e-8 in 10^5 steps; without the key it is 1 or more."""
    changes = []
    for keep in ({}, KEEP):
        cluster = Cluster(stirred(wall | keep)).start().run(100)
        before = mass(cluster)
        changes.append(abs(mass(cluster.run(200)) / before - 1) / 200)
    print(f"{wall}: mass changes by {changes[0]:.1e} and {changes[1]:.1e} per step")
    assert changes[1] < 1e-15 < 1e-5 < changes[0]


@pytest.mark.parametrize("wall", WALLS, ids=named)
def test_the_density_does_not_change_the_velocity_of_a_wall(wall):
    errors = [between_cylinders(wall, 6, rho) for rho in (1, 1.3)]
    print(f"{wall}: errors {errors}")
    assert errors[1] == pytest.approx(errors[0], rel=0.1)


@cache
def of_stairs() -> float:
    """The error of half-way walls."""
    return between_cylinders({"name": "bounce_back"}, 12)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("wall", WALLS, ids=named)
def test_conserving_walls_converge(wall):
    """With an order between 1.4 and 2, and errors well below those of half-way walls."""
    coarse, fine = (between_cylinders(wall | KEEP, n) for n in (6, 12))
    slope, stairs = np.log2(coarse / fine), of_stairs()
    print(f"{wall}: {coarse:.2e}, {fine:.2e}, order {slope:.2f}; bounce_back {stairs:.2e}")
    assert slope > 1.4
    assert fine < stairs / 3


@pytest.mark.parametrize("layout", ["ab", "moments"])
def test_cells_next_to_several_walls_conserve_the_mass(layout):
    """Where conserving walls of two kinds, at rest and moving, and half-way walls meet."""
    bodies = [
        body(LINEAR | KEEP, "ball", name="sphere", centre=[4.1, 4.4], radius=2.2),
        body(CENTRAL | KEEP, "block", name="box", lower=[6.3, 3.1], upper=[9, 5.6]),
        body({"name": "bounce_back"}, "step", name="box", lower=[6.3, -1], upper=[9, 1.5]),
    ]
    faces = [
        {"name": "bounce_back", "where": ["x-", "x+"]},
        LINEAR | KEEP | {"where": ["y-", "y+"], "velocity": [0.05, 0]},
    ]
    u = ["0.03*sin(2*pi*y/9)", "0.02*sin(2*pi*x/11)"]
    tables = closed("D2Q9", [11, 9], faces, body=bodies, layout={"name": layout},
                    initial={"rho": 1, "u": u})  # fmt: skip
    cluster = Cluster(tables).start()
    before = mass(cluster)
    whole = cluster.run(20).state()
    assert abs(mass(cluster) / before - 1) < 1e-14
    assert np.array_equal(Cluster(tables, 3).start().run(20).state(), whole)


def test_neither_cut_nor_layout_shows():
    walls = [QUADRATIC | KEEP, CENTRAL | KEEP]
    whole = Cluster(rocks({"name": "ab"}, *walls)).start().run(9)
    for layout in ({"name": "esopull"}, {"name": "indirect", "streaming": "aa"}):
        other = Cluster(rocks(layout, *walls), 3).start().run(9)
        assert np.array_equal(other.state(), whole.state())


def test_a_run_reports_the_change_of_the_mass(tmp_path):
    """What `check` expects of moving walls, and the run measures; neither if the mass is kept."""
    for number, keep in enumerate(({}, KEEP)):
        tables = stirred(CENTRAL | keep, run={"steps": 600}, output=[])
        run(parse_case(tables, "a.toml"), Serial(), tmp_path / str(number))
        found = json.loads((tmp_path / str(number) / "summary.json").read_text())["findings"]
        lines = [one["message"] for one in found if "mass" in one["message"]]
        if keep:
            assert not lines
            continue
        expected, measured = lines
        assert "the flow is closed, and 'central_linear' does not conserve the mass" in expected
        assert "by step 600 the mass of the closed flow has changed by +0.0" in measured
        assert "set body.inner.boundary.conserve_mass = true, body.outer" in measured


def test_half_way_walls_that_move_fluid_of_another_density():
    faces = [{"name": "bounce_back", "where": ["x-", "x+", "y-"]},
             {"name": "bounce_back", "where": ["y+"], "velocity": [0.05, 0]}]  # fmt: skip

    def found(rho: float, equilibrium: str) -> list[str]:
        collision = {"name": "trt", "equilibrium": {"name": equilibrium}}
        initial = {"rho": rho, "u": [0, 0]}
        tables = closed("D2Q9", [8, 8], faces, initial=initial, collision=collision)
        findings = of_case(parse_case(tables, "a.toml"))
        return [each.line for each in findings if "density" in each.message]

    (line,) = found(1.25, "compressible")
    assert line.startswith("serious: boundary.1.velocity: the wall moves fluid of the density 1")
    assert "-20.0%" in line
    assert not found(1.001, "compressible") + found(1.25, "incompressible")
