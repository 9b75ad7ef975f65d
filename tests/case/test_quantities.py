"""[units]: what is given with an SI unit, what is printed and written in SI, what is refused."""

import csv
import json
import re
import tomllib

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from support.case_tables import problems

from mpilbm.case import quantities
from mpilbm.case.case import parse_case, schema
from mpilbm.cli import cli

CASE = """
[lattice]
name = "D2Q9"
[domain]
size = [24, 20]
periodic = [true, false]
[units]
cell = 0.001        # m
step = 2e-4         # s: 0.05 cells a step are 0.25 m/s
density = 1000      # kg/m^3
[fluid]
viscosity = "500 mm^2/s"
[initial]
u = ["0.1 m/s", 0]
[[boundary]]
name = "bounce_back"
where = ["y-", "y+"]
velocity = ["25 cm/s", 0.0]
[[body]]
label = "disc"
shape = {name = "sphere", centre = ["12.2 mm", 10.1], radius = "0.003 m"}
boundary = {name = "bounce_back"}
[run]
steps = 4
[backend]
name = "cpu"
[[output]]
name = "snapshot"
every = 4
[[output]]
name = "monitor"
every = 2
[[output]]
name = "body_forces"
every = 2
velocity = ["25 cm/s", 0.0]
length = "6 mm"
"""
LATTICE = {
    "initial": {"u": [0.02, 0]},
    "fluid": {"viscosity": 0.1},
    "boundary.velocity": [0.05, 0.0],
    "shape": {"name": "sphere", "centre": [12.2, 10.1], "radius": 3.0},
    "output": {"velocity": [0.05, 0.0], "length": 6.0},
}


def same_in_lattice_units():
    """The case without [units], with numbers in their place."""
    tables = tomllib.loads(CASE)
    del tables["units"]
    tables |= {key: LATTICE[key] for key in ("initial", "fluid")}
    tables["boundary"][0]["velocity"] = LATTICE["boundary.velocity"]
    tables["body"][0]["shape"] = LATTICE["shape"]
    tables["output"][2] |= LATTICE["output"]
    return tables


def test_what_is_given_with_a_unit_is_the_number_in_lattice_units():
    found, wanted = parse_case(tomllib.loads(CASE)), parse_case(same_in_lattice_units())
    assert found.fluids[0].viscosity == pytest.approx(wanted.fluids[0].viscosity, rel=1e-14)
    assert found.fluids[0].initial.u == pytest.approx(wanted.fluids[0].initial.u, rel=1e-14)
    assert found.boundaries[0].velocity == pytest.approx(wanted.boundaries[0].velocity)
    assert found.bodies[0].shape.centre == pytest.approx(wanted.bodies[0].shape.centre)
    assert found.bodies[0].shape.radius == pytest.approx(wanted.bodies[0].shape.radius)
    assert found.outputs[2].length == pytest.approx(wanted.outputs[2].length)
    assert tomllib.loads(found.toml) == tomllib.loads(CASE)


