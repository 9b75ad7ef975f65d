"""Each kind of quantity, its rounding, its messages, and the fluids of [units]."""

import subprocess
import sys
import tomllib
from typing import Annotated

import pytest

from mpilbm.case.case import parse_case
from mpilbm.case.quantities import Reading, in_lattice_units
from mpilbm.case.tables.units import SUBSTANCES
from mpilbm.case.typed_keys import converted
from mpilbm.core.errors import CaseError
from mpilbm.core.quantity import ANGLE, ANGULAR_VELOCITY, STEPS
from mpilbm.core.units import Units

UNITS = {"cell": 0.001, "step": 2e-4, "density": 1000}  # velocity 5 m/s, pressure 25000 Pa
REST = """
[lattice]
name = "D2Q9"
[domain]
size = [24, 20]
periodic = [true, true]
[run]
steps = 10
"""


def in_lattice(table, key, value, units=UNITS, **more):
    """A value of `table.key` in lattice units, and the problems and findings."""
    inner = {key: value} | more.pop(table, {})
    tables = {"units": units, table: [inner] if table in ("boundary", "output", "body") else inner}
    if units is None:
        del tables["units"]
    found, problems, findings = in_lattice_units(tables | more)
    part = found[table][0] if isinstance(found[table], list) else found[table]
    return part[key], problems, findings


@pytest.mark.parametrize(
    ("table", "key", "value", "wanted"),
    [
        ("domain", "size", ["4 cm", "0.02 m", 10], [40, 20, 10]),
        ("run", "steps", "1 s", 5000),
        ("run", "walltime", "2 h", 7200),
        ("run", "steady", {"every": "20 ms", "tolerance": 1e-6}, {"every": 100, "tolerance": 1e-6}),
        ("fluid", "viscosity", "1e-6 m^2/s", 2e-4),
        ("fluid", "viscosity", "1 mPa s", 2e-4),
        ("fluid", "viscosity", "1 mPa*s", 2e-4),
        ("fluid", "viscosity", "1 g/(m s)", 2e-4),
        ("fluid", "viscosity", "1 mm²/s", 2e-4),
        ("fluid", "length", "25 mm", 25),
        ("initial", "u", ["1 m/s", "0.1*x"], [0.2, "0.1*x"]),
        ("initial", "rho", "998 kg/m^3", 0.998),
        ("initial", "rho", "1.5 bar", 1 + 3 * 1.5e5 / 25000),
        ("initial", "rho", "0 Pa", 1),
        ("initial", "rho", "1 + 0.01*x", "1 + 0.01*x"),
        ("initial", "file", "2d.npy", "2d.npy"),
    ],
)
def test_values_of_tables(table, key, value, wanted):
    found, problems, findings = in_lattice(table, key, value)
    assert (problems, findings) == ([], [])
    assert found == wanted if not isinstance(wanted, float) else found == pytest.approx(wanted)
    if key in ("size", "steps"):
        assert all(type(each) is int for each in (found if key == "size" else [found]))


@pytest.mark.parametrize(
    ("table", "name", "key", "value", "wanted"),
    [
        ("force", "guo", "value", ["9.81 m/s^2", 0], [9.81 * 4e-8 / 1e-3, 0]),
        ("force", "guo", "value", ["9810 N/m^3", 0], [9.81 * 4e-8 / 1e-3, 0]),
        ("force", "guo", "value", ["9810 Pa/m", 0], [9.81 * 4e-8 / 1e-3, 0]),
        ("boundary", "pressure_jump", "rho_jump", "250 Pa", 0.03),
        ("boundary", "bounce_back", "velocity", ["1 m/s", "360 km/h"], [0.2, 20]),
        ("boundary", "zou_he", "rho", "25 Pa", 1.003),
        ("boundary", "bounce_back", "wetting", {"angle": "60 deg"}, {"angle": 60}),
        ("output", "body_forces", "area", "2 cm^2", 200),
        ("output", "body_forces", "every", "1 ms", 5),
        ("output", "statistics", "begin", "0.1 s", 500),
    ],
)
def test_values_of_registered_classes(table, name, key, value, wanted):
    found, problems, findings = in_lattice(table, key, value, **{table: {"name": name}})
    assert (problems, findings) == ([], [])
    assert found == pytest.approx(wanted)


def test_lengths_of_shapes_within_shapes():
    ball = {"name": "sphere", "centre": ["1 cm", 2], "radius": "5 mm"}
    shape = {"name": "union", "of": [ball, {"name": "box", "lower": [0, "-1 mm"], "upper": [1, 1]}]}
    found, problems, _ = in_lattice("body", "shape", shape)
    assert problems == []
    assert found["of"][0] == {"name": "sphere", "centre": [pytest.approx(10), 2], "radius": 5}
    assert found["of"][1]["lower"] == [0, pytest.approx(-1)]


