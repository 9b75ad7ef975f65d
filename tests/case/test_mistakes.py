"""Mistakes in a case file, one of each kind: a message with the place and what is allowed."""

import tracemalloc

import h5py
import jsonschema
import numpy as np
import pytest
from support.case_tables import OIL, PLANE, WATER, problems, tables
from support.commands import call, refused
from support.findings import warnings_of
from support.fuzz_cases import bases

from mpilbm import codegen
from mpilbm.case import velocity_bounds
from mpilbm.case.case import DEPTH, load_case, parse_case, schema
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas import parser
from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.run.preflight.plan import plan

pytestmark = pytest.mark.usefixtures("stand_ins")

PLACE = {"at": [1, 1, 1], "scale": 1}
UNITS = {"cell": 1e-3, "step": 1e-4, "density": 1000}
PLUGIN = """
from mpilbm.physics.collisions import Collision
from mpilbm.core.registry import register


@register("collisions", "mine")
class Mine(Collision):
    '''A collision of a user's own.'''

    def rates(self, nu, lattice):
        return {"omega": 1.0}
"""
RELAX = "\n    def relax(self, lattice, d, omega):\n        return [omega * value for value in d]\n"


# --------------------------------------------------------------------------------------- numbers


def test_a_reynolds_number_that_gives_no_finite_viscosity():
    (found,) = problems(fluid={"reynolds": 1e-320, "length": 8, "velocity": 0.1})
    assert found.startswith("fluid: velocity * length / reynolds is inf; allowed: a finite")


@pytest.mark.parametrize("value", [1e-300, 1e300, 1e-320])
@pytest.mark.parametrize("key", ["cell", "step", "velocity", "density"])
def test_units_of_which_powers_overflow(key, value):
    units = UNITS | {key: value}
    if key == "velocity":
        del units["step"]
    (found,) = problems(units=units, fluid={"viscosity": "1 mm^2/s"})
    allowed = ">= 1e-30" if value < 1 else "<= 1e+30"
    assert found.startswith(f"units.{key}: found {value}; allowed: {allowed}")


@pytest.mark.parametrize("text", ["1e308 m^2/s", "1e400 m^2/s", "9" * 400 + " m^2/s"])
def test_a_quantity_that_is_not_finite_in_lattice_units(text):
    (found,) = problems(units=UNITS, fluid={"viscosity": text})
    assert found.startswith("fluid.viscosity: found ")
    assert "inf in lattice units; allowed: finite numbers" in found


@pytest.mark.parametrize("rho", [1e308, 1e-320, 1e16])
def test_densities_that_kernels_cannot_compute_with(rho):
    fluids = [WATER | {"initial": {"rho": rho}}, OIL]
    found = problems(fluid=fluids, coupling={"name": "shan_chen", "G": [[0, 2.4], [2.4, 0]]})
    assert f"fluid.water.initial.rho: found {rho:g}; allowed: from 1e-30 to 1e+06" in found[0]


@pytest.mark.parametrize("speed", [1e200, 0.6])
def test_a_random_velocity_above_the_speed_of_sound(speed):
    (found,) = problems(
        domain={"size": [32] * 3, "periodic": [True] * 3},
        boundary=[],
        initial={"random": {"speed": speed}},
    )
    assert found.startswith(f"initial.random.speed: found {speed:g}; allowed: below the speed of")


@pytest.mark.parametrize("prandtl", [1e300, 1e308])
def test_a_diffusivity_that_rounds_to_zero(prandtl):
    scalar = {"label": "T", "prandtl": prandtl, "collision": {"name": "trt"}}
    found = problems(fluid={"viscosity": 1e-300}, scalar=[scalar])
    assert any(
        line.startswith("scalar.T.diffusivity: found 0, tau = ") and "tau > 1/2; raise" in line
        for line in found
    )


def test_a_material_of_which_the_conductivity_rounds_to_zero():
    scalar = {"label": "T", "diffusivity": 0.1, "collision": {"name": "trt"}}
    ball = tables()["body"][0]
    ball["scalar"] = {"T": {"conjugate": {"diffusivity": 1e-200, "capacity": 1e-200}}}
    found = problems(body=[ball], scalar=[scalar])
    assert any(
        line.startswith("body.ball.scalar.T.conjugate.diffusivity: found 1e-200, tau = ")
        for line in found
    )