def test_a_step_may_be_given_by_the_velocity_of_a_cell_a_step():
    tables = tomllib.loads(CASE)
    wanted = parse_case(tables).units
    tables["units"] = {"cell": 0.001, "velocity": 5, "density": 1000}
    assert parse_case(tables).units.step == pytest.approx(wanted.step, rel=1e-15)


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_run_writes_both_and_check_prints_them(tmp_path):
    (tmp_path / "a.toml").write_text(CASE)
    result = CliRunner().invoke(cli, ["run", str(tmp_path / "a.toml"), "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for row in rows(tmp_path / "forces_disc.csv"):
        assert float(row["time_s"]) == pytest.approx(2e-4 * float(row["time (steps)"]))
        force = float(row["force_x (rho_0 cells^3/step^2)"])
        assert float(row["force_x_N_per_m"]) == pytest.approx(force * 1000 * 1e-9 / 4e-8)
        torque = float(row["torque_z (rho_0 cells^4/step^2)"])
        assert float(row["torque_z_N_m_per_m"]) == pytest.approx(torque * 1000 * 1e-12 / 4e-8)
        drag = 2 * float(row["force_x_N_per_m"]) / (1000 * 0.25**2 * 0.006)
        assert float(row["c_d +x"]) == pytest.approx(drag)
    last = rows(tmp_path / "monitor.csv")[-1]
    assert float(last["time_s"]) == pytest.approx(2e-4 * float(last["time"]))
    with h5py.File(tmp_path / "snapshot_000000004.vtkhdf") as file:
        attributes = file["mpilbm"].attrs
        assert attributes["units"] == "SI"
        assert attributes["time (s)"] == pytest.approx(8e-4)
        assert attributes["velocity unit (m/s)"] == pytest.approx(5)
        assert attributes["density unit (kg/m^3)"] == 1000
        np.testing.assert_array_equal(file["VTKHDF"].attrs["Spacing"], 0.001)
        np.testing.assert_array_equal(file["VTKHDF"].attrs["Origin"], 0)
        assert file["VTKHDF/FieldData/TimeValue"][...] == pytest.approx([8e-4])
        u, rho = (file[f"VTKHDF/CellData/{name}"] for name in ("u", "rho"))
        assert (u.attrs["unit"], u.attrs["lattice unit"]) == ("m/s", pytest.approx(5))
        assert (rho.attrs["unit"], rho.attrs["lattice unit"]) == ("kg/m^3", 1000)
        assert np.abs(u).max() == pytest.approx(float(last["max_speed_m_per_s"]), rel=1e-3)
        assert rho[...].mean() == pytest.approx(1000, rel=1e-2)
    for name, unit, scale in (
        ("mass", "kg_per_m", 1000 * 1e-6),
        ("momentum_x", "kg_m_per_s_per_m", 1000 * 1e-6 * 5),
        ("kinetic_energy", "J_per_m", 1000 * 1e-6 * 25),
        ("enstrophy", "m3_per_s2_per_m", 25),
        ("max_speed", "m_per_s", 5),
    ):
        assert float(last[f"{name}_{unit}"]) == pytest.approx(scale * float(last[name]), rel=1e-12)
    result = CliRunner().invoke(cli, ["check", str(tmp_path / "a.toml")])
    assert result.exit_code == 0, result.output
    for line in (
        r"cell +0.001 m +the box: 0.024 x 0.02 m",
        r"step +0.0002 s +the run: 0.0008 s",
        r"speed +0.25 m/s",
        r"viscosity +0.0005 m\^2/s",
    ):
        assert re.search(line, result.output), line


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("m^2/s", 1, (2, -1, 0)),
        ("mm^2/s", 1e-6, (2, -1, 0)),
        ("kg/m^3", 1, (-3, 0, 1)),
        ("N/m^3", 1, (-2, -2, 1)),
        ("Pa*s", 1, (-1, -1, 1)),
        ("kg*m/s^2", 1, (1, -2, 1)),
        ("g/cm^3", 1000, (-3, 0, 1)),
    ],
)
def test_units_are_read(text, value, dimension):
    found = quantities.in_si(1.0, text)
    assert found[0] == pytest.approx(value, rel=1e-14)
    assert found[1] == dimension


@pytest.mark.parametrize(
    ("text", "why"), [("Hz", "frequency"), ("1/s*kHz", "frequency"), ("statC", "no whole numbers")]
)
def test_units_that_would_be_misread(text, why):
    with pytest.raises(quantities.UnitError, match=why):
        quantities.in_si(1.0, text)


@pytest.mark.parametrize("text", ["500mm^2/s", "500 mm^2/s", "5e-4m^2/s"])
def test_a_space_before_the_unit_may_be_left_out(text):
    tables, *_ = quantities.in_lattice_units(
        {
            "units": {"cell": 0.001, "step": 2e-4, "density": 1000},
            "fluid": {"viscosity": text},
            "initial": {"u": ["1e-3", "2*x"]},
        }
    )
    assert tables["fluid"]["viscosity"] == pytest.approx(0.1)
    assert tables["initial"]["u"] == ["1e-3", "2*x"]


WRONG = {
    "cell = 0.001": ("cell = -1", "units.cell: found -1; allowed: >= 1e-30"),
    "step = 2e-4": ("velocty = 5", "units: has neither|units.velocty: unknown key"),
    "step = 2e-4 ": ("step = 1\nvelocity = 5", "units: has both of step and velocity; give one"),
    "density = 1000": ("", "units: has neither density nor fluid; write density = 1000"),
    "500 mm^2/s": (
        "500 mm/s",
        r"fluid.viscosity: found \"500 mm/s\", of unit m/s; allowed: .*m\^2/s",
    ),
    "25 cm/s": (
        "25 foo/s",
        "boundary.0.velocity.0: .*unknown unit 'foo'; allowed: SI units with prefixes",
    ),
    "0.003 m": ("0.003 m^", r"body.0.shape.radius: .*'m\^' is not a unit"),
}


@pytest.mark.parametrize("old", WRONG)
def test_wrong_units_are_refused(old):
    new, sentence = WRONG[old]
    found = problems(CASE.replace(old.strip(), new))
    assert any(re.match(sentence, line) for line in found), found
    assert not any("0.001" in line and "found 0.001" in line for line in found)


def test_a_unit_without_units_is_refused():
    tables = tomllib.loads(CASE)
    del tables["units"]
    found = problems("", **tables)
    assert len(found) == 7
    assert all("but the case has no [units]; add [units] with cell" in line for line in found)


def test_a_number_in_quotes_may_lack_its_unit():
    wrong = CASE.replace('"500 mm^2/s"', '"5"')
    (line,) = problems(wrong)
    assert 'remove the quotes to give it in cells^2/step, or add its unit, such as "1e-6 m' in line
    *_, line = problems(wrong, units=None)
    assert line == 'fluid.viscosity: found "5"; allowed: a number; remove the quotes'