def test_angles_and_angular_velocities():
    reading = Reading(Units(1e-3, 2e-4, 1000), 1 / 3)
    assert converted("0.5 rad", reading.convert, Annotated[float, ANGLE], "a") == pytest.approx(
        28.6478897565
    )
    assert converted(
        "300 rpm", reading.convert, Annotated[float, ANGULAR_VELOCITY], "a"
    ) == pytest.approx(300 / 60 * 2 * 3.14159265358979 * 2e-4)


@pytest.mark.parametrize(
    ("text", "wanted", "severity"),
    [
        ("10.1 ms", 50, ["note"]),  # 50.5, and the even number is the nearest: 0.99 %
        ("10 ms", 50, []),
        ("9.9 ms", 50, ["warning"]),  # 49.5: 1.01 %
        ("0.25 ms", 1, ["warning"]),
        ("0 s", 0, []),
    ],
)
def test_numbers_of_steps_are_rounded(text, wanted, severity):
    reading = Reading(Units(1e-3, 2e-4, 1000), 1 / 3)
    assert converted(text, reading.convert, Annotated[int, STEPS], "run.steps") == wanted
    assert reading.problems == []
    assert [found.severity for found in reading.findings] == severity
    assert all("and is rounded to" in found.message for found in reading.findings)


def test_rounded_numbers_are_reported_with_the_case():
    tables = tomllib.loads(REST) | {"units": UNITS, "fluid": {"viscosity": 0.1}}
    tables["domain"]["size"] = ["24.4 mm", 20]
    (found,) = parse_case(tables).of_keys
    assert found.line.startswith(
        'warning: domain.size.0: found "24.4 mm", which is 24.4 and is rounded to 24, a change of '
        "0.016; choose [units]"
    )


WRONG = [
    ("run", "steps", "0.1 ms", ", which is 0.5 in lattice units; allowed: 1 or more; change it or"),
    ("run", "steps", "5 m", ', of unit m; allowed: the unit of "1.5 s", or a number in steps'),
    ("run", "walltime", "2 fortnighs", ": unknown unit 'fortnighs'; allowed: SI units"),
    ("fluid", "viscosity", "5 N m", ", of unit m^2 kg/s^2; allowed: the unit of"),
    ("fluid", "viscosity", "5 A", ": 'A' is not a unit of length, time, mass and temperature"),
    ("fluid", "viscosity", "5 m^", ": 'm^' is not a unit; write it as"),
    ("fluid", "viscosity", "5 m^9^9^9^9/s", ": 'm^9^9^9^9/s' is not a unit"),
    ("fluid", "viscosity", "5 (m/s", None),
    ("domain", "size", ["4 kg"], ", of unit kg; allowed: the unit of"),
]


@pytest.mark.parametrize(("table", "key", "value", "sentence"), WRONG)
def test_wrong_quantities(table, key, value, sentence):
    _, problems, _ = in_lattice(table, key, value)
    if sentence is None:  # does not begin as a unit: the type of the key refuses it
        assert problems == []
        return
    (line,) = problems
    assert line.startswith(f"{table}.{key}")
    assert sentence in line, line


def test_a_quantity_needs_units_except_for_clocks_and_angles():
    assert in_lattice("run", "walltime", "2 h", None)[:2] == (7200, [])
    _, (line,), _ = in_lattice("run", "steps", "2 s", None)
    assert 'run.steps: found "2 s", but the case has no [units]; add [units] with cell' in line


def test_a_pressure_is_refused_for_coupled_fluids():
    _, (line,), _ = in_lattice("initial", "rho", "2 Pa", coupling={"name": "free_energy"})
    assert "a pressure; allowed with [coupling]: a density" in line


def case_with(units, fluid=None):
    tables = tomllib.loads(REST) | {"units": units}
    return parse_case(tables | ({"fluid": fluid} if fluid is not None else {}))


