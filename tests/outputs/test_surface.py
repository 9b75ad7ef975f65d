"""surface_<label>_<step>.vtkhdf: exact shear and pressure, the force, VTK, restarts, messages.

More than 20 s: some thirty runs, with a text for each layout and kind of surface.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
import vtk
from support.body_forces import rows
from support.pairs import defined
from support.runs import run_case
from support.surface_files import FLUID, ball_tables, integral, read, surface
from support.surfaces import write, write_ball

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import names
from mpilbm.outputs.facets import LONGEST

BALL = {"name": "mesh", "file": "ball.stl", "scale": 3.2, "at": [6.1, 5.2, 4.9]}
SPHERE = {"name": "sphere", "centre": [6.1, 5.2, 4.9], "radius": 3.2}
HEIGHT, PUSH = 8, 1e-6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("surface")
    write_ball(found / "ball.stl", 2)
    return found


def result(folder, tables, name, **options):
    run_case(parse_case(tables, folder / "case.toml"), folder / name, **options)
    return read(folder / name, tables["run"]["steps"])


def total(folder, label="ball"):
    row = rows(folder / f"forces_{label}.csv")[-1]
    return [row[f"force_{axis}"] for axis in "xyz" if f"force_{axis}" in row]


@pytest.mark.parametrize("layout", ["ab", "aa", "esopull", "indirect", "moments"])
@pytest.mark.parametrize("shape", [BALL, SPHERE], ids=["mesh", "cells"])
def test_the_integral_is_the_force_on_the_body(folder, layout, shape):
    collision = {"name": "regularized"} if layout == "moments" else FLUID["collision"]
    tables = ball_tables(shape, layout={"name": layout}, collision=collision)
    name = f"{layout}_{shape['name']}"
    found = result(folder, tables, name)
    np.testing.assert_allclose(integral(found), total(folder / name), rtol=1e-9, atol=1e-15)
    assert np.isfinite(found["pressure"]).all()
    assert (found["shear_magnitude"] > 0).all()
    np.testing.assert_allclose((found["shear"] ** 2).sum(axis=1), found["shear_magnitude"] ** 2)


@pytest.mark.parametrize("shape", [BALL, SPHERE], ids=["mesh", "cells"])
def test_friction_in_cells_above_the_wall_is_part_of_the_force(folder, shape):
    """Of a wall model, whose force acts on cells that are not next to the body."""
    model = {"name": "wall_model", "law": "spalding"}
    tables = ball_tables(shape, steps=2, fluid={"viscosity": 1e-4}, initial={"u": [0.05, 0, 0]})
    tables["domain"]["size"], tables["body"][0]["boundary"] = [14, 14, 14], model
    name = f"model_{shape['name']}"
    found = result(folder, tables, name)
    np.testing.assert_allclose(integral(found), total(folder / name), rtol=1e-9, atol=1e-15)
    assert np.isfinite(found["force"]).all()
    assert np.isfinite(found["pressure"]).all()


def test_a_staggered_lattice_with_a_mesh(folder):
    collision = next({"name": n} for n in names("collisions") if defined("D3Q13", n))
    tables = ball_tables(BALL, lattice={"name": "D3Q13"}, collision=collision)
    found = result(folder, tables, "D3Q13")
    np.testing.assert_allclose(integral(found), total(folder / "D3Q13"), rtol=1e-9, atol=1e-15)


def test_a_fluid_at_rest_presses_alike_everywhere(folder):
    tables = ball_tables(BALL, force=None, initial={"rho": 1.03})
    found = result(folder, tables, "rest")
    np.testing.assert_allclose(found["pressure"], 0.01, rtol=1e-12)
    assert np.abs(found["shear"]).max() < 1e-12
    assert np.abs(integral(found)).max() < 1e-12
    np.testing.assert_allclose(found["area"].sum(), 4 * np.pi * 3.2**2, rtol=0.03)


def test_y_plus_in_a_sponge_has_the_viscosity_of_the_place(folder):
    """The distance of the cells, from y+ and shear, is that without a sponge."""

    def distance(name, nu, **more):
        tables = ball_tables(SPHERE, collision={"name": "trt"}, **more)
        found = result(folder, tables, name)
        u_tau = np.sqrt(found["shear_magnitude"] / (1 + 3 * found["pressure"]))
        return found["y_plus"] * nu(found) / u_tau

    def local(found):
        x = found["centre"][:, 0]
        return nu + 0.2 * np.maximum(0, 1 - np.minimum(x, 12 - x) / 4.5) ** 2

    nu = FLUID["fluid"]["viscosity"]
    sponge = [{"where": ["x-", "x+"], "thickness": 4.5, "viscosity": 0.2}]
    without = distance("clear", lambda found: nu)
    np.testing.assert_allclose(distance("sponge", local, sponge=sponge), without, rtol=1e-9)


def test_a_body_at_periodic_faces_has_the_values_of_one_inside(folder):
    moved = BALL | {"at": [12.1, 5.2, -0.1]}
    flow = {"u": ["0.01*sin(2*pi*y/10)", 0, "0.01*cos(2*pi*(x-6)/12)"]}
    inside = result(folder, ball_tables(BALL), "inside")
    across = result(folder, ball_tables(moved, initial=flow), "across")
    for name in ("pressure", "shear_magnitude", "force"):
        values = (np.sort(each[name], axis=0) for each in (inside, across))
        np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("shape", [BALL, SPHERE], ids=["mesh", "cells"])
def test_a_pressure_jump_through_the_body_shows_nowhere(folder, shape):
    """Pressure and force are those of the body in one piece, with the face beside it."""

    def body(shift):
        place = "at" if "at" in shape else "centre"
        moved = shape | {place: [(6.1 + shift) % 12, 5.2, 4.9]}
        tables = ball_tables(moved, force=None, initial={
            "rho": f"1 + 1e-3*(0.5 - (x - {shift})/12)", "u": [0, 0, 0],
        })  # fmt: skip
        tables["collision"] = {"name": "trt", "equilibrium": {"name": "incompressible"}}
        tables["boundary"] = [{"name": "pressure_jump", "where": ["x-", "x+"], "rho_jump": 1e-3}]
        name = f"jump_{shape['name']}_{shift}"
        found = result(folder, tables, name)
        np.testing.assert_allclose(integral(found), total(folder / name), rtol=1e-9, atol=1e-15)
        place = (found["centre"] - [shift, 0, 0]) % [12, 100, 100]
        order = np.lexsort(np.round(place.T, 6))
        return {key: found[key][order] for key in ("pressure", "force", "shear")}

    whole = body(0)
    for shift in (5, -4):
        for name, values in body(shift).items():
            np.testing.assert_allclose(values, whole[name], rtol=0, atol=1e-11)


def channel(walls, periodic, **more):
    """A flow along x between bodies at y = 3 and y = 3 + HEIGHT; in 2D."""
    found = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [6, HEIGHT + 6], "periodic": [True, periodic]},
        "force": {"name": "guo", "value": [PUSH, 0]},
        "body": walls,
        "run": {"steps": 6000},
        "output": [surface(6000, begin=0)],
    }
    return {key: value for key, value in (FLUID | found | more).items() if value is not None}


def slab(label, lower, upper, **more):
    shape = {"name": "box", "lower": [-1, lower], "upper": [7, upper]}
    return {"label": label, "shape": shape, "boundary": {"name": "bounce_back"} | more}


def test_the_shear_of_poiseuille_and_couette_flows_is_exact(folder):
    walls = [slab("low", -1, 3), slab("high", 3 + HEIGHT, 20)]
    box = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    found = result(folder, channel(walls, False, boundary=box), "poiseuille")
    np.testing.assert_allclose(found["shear"][:, 0], PUSH * HEIGHT / 2, rtol=1e-5)
    np.testing.assert_allclose(found["y_plus"], np.sqrt(PUSH * HEIGHT / 2) * 0.5 / 0.1, rtol=1e-5)
    walls[1] = slab("high", 3 + HEIGHT, 20, velocity=[0.01, 0])
    found = result(folder, channel(walls, False, boundary=box, force=None), "couette")
    expected = 0.1 * 0.01 / HEIGHT * np.where(found["body"] == 0, 1, -1)
    np.testing.assert_allclose(found["shear"][:, 0], expected, rtol=1e-5)


def test_a_thin_plate_has_the_shear_of_each_side(folder):
    """A plate at y = 5, at rest, between walls at y = 0 and 14 of which the lower one moves."""
    corners = [[0, 5, -9], [12, 5, -9], [12, 5, 9], [0, 5, 9]]
    write(folder / "plate.stl", corners, [[0, 1, 2], [0, 2, 3]])
    shape = {"name": "mesh", "file": "plate.stl", "scale": 1, "at": [-3, 0], "anchor": "origin",
             "thin": True}  # fmt: skip
    shape["at"] = [-3.0, 0.0]
    body = [{"label": "plate", "shape": shape, "boundary": {"name": "bounce_back"}}]
    moving = [
        {"name": "bounce_back", "where": ["y-"], "velocity": [0.01, 0]},
        {"name": "bounce_back", "where": ["y+"]},
    ]
    found = result(folder, channel(body, False, boundary=moving, force=None), "plate")
    below = found["normal"][:, 1] < 0
    assert 0 < below.sum() < below.size
    np.testing.assert_allclose(found["shear"][below, 0], 0.1 * 0.01 / 5, rtol=1e-5)
    assert np.abs(found["shear"][~below]).max() < 1e-9


def test_vtk_reads_the_file(folder):
    result(folder, ball_tables(BALL), "vtk")
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(folder / "vtk" / "surface_wall_000000020.vtkhdf"))
    reader.Update()
    data = reader.GetOutput()
    found = read(folder / "vtk", 20)
    assert data.GetNumberOfPolys() == data.GetNumberOfCells() == len(found["area"])
    sizes = vtk.vtkMassProperties()
    sizes.SetInputData(data)
    np.testing.assert_allclose(sizes.GetSurfaceArea(), found["area"].sum(), rtol=1e-5)
    values = data.GetCellData().GetArray("pressure")
    assert values.GetValue(5) == found["pressure"][5]
    assert data.GetCellData().GetArray("shear").GetNumberOfComponents() == 3
    lengths = np.sqrt(found["area"] * 4 / np.sqrt(3))
    assert lengths.max() < 1.2 * LONGEST


def test_a_restart_writes_the_same_files(folder):
    keep = [surface(4), {"name": "checkpoint", "every": 10}]
    case = parse_case(ball_tables(BALL, output=keep), folder / "case.toml")
    run_case(case, folder / "whole")
    whole = {step: read(folder / "whole", step) for step in (4, 12, 16, 20)}
    for step in (12, 16, 20):
        (folder / "whole" / f"surface_wall_{step:09d}.vtkhdf").unlink()
    first = folder / "whole" / "checkpoint_000000010.h5"
    run_case(case, folder / "whole", restart=first)
    for step in (12, 16, 20):
        for name, values in read(folder / "whole", step).items():
            np.testing.assert_array_equal(values, whole[step][name])


def test_values_are_in_si(folder):
    units = {"cell": "2 mm", "step": "1 ms", "density": 1000}
    plain = result(folder, ball_tables(BALL), "plain")
    given = ball_tables(BALL)
    lattice = {"fluid": {"viscosity": 0.1}, "units": units}
    found = result(folder, given | lattice, "si")
    scale = 1000 * (2e-3 / 1e-3) ** 2
    np.testing.assert_allclose(found["pressure"], scale * plain["pressure"], rtol=1e-9)
    np.testing.assert_allclose(found["force"], scale * plain["force"], rtol=1e-9, atol=1e-18)
    np.testing.assert_allclose(found["y_plus"], plain["y_plus"])
    np.testing.assert_allclose(found["area"], 4e-6 * plain["area"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"body": ["bal"]}, "body: found 'bal'; allowed: ball"),
        ({"fields": ["pressur"]}, "fields: found 'pressur'; allowed: pressure, shear"),
        ({"fields": []}, "fields: found none"),
        ({"on": "mesh"}, "body 'ball' is not a mesh"),
        ({"end": 5, "begin": 9}, "end: found 5"),
        ({"every": 0}, "every"),
    ],
)
def test_mistakes_are_refused(keys, message):
    with pytest.raises(CaseError, match=message):
        parse_case(ball_tables(SPHERE, output=[surface(5) | keys]), "case.toml")


def test_a_staggered_lattice_has_no_faces_of_cells():
    collision = next({"name": n} for n in names("collisions") if defined("D3Q13", n))
    tables = ball_tables(SPHERE, lattice={"name": "D3Q13"}, collision=collision)
    with pytest.raises(CaseError, match="D3Q13 does not have; use a mesh"):
        parse_case(tables, "case.toml")


ROWS_ALONE = """
import numpy as np
from mpilbm.outputs.linked_surface import summed
random = np.random.default_rng(0)
flags, vectors = random.random((40, 19)) < 0.4, random.normal(size=(19, 3))
whole = summed(flags, vectors)
for n in range(1, 40):
    assert np.array_equal(summed(flags[:n], vectors), whole[:n]), n
"""


def test_areas_of_a_cell_do_not_depend_on_how_many_there_are():
    """With a matrix product they do, with the kernels of OpenBLAS for some processors."""
    child = [sys.executable, "-c", ROWS_ALONE]
    subprocess.run(child, env=os.environ | {"OPENBLAS_CORETYPE": "Nehalem"}, check=True)