def test_the_schema_allows_a_unit_where_a_case_does():
    whole = schema()
    viscosity = whole["$defs"]["Viscosity"]["properties"]["viscosity"]
    (pattern,) = set(re.findall(r'"pattern": ("\^.*?[^\\]")', json.dumps(viscosity)))
    assert re.fullmatch(json.loads(pattern), "1e-6 m^2/s")
    assert not re.fullmatch(json.loads(pattern), "0.1*x")
    assert json.dumps(whole).count(pattern) > 10
    assert json.dumps(whole["$defs"]["Run"]).count(pattern) == 2  # steps and walltime
    assert json.dumps(whole["$defs"]["UnitsTable"]).count(pattern) == 5
    assert pattern not in json.dumps(whole["$defs"]["Precision"])


def test_a_snapshot_in_si_is_an_initial_file_in_lattice_units(tmp_path):
    (tmp_path / "a.toml").write_text(CASE)
    runner, folder = CliRunner(), tmp_path / "out"
    result = runner.invoke(cli, ["run", str(tmp_path / "a.toml"), "--output", str(folder)])
    assert result.exit_code == 0, result.output
    with h5py.File(folder / "snapshot_000000004.vtkhdf") as file:
        u, rho = (file[f"VTKHDF/CellData/{name}"][0] for name in ("u", "rho"))
    for units in (tomllib.loads(CASE)["units"], {"cell": 1, "step": 1, "density": 1}):
        tables = same_in_lattice_units() | {"units": units}
        tables["initial"] = {"file": str(folder / "snapshot_000000004.vtkhdf")}
        found_rho, found_u = parse_case(tables).fluids[0].initial.evaluate((20, 1, 24), 0, 20)
        np.testing.assert_allclose(found_u[:, 0], u[..., :2] / 5, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(found_rho[:, 0], rho / 1000, rtol=1e-6)


def test_pictures_are_in_si(tmp_path):
    pytest.importorskip("matplotlib")
    from mpilbm.view.plot import pictures, slices, time_series
    from mpilbm.view.plot.planes import cuts_of
    from mpilbm.view.plot.profiles import centre_line
    from mpilbm.view.results import open_run
    from mpilbm.view.results.snapshot import view

    (tmp_path / "a.toml").write_text(CASE)
    CliRunner().invoke(cli, ["run", str(tmp_path / "a.toml"), "--output", str(tmp_path)])
    plt = pictures.pyplot()
    with view(tmp_path / "snapshot_000000004.vtkhdf") as snapshot:
        assert snapshot.time == "step 4, 0.0008 s"
        assert snapshot.size == [24, 20]
        figure = slices.slice_figure(plt, snapshot, slices.draw_speed, cuts_of(snapshot))
        position, u = centre_line(snapshot, 1)
        raw = snapshot.u[()]
    axis, bar = figure.axes
    assert axis.get_xlabel() == "x (m)"
    assert axis.get_xlim() == (0, pytest.approx(0.024))
    assert bar.get_ylabel() == "speed |u| (m/s)"
    assert position[0] == pytest.approx(0.5e-3)
    assert np.nanmax(u) == np.nanmax(np.where(np.isnan(u), np.nan, raw[0, :, 11:13].mean(axis=1)))
    curves, names = time_series.in_si(dict(open_run(tmp_path).table("monitor")))
    assert names["kinetic_energy"] == "J/m"
    assert "kinetic_energy_J_per_m" not in curves
    assert "time_s" in curves


def test_profiles_of_statistics_have_columns_and_attributes_in_si(tmp_path):
    text = CASE + '[[output]]\nname = "statistics"\nevery = "0.4 ms"\naverage = ["x"]\n'
    (tmp_path / "a.toml").write_text(text)
    result = CliRunner().invoke(cli, ["run", str(tmp_path / "a.toml"), "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    found = rows(tmp_path / "statistics_y_000000004.csv")
    assert len(found) == 20
    for si, lattice, unit in (
        ("y (m)", "y (cells)", 1e-3),
        ("rho (kg/m^3)", "rho", 1000),
        ("u_x (m/s)", "u_x (cells/step)", 5),
        ("<u_x' u_y'> (m^2/s^2)", "<u_x' u_y'> (cells^2/step^2)", 25),
    ):
        for row in found:
            assert float(row[si]) == pytest.approx(unit * float(row[lattice]), rel=1e-12)
    with h5py.File(tmp_path / "statistics_y_000000004.h5") as file:
        units = {
            name: (file[name].attrs["unit"], file[name].attrs["lattice unit"]) for name in file
        }
    assert units["u"] == ("m/s", pytest.approx(5))
    assert units["y"] == ("m", 0.001)


def test_a_lattice_velocity_of_one_metre_per_second_is_si(tmp_path):
    from mpilbm.view.results.snapshot import view

    text = CASE.replace("step = 2e-4", "step = 1e-3").replace("500 mm^2/s", "50 mm^2/s")
    (tmp_path / "a.toml").write_text(text.replace("25 cm/s", "5 cm/s"))
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "a.toml"), "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    with view(tmp_path / "snapshot_000000004.vtkhdf") as snapshot:
        assert (snapshot.in_si, snapshot.cell, snapshot.velocity) == (True, 0.001, 1.0)