@pytest.mark.parametrize(
    ("fluid", "temperature", "density", "viscosity"),
    [  # NIST Chemistry WebBook for water at 101325 Pa, U.S. Standard Atmosphere for air at 15 °C
        ("water", 0.01, 999.84, 1.7914e-3),
        ("water", 20, 998.21, 1.0016e-3),
        ("water", 60, 983.20, 4.660e-4),
        ("water", 99.9, 958.44, 2.820e-4),
        ("air", 15, 1.2250, 1.7894e-5),
    ],
)
def test_water_and_air(fluid, temperature, density, viscosity):
    found = SUBSTANCES[fluid]
    assert found.density(temperature) == pytest.approx(density, rel=1e-4)
    assert found.viscosity(temperature) == pytest.approx(viscosity, rel=2e-3)
    units = {"cell": "1 mm", "velocity": "5 m/s", "fluid": fluid}
    units["temperature"] = f"{temperature} degC"
    case = case_with(units)
    assert case.units.density == pytest.approx(density, rel=1e-4)
    assert case.fluids[0].viscosity == pytest.approx(viscosity / density / 5e-3, rel=2e-3)
    assert case_with(units, {"viscosity": "1 mm^2/s"}).fluids[0].viscosity == pytest.approx(2e-4)


@pytest.mark.parametrize(
    ("fluid", "temperature", "sound"),
    [  # NIST Chemistry WebBook for water, U.S. Standard Atmosphere for air
        ("water", 0.01, 1402.4),
        ("water", 20, 1482.3),
        ("water", 60, 1551.0),
        ("water", 99.9, 1543.2),
        ("air", 15, 340.29),
    ],
)
def test_the_speed_of_sound(fluid, temperature, sound):
    units = {"cell": "1 mm", "step": "1 ms", "fluid": fluid, "temperature": f"{temperature} degC"}
    assert case_with(units).sound == pytest.approx(sound, rel=1e-4)
    other = {"cell": "1 mm", "step": "1 ms", "density": 998}
    assert case_with(other, {"viscosity": 0.1}).sound is None


def test_temperatures_may_be_in_kelvin_and_20_degrees_are_usual():
    units = {"cell": 1e-3, "velocity": 5, "fluid": "water"}
    cold, usual = (case_with(units | t) for t in ({"temperature": "293.15 K"}, {}))
    assert cold.units.density == pytest.approx(usual.units.density, rel=1e-12)
    assert case_with(units | {"density": 900}).units.density == 900


@pytest.mark.parametrize(
    ("units", "sentence"),
    [
        ({"fluid": "oil"}, "units.fluid: found \"oil\"; allowed: 'water' or 'air'"),
        (
            {"fluid": "water", "temperature": "120 degC"},
            "units: has water at temperature = 120 degC; allowed: 0 to 100 degC; change it",
        ),
        ({"density": 1, "temperature": 20}, "units: has temperature but no fluid; add fluid"),
        ({"density": "3 m"}, 'units.density: found "3 m", of unit m; allowed: the unit of'),
        ({}, "units: has neither density nor fluid; write density = 1000"),
    ],
)
def test_wrong_fluids(units, sentence):
    with pytest.raises(CaseError) as refused:
        case_with({"cell": 1e-3, "velocity": 5} | units, {"viscosity": 0.1})
    assert any(
        line.removeprefix("case.toml: ").startswith(sentence)
        for line in str(refused.value).splitlines()
    ), refused.value


def test_pint_is_imported_only_for_texts_with_units():
    code = (
        "import sys, tomllib; from mpilbm.case.case import parse_case\n"
        f"tables = tomllib.loads('''{REST}''') | {{'fluid': {{'viscosity': 0.1}}}}\n"
        "parse_case(tables); print('pint' in sys.modules)\n"
        f"parse_case(tables | {{'units': {UNITS}}}); print('pint' in sys.modules)\n"
        f"tables['run']['steps'] = '1 s'\n"
        f"parse_case(tables | {{'units': {UNITS}}}); print('pint' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"fluid": "honey"}, "units.fluid: found \"honey\"; allowed: 'water' or 'air'"),
        ({"cell": "1 kg"}, 'units.cell: found "1 kg", of unit kg'),
        ({"step": "1 ms"}, "units: has both of step and velocity"),
        ({"temperature": "120 degC"}, "units: has water at temperature = 120 degC"),
    ],
)
def test_a_mistake_in_units_is_the_only_problem_reported(change, problem):
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": ["20 mm", "8 mm"], "periodic": [True, True]},
        "units": {"cell": "0.5 mm", "velocity": "2 m/s", "fluid": "water"} | change,
        "run": {"steps": "20 ms"},
    }
    with pytest.raises(CaseError) as found:
        parse_case(tables)
    assert len(found.value.problems) == 1
    assert problem in str(found.value)


def test_other_units_are_checked_although_those_of_the_case_are_wrong():
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": ["20 mm", "8 kg"]},
        "units": {"cell": "0.5 mm"},
        "run": {"steps": 1},
    }
    with pytest.raises(CaseError, match=r'domain.size.1: found "8 kg", of unit kg'):
        parse_case(tables)
