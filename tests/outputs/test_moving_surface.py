"""Surfaces of moving bodies: the pressure on facets that move with them, time series, messages."""

import json

import numpy as np
import pytest
import vtk
from support.body_forces import flow, rows
from support.mpi_runs import datasets
from support.surface_files import integral, read, surface
from support.surfaces import write_ball

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run
from mpilbm.run.simulation import Simulation

CELLS = {"name": "partially_saturated"}
BAR = {"name": "box", "lower": [6.2, 8.1, 7.3], "upper": [13.1, 12.2, 11.4]}
BALL = {"name": "sphere", "centre": [10.3, 10.4, 9.2], "radius": 4.3}
MESH = {"name": "mesh", "file": "ball.stl", "scale": 4.3, "at": BALL["centre"]}
HALF_TURN = {"name": "rotation", "angle": "0.7 + 0.02*t", "axis": [1, 2, 3]}
MOVE = {"name": "translation", "velocity": [0.09, 0.05, -0.04]}
FREE = {"name": "free", "density": 20.0, "velocity": [0.09, 0.05, -0.04]}


def tables(shape, motion, steps=0, D=3, **more):
    """A body in a periodic box of 22 x 20 x 21 cells."""
    if motion["name"] in ("translation", "free"):
        motion = motion | {"velocity": motion["velocity"][:D]}
    if D == 2:
        shape = {k: v[:2] if isinstance(v, list) else v for k, v in shape.items()}
        motion = {k: v for k, v in motion.items() if k != "axis"}
    body = {"label": "a", "shape": shape, "boundary": CELLS, "motion": motion}
    output = surface(max(steps // 2, 1), begin=0)
    given = flow(["D2Q9", "D3Q19"][D - 2], size=[22, 20, 21][:D], body=[body], output=[output])
    del given["force"]
    given |= {"run": {"steps": steps}, "initial": {"u": [0] * D}, "backend": {"name": "cpu"}}
    return given | more


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("moving_surface")
    write_ball(found / "ball.stl", 2)
    return found


@pytest.mark.parametrize("D", [2, 3])
@pytest.mark.parametrize("shape", [BAR, BALL, MESH], ids=["bar", "ball", "mesh"])
def test_a_linear_pressure_is_exact_on_a_turned_body(folder, shape, D):
    """Extrapolated from points that are not in the frame of the cells."""
    rho = "1 + 0.001*x - 0.002*y" + " + 0.0015*z" * (D == 3)
    given = tables(shape, HALF_TURN, D=D, initial={"u": [0] * D, "rho": rho})
    name = f"linear_{shape['name']}_{D}"
    run(parse_case(given, folder / "a.toml"), world(), folder / name)
    found = read(folder / name, 0)
    expected = found["centre"] @ [0.001, -0.002, 0.0015] / 3
    np.testing.assert_allclose(found["pressure"], expected, atol=1e-9)
    assert integral(found, "normal") == pytest.approx(0, abs=1e-9)
    assert set(found["body"]) == {0}
    towards = found["centre"] - found["centre"].mean(axis=0)
    assert ((towards * found["normal"]).sum(axis=1) > 0).all()


@pytest.mark.parametrize(("shape", "motion"), [(BALL, MOVE), (BALL, FREE), (MESH, MOVE)])
def test_facets_are_where_the_body_is(folder, shape, motion):
    """Also beyond a periodic face: its centre is then again in the box."""
    at, centres = [20.2, 10.4, 9.2], {}
    shape = shape | ({"at": at} if shape is MESH else {"centre": at})
    given = tables(shape, motion, steps=40)
    name = f"moved_{shape['name']}_{motion['name']}"
    with Simulation(parse_case(given, folder / "a.toml"), world(), directory=folder / name) as sim:
        sim.run(40, every=20, call=lambda s: centres.update({s.step: s.bodies["a"].position}))
    assert centres[40][0] > 22
    for step, centre in centres.items():
        found = read(folder / name, step)
        assert (found["centre"] * found["area"][:, None]).sum(axis=0) / found["area"].sum() == (
            pytest.approx(np.mod(centre, [22, 20, 21]), abs=0.02)
        )
        assert np.isfinite(found["pressure"]).all()
        assert np.ptp(found["pressure"]) > 1e-4
    series = json.loads((folder / name / "surface_wall.vtkhdf.series").read_text())
    expected = [{"name": f"surface_wall_{t:09d}.vtkhdf", "time": t} for t in (0, 20, 40)]
    assert series["files"] == expected


def test_the_drag_of_the_pressure_is_that_of_links(folder):
    """A flow through an array of discs of 8 cells, Reynolds number 4."""
    disc = {"name": "sphere", "centre": [12.2, 11.9], "radius": 4.0}
    more = {"domain": {"size": [24, 24], "periodic": [True, True]}, "fluid": {"viscosity": 0.05}}
    more |= {"force": {"name": "guo", "value": [1e-4, 0]}, "collision": {"name": "trt"}}
    still = {"name": "translation", "velocity": [0, 0]}
    cells = tables(disc, still, steps=3000, D=2, **more)
    links = tables(disc, still, steps=3000, D=2, **more)
    links["body"] = [{"label": "a", "shape": disc, "boundary": {"name": "interpolated"}}]
    links["output"] = [{"name": "body_forces", "every": 1000, "split": True}]
    for name, given in (("cells", cells), ("links", links)):
        run(parse_case(given, folder / "a.toml"), world(), folder / name)
    drag = rows(folder / "links" / "forces_a.csv")[-1]["pressure_x"]
    found = read(folder / "cells", 3000)
    force = -found["area"] @ (found["pressure"][:, None] * found["normal"])
    assert force[0] == pytest.approx(drag, rel=0.05)
    assert abs(force[1]) < 0.05 * drag


@pytest.mark.parametrize("jump", [0.01, "0.01 + 0*t"])
def test_the_pressure_continues_beyond_a_pressure_jump(folder, jump):
    """On a body across these faces; a jump that is a formula is not known beyond them."""
    ball = {"name": "sphere", "centre": [20.2, 10.4], "radius": 4.3}
    walls = {"name": "bounce_back", "where": ["y-", "y+"]}
    jumps = {"name": "pressure_jump", "where": ["x-", "x+"], "rho_jump": jump}
    given = tables(ball, {"name": "translation", "velocity": [0, 0]}, D=2)
    given |= {"initial": {"u": [0, 0], "rho": "1.005 - 0.01*x/22"}, "boundary": [walls, jumps]}
    given["domain"] = {"size": [22, 20], "periodic": [True, False]}
    name = f"jump_{type(jump).__name__}"
    run(parse_case(given, folder / "a.toml"), world(), folder / name)
    found = read(folder / name, 0)
    known, beyond = np.isfinite(found["pressure"]), found["centre"][:, 0] > 22
    assert 0 < beyond.sum() < len(beyond)
    expected = (0.005 - 0.01 * found["centre"][:, 0] / 22) / 3
    near = 1e-8 if known.all() else 1e-4  # means of fewer cells next to those that are not known
    np.testing.assert_allclose(found["pressure"][known], expected[known], rtol=0, atol=near)
    assert known.all() if isinstance(jump, float) else not known[beyond].any()


def test_cells_within_another_body_are_not_used(folder):
    """The pressure there is another one; facets without others nearby have none."""
    still = {"name": "translation", "velocity": [0, 0]}
    first = {"name": "sphere", "centre": [8.2, 10.3], "radius": 3.4}
    second = {"name": "sphere", "centre": [15.3, 10.3], "radius": 3.2}
    rho = "1 + 0.001*x + where((x - 15.3)**2 + (y - 10.3)**2 < 3.2**2, 0.05, 0)"
    given = tables(first, still, D=2, initial={"u": [0, 0], "rho": rho})
    given["body"].append({"label": "b", "shape": second, "boundary": CELLS, "motion": still})
    given["output"][0]["body"] = ["a"]
    run(parse_case(given, folder / "a.toml"), world(), folder / "two")
    found = read(folder / "two", 0)
    known, x = np.isfinite(found["pressure"]), found["centre"][:, 0]
    assert known[x < 10].all()
    assert known.sum() > 0.8 * len(known)
    np.testing.assert_allclose(found["pressure"][known], 0.001 * x[known] / 3, rtol=0, atol=2e-4)


def test_vtk_and_units(folder):
    units = {"cell": "2 mm", "step": "1 ms", "density": 1000}
    fluid = {"fluid": {"viscosity": 0.1}}
    found = []
    for name, more in (("plain", {}), ("si", {"units": units})):
        case = parse_case(tables(BALL, MOVE, steps=2, **fluid, **more), folder / "a.toml")
        run(case, world(), folder / name)
        found.append(read(folder / name, 2))
    scale = 1000 * (2e-3 / 1e-3) ** 2
    np.testing.assert_allclose(found[1]["pressure"], scale * found[0]["pressure"], rtol=1e-9)
    np.testing.assert_allclose(found[1]["centre"], 2e-3 * found[0]["centre"], rtol=1e-9)
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(folder / "si" / "surface_wall_000000002.vtkhdf"))
    reader.Update()
    data = reader.GetOutput()
    assert data.GetNumberOfPolys() == len(found[1]["area"])
    assert data.GetCellData().GetArray("pressure").GetValue(5) == found[1]["pressure"][5]


def test_two_bodies_at_walls_and_restarts(folder):
    """A body at a wall has a pressure there, or nan; a restart writes the same files."""
    first = {"name": "box", "lower": [4, 0.5], "upper": [9, 3.2]}
    second = {"name": "sphere", "centre": [15, 12], "radius": 3.0}
    slide = {"name": "translation", "velocity": [0.05, 0]}
    bodies = [
        {"label": "slider", "shape": first, "boundary": CELLS, "motion": slide},
        {"label": "post", "shape": second, "boundary": {"name": "bounce_back"}},
        {
            "label": "disc",
            "shape": second,
            "boundary": CELLS,
            "motion": FREE | {"velocity": [0, 0]},
        },
    ]
    bodies[1]["shape"] = second | {"centre": [4, 14]}
    outputs = [surface(10, body=["disc", "slider"]), {"name": "checkpoint", "every": 15}]
    outputs.append(surface(10, body=["post"], label="post"))
    closed = {
        "domain": {"size": [22, 20], "periodic": [True, False]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "output": outputs,
    }

    def case(steps):
        given = tables(BALL, MOVE, D=2, body=bodies, **closed)
        return parse_case(given | {"run": {"steps": steps}}, folder / "a.toml")

    run(case(30), world(), folder / "whole")
    run(case(15), world(), folder / "parts")
    run(case(30), world(), folder / "parts", restart="auto")
    for path in sorted((folder / "whole").glob("surface_*.vtkhdf")):
        expected, found = datasets(path), datasets(folder / "parts" / path.name)
        for name, values in expected.items():
            np.testing.assert_array_equal(values, found[name])
    last = read(folder / "whole", 30)
    assert set(last["body"]) == {0, 2}
    known = np.isfinite(last["pressure"])
    assert known[last["body"] == 2].all()
    below = (last["body"] == 0) & (last["normal"][:, 1] < -0.9)
    assert known[last["body"] == 0].sum() >= (last["body"] == 0).sum() - below.sum()
    assert "shear" in read(folder / "whole", 30, "post")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"fields": ["pressure", "shear"]}, "'shear' is not known on body 'a'.*allowed: pressure"),
        ({"on": "cells"}, "on: body 'a' moves, its facets are .* remove on"),
        ({"on": "mesh"}, "on: body 'a' moves"),
        ({"body": ["a", "b"]}, "body: 'a' moves and 'b' does not; name bodies that move in one"),
        ({"body": ["b"]}, "body 'b' acts in cells, where pressure and stress"),
    ],
)
def test_messages(keys, message):
    given = tables(BALL | {"radius": 2.0}, MOVE, output=[surface(5) | {"body": ["a"]} | keys])
    post = {"name": "sphere", "centre": [17, 4, 4], "radius": 2.0}
    given["body"].append({"label": "b", "shape": post, "boundary": CELLS})
    with pytest.raises(CaseError, match=message):
        parse_case(given, "a.toml")