def test_a_potential_that_is_not_finite_is_a_warning():
    fluids = [WATER, OIL | {"initial": {"rho": 1}}]
    coupling = {"name": "shan_chen", "G": [[0, 2.4], [2.4, 0]], "psi": "1/(rho - 1)"}
    walls = [{"name": "bounce_back", "where": ["z-", "z+"]}]
    found = warnings_of(
        parse_case(tables(fluid=fluids, coupling=coupling, boundary=walls, output=[]))
    )
    assert any("psi: found '1/(rho - 1)', which is not finite at some" in line for line in found)


# --------------------------------------------------------------------------------------- nesting


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [DEPTH, 250])
def test_deep_nesting_is_refused_before_anything_recurses(case, depth):
    output = refused("check", case, "--set", f"initial.u={nested(depth)}")
    assert f"initial: is nested deeper than {DEPTH} tables or lists" in output
    with open(case, "a") as file:
        file.write(f"[initial]\nu = {nested(depth)}\n")
    assert "is nested deeper than" in refused("check", case)


def test_dotted_keys_nest_too(case):
    with open(case, "a") as file:
        file.write(f"{'a.' * 500}b = 1\n")
    assert "is nested deeper than" in refused("check", case)


def test_what_is_nested_less_deeply_is_read(case):
    output = refused("check", case, "--set", f"initial.u={nested(DEPTH - 2)}")
    assert "initial.u.0: found [" in output


# ------------------------------------------------------------------------------- time and memory


def wave(size, force="1e-6*sin(x)*y"):
    fields = {"u": ["0.01*sin(y)", 0], "rho": "1 + 0.001*cos(x*y)"}
    return parse_case(
        tables(
            PLANE,
            domain={"size": size, "periodic": [True, True]},
            boundary=[],
            body=[],
            output=[],
            force={"name": "guo", "value": [force, 0]},
            initial=fields,
        )
    )


def test_a_box_that_does_not_fit_allocates_nothing():
    """Formulas of forces are evaluated in the cells only if these fit the memory."""
    tracemalloc.start()
    try:
        report = plan(wave([2147483647, 8]), 1, 1.0)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()
    assert not report.runs


def test_a_force_that_is_not_finite_in_a_cell_is_a_problem_of_the_plan():
    with pytest.raises(CaseError, match=r"force.value.0: is not finite in cell y=20 .*at t = 0"):
        plan(wave([8, 40], "1e-6/(y - 20.5)"))


def test_a_formula_is_parsed_once_and_evaluated_in_blocks(monkeypatch):
    read, evaluated = [], []
    parse, evaluate = parser._read, Formula.evaluate

    def reading(*of):
        read.append(of)
        return parse(*of)

    def evaluating(self, **of):
        evaluated.append(self)
        return evaluate(self, **of)

    monkeypatch.setattr(codegen, "generate", lambda case: None)
    monkeypatch.setattr(parser, "_read", reading)
    monkeypatch.setattr(Formula, "evaluate", evaluating)
    parser._checked.cache_clear()
    assert plan(wave([8, 2000])).runs
    assert len(read) == len(set(read)) == 4  # one of them twice, in 2D and as in 3D
    assert len(evaluated) < 50


def test_an_invalid_run_table_costs_no_evaluation_in_time(monkeypatch):
    """And nothing is said of a time at which the run has long ended."""
    times, sampled = [], velocity_bounds.sampled

    def reaching(*of, **more):
        times.append(sampled(*of, **more)[0])
        return sampled(*of, **more)

    monkeypatch.setattr(velocity_bounds, "sampled", reaching)
    lid = {"name": "bounce_back", "where": ["z+"], "velocity": ["0.001*t", 0, 0]}
    walls = {"name": "bounce_back", "where": ["z-"]}
    assert problems(run={}, boundary=[lid, walls]) == ["run.steps: missing; write steps = 1000"]
    assert {t.size for t in times} == {1}


