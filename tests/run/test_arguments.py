"""What a Python program may give as a case, and how mistakes are reported."""

import h5py
import numpy as np
import pytest

import mpilbm
from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import Serial

WALLS = [
    {"name": "bounce_back", "where": ["x-", "x+", "y-"]},
    {"name": "bounce_back", "where": ["y+"], "velocity": [0.05, 0]},
]
CAVITY = {
    "lattice": {"name": "D2Q9"},
    "domain": {"size": [9, 8]},
    "fluid": {"viscosity": 0.05},
    "boundary": WALLS,
    "run": {"steps": 30},
    "backend": {"name": "cpu"},
}


def test_a_case_from_a_dict_with_numpy_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables = CAVITY | {
        "domain": {"size": tuple(np.array([9, 8]))},
        "fluid": {"viscosity": np.float64(0.05)},
    }
    case = mpilbm.load_case(tables, {"run.steps": np.int64(12), "boundary.1.velocity": (0.02, 0)})
    assert (case.run.steps, case.domain.size, case.fluids[0].viscosity) == (12, (9, 8), 0.05)
    assert case.boundaries[1].velocity == (0.02, 0)
    assert case.directory.resolve() == tmp_path
    assert mpilbm.load_case(tables, ["run.steps=13"]).run.steps == 13
    assert tables["run"] == {"steps": 30}


def test_errors_of_a_dict():
    with pytest.raises(mpilbm.CaseError, match=r"^case: fluid\.viscosity: found -1; allowed: > 0"):
        mpilbm.load_case(CAVITY, {"fluid.viscosity": -1})
    with pytest.raises(mpilbm.CaseError, match=r"override a\.\.b: a part of the path is empty"):
        mpilbm.load_case(CAVITY, {"a..b": 1})
    with pytest.raises(mpilbm.MpilbmError, match=r"gone\.toml: there is no such file"):
        mpilbm.load_case("gone.toml")
    with pytest.raises(mpilbm.CaseError, match="override 1: is not a text"):
        mpilbm.load_case(CAVITY, {1: 2})
    nested = CAVITY | {"force": CAVITY}
    nested["force"] = (nested,)  # contains itself
    with pytest.raises(mpilbm.CaseError, match="force: is nested deeper than 64"):
        mpilbm.load_case(nested)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((7,), "found an object of type int as case; give the path"),
        ((CAVITY, "run.steps=7"), "of type str as overrides; give a dict"),
        ((CAVITY, None), "found None as overrides; give a dict"),
    ],
)
def test_wrong_arguments_of_load_case(arguments, sentence):
    with pytest.raises(mpilbm.UsageError, match=f"^load_case: .*{sentence}"):
        mpilbm.load_case(*arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((CAVITY,), "found an object of type dict as case; give the result of mpilbm.load_case"),
        ((parse_case(CAVITY), "out"), "of type str as comm; .* name the other arguments"),
    ],
)
def test_wrong_arguments_of_a_simulation(arguments, sentence):
    with pytest.raises(mpilbm.UsageError, match=f"^Simulation: .*{sentence}"):
        mpilbm.Simulation(*arguments)


@pytest.mark.parametrize("directory", [3, None, b"out", ["out"]])
def test_the_folder_of_results_is_a_path(directory):
    with pytest.raises(mpilbm.UsageError, match=r"^open_run: found .*; give the path of a folder"):
        mpilbm.open_run(directory)


def test_folders_with_names_that_no_folder_can_have():
    case = parse_case(CAVITY)
    with pytest.raises(mpilbm.UsageError, match=r"^open_run: found .* contains a null character"):
        mpilbm.open_run("a\0b")
    with pytest.raises(mpilbm.CommandError, match="no such folder"):
        mpilbm.open_run("x" * 300)
    with pytest.raises(mpilbm.UsageError, match=r"directory: found .* contains a null character"):
        mpilbm.Simulation(case, Serial(), directory="a\0b")
    with pytest.raises(mpilbm.CommandError, match="File name too long"):
        mpilbm.Simulation(case, Serial(), directory="x" * 300)


def simulation(**more):
    return mpilbm.Simulation(parse_case(CAVITY | more, "cavity.toml"), Serial())


CALLS = {
    "call": (lambda sim: sim.run(2, 1, 5), "run: found an object of type int as call; give a func"),
    "save": (lambda sim: sim.save(None), "save: found None; give the path"),
    "checkpoint": (lambda sim: sim.checkpoint(3), "checkpoint: found an object of type int; give"),
    "null": (lambda sim: sim.save("a\0b"), r"save: found 'a\\x00b', which contains a null char"),
    "field": (lambda sim: sim.field(3), "field: '3' is not a field of this flow; allowed: rho, u"),
    "complex": (lambda sim: sim.set_field("rho", 1j), "values of type complex128; allowed: real"),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_of_methods(name):
    call, sentence = CALLS[name]
    with simulation() as sim:
        with pytest.raises(mpilbm.UsageError, match=sentence):
            call(sim)
        assert sim.step == 0
    with pytest.raises(mpilbm.UsageError, match="is closed"), sim:
        pass


def test_a_restart_is_a_path():
    with pytest.raises(mpilbm.UsageError, match="Simulation: restart: found an object of type int"):
        mpilbm.Simulation(parse_case(CAVITY), Serial(), restart=5)


def test_one_field_is_saved_by_its_name(tmp_path):
    with simulation() as sim:
        sim.save(tmp_path / "one.vtkhdf", "rho")
    with h5py.File(tmp_path / "one.vtkhdf") as file:
        assert "rho" in file["VTKHDF/CellData"]


def test_coupled_fluids_start_from_arrays_and_functions():
    """Whose densities are not known to the warnings of the coupling."""

    def ripples(x, y):
        return 0.3 + np.fmod(x, 1) / 9

    oil = {"label": "oil", "viscosity": 0.1, "initial": {"rho": np.full((6, 5), 0.7)}}
    water = {"label": "water", "viscosity": 0.1, "initial": {"rho": ripples}}
    case = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [5, 6], "periodic": [True, True]},
        "fluid": [oil, water],
        "coupling": {"name": "shan_chen", "G": [[0, 0.4], [0.4, 0]]},
        "run": {"steps": 1},
    }
    with mpilbm.Simulation(mpilbm.load_case(case), Serial()) as sim:
        np.testing.assert_allclose(sim.field("rho", fluid="oil"), 0.7, rtol=1e-6)
        np.testing.assert_allclose(sim.field("rho", fluid="water"), 0.3 + 0.5 / 9, rtol=1e-6)