# ----------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("strings", "has type object in 'strings'; allowed: "),
        ("empty", "has no values in 'empty'"),
        ("huge", "has shape "),
    ],
)
def test_a_dataset_that_holds_no_numbers(tmp_path, name, words):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["strings"] = np.array(["a", "b"], h5py.string_dtype())
        file["empty"] = h5py.Empty(h5py.string_dtype())
        file.create_dataset("huge", (2**40, 2), "f8", chunks=(1024, 2))
    wall = {"name": "bounce_back", "where": ["z-", "z+"], "velocity": f"m.h5:{name}"}
    with pytest.raises(CaseError, match=f"boundary.0.velocity: 'm.h5:{name}' .*{words}"):
        parse_case(tables(boundary=[wall]), tmp_path / "a.toml")


@pytest.mark.parametrize("key", ["mask", "velocity", "file"])
def test_a_file_name_that_no_file_system_takes(key):
    name = "n" * 300 + (".vtkhdf" if key == "file" else ".npy")
    body = {"label": "a", "mask": name, "boundary": {"name": "bounce_back"}}
    wall = {"name": "bounce_back", "where": ["z-", "z+"], "velocity": name}
    more = {"mask": {"body": [body]}, "velocity": {"boundary": [wall]}}
    more = more.get(key, {"initial": {"file": name}})
    with pytest.raises(CaseError, match=r"is missing: there is no|File name too long"):
        plan(parse_case(tables(output=[], **more)), 1, 1.0)


@pytest.mark.filterwarnings("error")
def test_a_speed_whose_square_overflows(tmp_path):
    (tmp_path / "u.csv").write_text("0,0,0,0\n9,1e200,0,0\n")
    wall = {"name": "bounce_back", "where": ["z-", "z+"], "velocity": "u.csv"}
    with pytest.raises(CaseError, match=r"boundary.0.velocity: found the speed inf at t = 1"):
        parse_case(tables(boundary=[wall]), tmp_path / "a.toml")
    fast = parse_case(tables(initial={"u": ["1e200*x", 0, 0]}))
    with pytest.raises(CaseError, match=r"initial.u: inf in cell .* is above the speed"):
        plan(fast, 1, 1.0)


# -------------------------------------------------------------------------------------- plug-ins


@pytest.fixture
def plugin(case, tmp_path, stand_ins):
    """A file with a collision that lacks `relax`."""
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    return path


@pytest.mark.parametrize("verb", ["check", "source", "run"])
def test_a_plugin_without_relax(case, plugin, verb):
    output = refused(verb, case, "--plugin", plugin, "--set", "collision.name=mine")
    assert "mine.py: Mine.relax is not defined; define it; --debug shows the traceback" in output


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1.0", "one", "line 11: NameError: name 'one' is not defined"),
        ("class Mine", "clas Mine", "line 7: SyntaxError"),
        ('"collisions"', "kinds", "line 6: NameError"),
        ("mine", "bgk", "line 6: ValueError: two classes of collisions are called 'bgk'"),
        ("import register", "import registr", "line 3: ImportError"),
    ],
)
def test_a_mistake_in_a_plugin_is_a_line_of_its_file(case, plugin, old, new, words):
    plugin.write_text(PLUGIN.replace(old, new))
    arguments = "check", case, "--plugin", plugin, "--set", "collision.name=mine"
    assert f"mine.py, {words}" in refused(*arguments)
    assert "Traceback" in call(*arguments, "--debug").output


@pytest.mark.parametrize("before", [True, False])
def test_options_of_the_group_may_follow_the_verb(case, plugin, before):
    plugin.write_text(PLUGIN + RELAX)
    option, rest = ("--plugin", plugin), ("check", case, "--set", "collision.name=mine")
    result = call(*option, *rest) if before else call(*rest, *option)
    assert result.exit_code == 0, result.output
    assert "it would run" in result.output


def test_debug_may_follow_the_verb(case):
    assert "Traceback" in call("check", "nowhere.toml", "--debug").output


# -------------------------------------------------------------------------------------- formulas


FORMULAS = {
    "0.1*sin(2x)": "invalid decimal literal (at '2x)', character 9)",
    "sin(x": "'(' was never closed (at '(x', character 4)",
    "x +": "invalid syntax (at the end)",
    "x; y": "invalid syntax (at '; y', character 2)",
    "  x ? y": "invalid syntax (at '? y', character 3)",
    "(x\n+ )": "invalid syntax (at ')', character 3 of line 2)",
    "": "invalid syntax (at the end)",
}


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_says_where_it_is_wrong_and_what_is_allowed(text):
    with pytest.raises(FormulaError) as error:
        Formula(text, ("x", "y", "t"))
    words = f"{text.strip()!r} is not a formula: {FORMULAS[text]}; allowed: numbers, x, y, t, + - *"
    assert str(error.value).startswith(words)
    assert str(error.value).endswith("comparisons and " + ", ".join(parser.FUNCTIONS))


# ---------------------------------------------------------------------------------------- schema


@pytest.fixture(scope="module")
def validator():
    found = schema()
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("number", range(len(bases())))
def test_right_cases_fit_the_schema(validator, number):
    """The shipped cases, the template of `mpilbm new`, and some of every kind."""
    validator.validate(bases()[number])


FORMS = {
    "initial": [{"u": [u, 0]} for u in ("0.1 m/s", 0, "0.01*sin(x)", 1, 0.1)]
    + [{"rho": rho} for rho in ("998 kg/m^3", "1 + x", 1, 1.5)],
    "fluid": [
        {"viscosity": "1e-6m^2/s"},
        {"viscosity": 1},
        {"reynolds": 1, "length": "2 cm", "velocity": "1.5 m/s"},
    ],
    "force": [{"name": "guo", "value": ["9810 N/m^3", "x"]}],
    "boundary": [
        [{"name": "zou_he", "where": ["x-"], "velocity": velocity}]
        for velocity in (["0.1 m/s", 0], ["x", "1 m/s"], "u.csv")
    ],
}


@pytest.mark.parametrize("key", FORMS)
def test_every_form_of_a_number_fits_the_schema(validator, key):
    right = next(each for each in bases() if each["lattice"]["name"] == "D2Q9") | {"units": UNITS}
    for form in FORMS[key]:
        validator.validate(right | {key: form})


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial": {"u": [True, 0]}},
        {"fluid": {"viscosity": True}},
        {"titel": ""},
    ],
)
def test_wrong_cases_do_not_fit_the_schema(validator, wrong):
    assert not validator.is_valid(bases()[0] | wrong)


# --------------------------------------------------------------------------- paths and wrong types


@pytest.mark.parametrize("output", [5, "permeability", {"name": "permeability"}, True])
def test_outputs_of_a_wrong_type_with_steady_of(output):
    run = {"steps": 100, "steady": {"every": 10, "tolerance": 1e-6, "of": "permeability"}}
    found = problems(run=run, output=output)
    assert any(line.startswith("output: found ") and "allowed: a list" in line for line in found)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
@pytest.mark.parametrize(
    ("where", "changes"),
    [
        ("force.value", lambda name: {"force": {"name": "guo", "value": f"{name}.npy"}}),
        ("body.ball.shape", lambda name: _ball(name="spheres", file=f"{name}.csv")),
        ("body.ball.shape", lambda name: _ball(name="mesh", file=f"{name}.stl", **PLACE)),
        ("body.ball.shape", lambda name: _ball(name="voxels", file=f"{name}.tif")),
        (
            "scalar.T.initial.value",
            lambda name: {
                "scalar": [{"label": "T", "diffusivity": 0.1, "initial": {"value": f"{name}.npy"}}]
            },
        ),
    ],
)
def test_names_that_no_file_can_have(name, where, changes):
    (found,) = problems(**changes(name))
    assert found.startswith(f"{where}: ")
    assert "is missing" in found


def _ball(**shape):
    return {"body": [tables()["body"][0] | {"shape": shape}]}


def test_a_case_file_with_a_name_that_no_file_can_have():
    for name, sentence in (("a\0b", "contains a null character"), ("x" * 300, "name too long")):
        with pytest.raises(CaseError, match=sentence):
            load_case(name)
