"""Arrays and functions in the tables of a case: what becomes of them, and what is refused."""

import re
import tomllib

import numpy as np
import pytest
from support.faces import closed
from support.slabs import Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.case.velocity_bounds import require_forces
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.tracing import NotAFormula, formulas_of
from mpilbm.outputs.core.restart import changes

X = np.linspace(0.5, 6.5, 13)
ONE_TO_ONE = [  # of x and t
    lambda x, t: 0.1 * np.sin(2 * np.pi * x / 7) - t / 100,
    lambda x, t: -x + 2**3 - (x - 1) ** 2 / 3.5e-3 + x**-2,
    lambda x, t: np.where((x > 2) & (x < 4) | (t == 3), np.exp(-x), x * (x <= 5)),
    lambda x, t: np.clip(x, 2, 3) + np.maximum(x, t) - np.minimum(4, x) + abs(x - 3),
    lambda x, t: np.sqrt(x) + x**0.5 + np.hypot(x, t) + np.tanh(x) * np.cosh(x) + np.square(t),
    lambda x, t: (1 - x / 9) ** (1 / 7) + x**1.5 + 2.0**x + np.float64(3) * x + np.int64(2) / x,
    lambda x, t: np.where(~(x > 3), 1.0, 2.0) + np.zeros_like(x) + 3 * np.ones_like(x),
    lambda x, t: np.negative(x) + (+x) + np.reciprocal(x) + np.log(x) * np.tan(t) + np.cos(x),
    lambda x, t: 2.0 * ((x > 2) + (x > 4)) + ((x > 3) + 1),  # a sum of conditions is `or`
    lambda x, t: np.where(x, 1, 2) * (x != 3) + np.logical_not(x > 2) + np.sinh(x / 9),
]


@pytest.mark.parametrize("function", ONE_TO_ONE)
def test_the_formula_of_a_function_has_its_values(function):
    (text,) = formulas_of(function, ("x", "t"), 1)
    for t in (0.0, 3.0):
        found = Formula(text, ("x", "t")).evaluate(x=X, t=t)
        np.testing.assert_allclose(found, function(X, t), rtol=1e-14, atol=1e-16)


REASONS = {
    "if": (lambda x, t: x if x > 2 else 0, "decides with `if`"),
    "float": (lambda x, t: float(t) * x, "single number"),
    "index": (lambda x, t: X[int(t)] * x, "single number"),
    "sinc": (lambda x, t: np.sinc(x), "no numpy.sinc"),
    "interp": (lambda x, t: np.interp(t, [0, 1], [0, 1]) * x, "numpy.interp"),
    "mod": (lambda x, t: x % 2, "no numpy.remainder"),
    "shape": (lambda x, t: np.zeros(x.shape), "AttributeError"),
    "array": (lambda x, t: x * np.array([1.0, 2.0]), "type ndarray"),
    "long": (lambda x, t: sum(x ** (k % 9) * 0.123456789 for k in range(40)), "characters"),
    "inf": (lambda x, t: x * np.inf, "contains inf"),
    "power": (lambda x, t: (1 - x) ** 18, "no power 18"),
}


@pytest.mark.parametrize("name", REASONS)
def test_other_functions_are_no_formulas(name):
    function, reason = REASONS[name]
    with pytest.raises(NotAFormula, match=re.escape(reason)):
        formulas_of(function, ("x", "t"), 1)


def channel(**more) -> dict:
    walls = {"name": "bounce_back", "where": ["y-", "y+"]}
    inlet = {"name": "zou_he", "where": ["x-"], "velocity": [0.0, 0.0]}
    outlet = {"name": "regularized", "where": ["x+"], "rho": 1.0}
    ends = [walls, inlet | more.pop("inlet", {}), outlet | more.pop("outlet", {})]
    return closed("D2Q9", [9, 6], ends, initial={"rho": 1, "u": [0.0, 0.0]}, **more)


def refused(match: str, tables: dict) -> None:
    with pytest.raises(CaseError, match=match) as error:
        parse_case(tables, "test.toml")
    assert len(str(error.value).splitlines()) == 1


def profile(x, y, t):
    return 0.05 * y * (6 - y) / 9 * np.cos(t / 9), 0 * y


TEXTS = ["0.05*y*(6 - y)/9*cos(t/9)", 0]


def test_a_function_is_its_formula_bit_for_bit():
    expected = Cluster(channel(inlet={"velocity": TEXTS})).start().run(7).state()
    found = Cluster(channel(inlet={"velocity": profile})).start().run(7)
    assert np.array_equal(found.state(), expected)
    kept = tomllib.loads(found.case.toml)
    assert "cos" in kept["boundary"][1]["velocity"][0]
    assert parse_case(kept).boundaries == found.case.boundaries  # the case needs no Python


def numbers(x, y, t):
    """As `profile`, for NumPy only."""
    assert x.dtype == y.dtype == np.float64
    return np.stack([profile(x, y, float(t))[0], np.zeros(x.shape)], axis=-1)


@pytest.mark.parametrize("layout", ["ab", "aa", "indirect", "moments"])
def test_a_function_that_is_no_formula_is_used_at_the_same_times(layout):
    more = {"layout": {"name": layout}}
    expected = Cluster(channel(inlet={"velocity": TEXTS}, **more)).start().run(7).state()
    for slabs in (1, 2):
        found = Cluster(channel(inlet={"velocity": numbers}, **more), slabs).start().run(7)
        np.testing.assert_allclose(found.state(), expected, rtol=0, atol=1e-15)
    half = Cluster(channel(inlet={"velocity": numbers}, **more)).start().run(3).state()
    later = Cluster(channel(inlet={"velocity": numbers}, **more), 2).restore(half, 3).run(4)
    assert np.array_equal(later.state(), found.state())


def test_a_moving_wall_has_its_velocity_at_half_steps():
    """As given by a formula, also for the neighbours in its corners."""
    lid = {"name": "bounce_back", "where": ["y+"], "velocity": ["0.01*cos(t/5)", 0.0]}
    others = [
        {"name": "bounce_back", "where": ["x-", "x+"]},
        {"name": "zou_he", "where": ["y-"], "rho": 1.0},
    ]
    expected = Cluster(closed("D2Q9", [8, 5], [lid, *others])).start().run(6).state()
    lid |= {"velocity": lambda x, y, t: (0.01 * np.cos(float(t) / 5), 0 * x)}
    found = Cluster(closed("D2Q9", [8, 5], [lid, *others]), 2).start().run(6).state()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_arrays_are_planes_of_a_face():
    y = np.arange(6) + 0.5
    formulas = channel(inlet={"velocity": ["0.01*y", 0]}, outlet={"rho": "1 + 0.001*y"})
    expected = Cluster(formulas).start().run(5).state()
    for velocity in (np.stack([0.01 * y, 0 * y], axis=-1), [0.01 * y, 0]):
        arrays = channel(inlet={"velocity": velocity}, outlet={"rho": 1 + 0.001 * y})
        found = Cluster(arrays, 2).start().run(5).state()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_initial_fields_are_arrays_or_functions():
    y, x = np.mgrid[:6, :7] + 0.5
    rho, u = 1 + 0.001 * x, np.stack([0.01 * x * y / 9, -0.01 * y / 3], axis=-1)
    texts = {"rho": "1 + 0.001*x", "u": ["0.01*x*y/9", "-0.01*y/3"]}
    expected = Cluster(box("D2Q9", [7, 6], initial=texts)).start().fields("rho", "u")
    no_formula = lambda x, y: (0.01 * x * y / 9, -0.01 * (y / 3).astype(float))  # noqa: E731
    mixed = {"rho": lambda x, y: 1 + 0.001 * x, "u": [u[..., 0], texts["u"][1]]}
    for given in ({"rho": rho, "u": u}, {"rho": rho, "u": no_formula}, mixed):
        found = Cluster(box("D2Q9", [7, 6], initial=given), 2).start().fields("rho", "u")
        np.testing.assert_allclose(found["rho"], expected["rho"], rtol=1e-12)
        np.testing.assert_allclose(found["u"], expected["u"], atol=1e-14)


def ball(x, y, z):
    return (x - 4.2) ** 2 + (y - 4.5) ** 2 + (z - 3.1) ** 2 <= 2.3**2


@pytest.mark.parametrize("wall", ["bounce_back", "interpolated"])
def test_a_function_of_points_is_the_shape(wall):
    """Cells, wall distances and therefore all bits."""
    sphere = {"name": "sphere", "centre": [4.2, 4.5, 3.1], "radius": 2.3}

    def flow(**solid):
        force = {"name": "guo", "value": [1e-4, 0, 0]}
        return box("D3Q19", [9, 8, 7], body=[solid | {"boundary": {"name": wall}}], force=force)

    expected = Cluster(flow(shape=sphere)).start().run(4).state()
    found = Cluster(flow(shape=ball), 2).start().run(4)
    np.testing.assert_allclose(found.state(), expected, rtol=0, atol=1e-14)
    if wall == "interpolated":
        return
    z, y, x = np.mgrid[:7, :8, :9] + 0.5
    for key in ("mask", "shape"):
        solid = Cluster(flow(**{key: ball(x, y, z)}), 2).start().run(4)
        assert np.array_equal(solid.state(), expected)


def body(solid, **boundary) -> dict:
    return channel(body=[{"shape": solid, "boundary": {"name": "bounce_back"} | boundary}])


def fails(x, y, t):
    return 1 / 0


MISTAKES = {
    "an exception": (
        channel(inlet={"velocity": fails}),
        r"boundary.1.velocity: the function 'fails' raised ZeroDivisionError: division by zero "
        r"\(line \d+ of test_given_objects.py, t = 0\)",
    ),
    "components": (
        channel(inlet={"velocity": lambda x, y: x}),
        r"returns an array of shape \(7,\) for points of shape \(7,\); allowed: 2 components",
    ),
    "one number": (channel(inlet={"velocity": lambda x, y: 0.1}), "returns one value; allowed: 2"),
    "three components": (
        channel(inlet={"velocity": lambda x, y: (x, x, x)}),
        "returns 3 values; allowed: 2 components",
    ),
    "rows of components": (
        channel(inlet={"velocity": lambda x, y: np.array([x, y])}),
        r"returns an array of shape \(2, 7\) for points of shape \(7,\)",
    ),
    "text": (
        channel(inlet={"velocity": lambda x, y: ("a", x)}),
        "returns <U1 values of shape",
    ),
    "arguments": (
        channel(inlet={"velocity": lambda x: x}),
        r"takes 1 arguments; allowed: \(x, y\) or \(x, y, t\)",
    ),
    "nan at a face": (
        channel(inlet={"velocity": lambda x, y: (np.log(x - x.mean()), y)}),
        "returns -?nan at x=|returns -inf at x=",
    ),
    "a plane of another shape": (
        channel(inlet={"velocity": np.zeros((9, 2))}),
        r"boundary.1.velocity: the array has shape \(9, 2\); allowed for the face x-: \(6, 2\)",
    ),
    "a plane with nan": (
        channel(inlet={"velocity": np.full((6, 2), np.nan)}),
        "the array contains values that are not finite",
    ),
    "a density": (
        channel(outlet={"rho": np.zeros(6)}),
        "boundary.2.rho: the array contains a density out of range; .*; change the array",
    ),
    "a density of a function": (
        channel(outlet={"rho": lambda x, y: np.zeros(y.shape)}),
        "boundary.2.rho: .* is 0 at t = 0; allowed: from 1e-30",
    ),
    "a plane and a formula": (
        channel(inlet={"velocity": [np.zeros(6), "y"]}),
        "has arrays and formulas or functions as components",
    ),
    "too fast": (
        channel(inlet={"velocity": lambda x, y, t: (float(t) + y, 0 * y)}),
        "boundary.1.velocity: found the speed",
    ),
    "a body that is no formula": (
        body(lambda x, y: x < 3, velocity=lambda x, y: (0.1 * x.astype(float), y)),
        "body.0.boundary.velocity: the function '<lambda>' cannot be written as a formula: "
        "AttributeError",
    ),
    "a shape of numbers": (
        body(lambda x, y: x - 3),
        "body.0.shape: the function '<lambda>' returns float64 values",
    ),
    "a mask of another shape": (body(np.zeros((9, 6), bool)), r"has shape \(9, 6\); allowed"),
    "a force of another shape": (
        channel(force={"name": "guo", "value": np.zeros((6, 9, 3))}),
        r"force.value: the array has shape \(6, 9, 3\); allowed: \(6, 9, 2\)",
    ),
    "a force file": (
        channel(force={"name": "guo", "value": "missing.npy"}),
        "force.value: 'missing.npy' is missing: there is no file",
    ),
    "a force text": (channel(force={"name": "guo", "value": "1e-6"}), "is neither a list nor"),
    "a viscosity": (
        channel(fluid={"viscosity": lambda x, y: x}),
        "fluid.viscosity: found a function; allowed for shape, mask",
    ),
    "steps": (channel(run={"steps": np.zeros((2, 2))}), "run.steps: found an array; allowed for"),
    "a reference": (
        channel(inlet={"velocity": ["<function f of boundary.1.velocity, component 0>", 0]}),
        "stands for a function of the Python program that wrote this case; write a formula",
    ),
    "a reference to a mask": (
        channel(
            body=[
                {
                    "mask": "<array (6, 9) bool 12 of body.0.mask>",
                    "boundary": {"name": "bounce_back"},
                }
            ]
        ),
        "stands for an array of the Python program",
    ),
    "a reference to a shape": (
        body({"name": "function", "function": "<function f of body.0.shape>"}),
        "body.0.shape: '<function f of body.0.shape>' is a function of a Python program",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    tables, message = MISTAKES[name]
    if "mask" in name or name == "a shape of numbers":  # found when the geometry is built
        with pytest.raises(CaseError, match=message):
            Cluster(tables)
        return
    refused(message, tables)


def infinite(x, y):
    return np.log(x - 3.5) * x.size, y


@pytest.mark.parametrize("value", [np.full((6, 9, 2), np.inf), infinite])
def test_forces_are_finite(value):
    case = parse_case(channel(force={"name": "guo", "value": value}), "test.toml")
    with pytest.raises(CaseError, match=r"force.value.0: is -?(inf|nan) in cell x=0, y=0"):
        require_forces(case, 0, 6)


def test_types_of_numpy_and_paths_are_those_of_toml(tmp_path):
    tables = channel(fluid={"viscosity": np.float32(0.125)})
    tables["domain"]["size"] = np.array([9, 6])
    tables["domain"]["periodic"] = (False, np.bool_(False))
    tables["boundary"][1]["velocity"] = np.array([0.01, 0.0])
    found = parse_case(tables, tmp_path / "case.toml")
    assert found.domain.size == (9, 6)
    assert found.fluids[0].viscosity == 0.125
    assert found.boundaries[1].velocity == (0.01, 0.0)
    assert parse_case(tomllib.loads(found.toml)).domain == found.domain


UNITS = {"cell": 0.01, "step": 0.001, "density": 1000}


def test_arrays_and_functions_are_those_of_a_box_in_metres():
    """The size in cells follows from [units], which may be given by NumPy's numbers, too."""
    more = {"units": UNITS | {"cell": np.float64(0.01)}, "inlet": {"velocity": numbers}}
    tables = channel(force={"name": "guo", "value": np.ones((6, 9, 2))}, **more)
    tables["domain"]["size"] = ("9 cm", "60 mm")
    found = parse_case(tables)
    assert found.domain.size == (9, 6)
    assert found.fluids[0].force.value[0].planes(0, 6).shape == (6, 1, 9)
    tables["domain"]["size"] = ["9 kg", "6 cm"]
    with pytest.raises(CaseError, match=r'^test.toml: domain.size.0: found "9 kg", of unit'):
        parse_case(tables, "test.toml")


@pytest.mark.parametrize("value", [None, {1}, 1j, b"text", range(3), np.longdouble(1)])
def test_values_of_other_types_are_named(value):
    fix = "remove the key" if value is None else "allowed: numbers, texts, lists"
    kind = "None" if value is None else f"an object of type {type(value).__name__}"
    refused(rf"^test.toml: run.steps: found {kind}; {fix}", channel(run={"steps": value}))


def test_a_restart_reports_changed_arrays_and_formulas():
    def of(array, function):
        force = {"name": "guo", "value": array}
        return parse_case(channel(force=force, inlet={"velocity": function}), "test.toml").toml

    one = np.zeros((6, 9, 2))
    before = of(one, lambda x, y: (0.01 * y, 0 * y))
    assert changes(before, of(one.copy(), lambda x, y: (0.01 * y, 0 * y))) == []
    lines = changes(before, of(one + 1e-9, lambda x, y: (0.02 * y, 0 * y)))
    assert [line.partition(" has changed")[0] for line in lines] == [
        "boundary.1.velocity",
        "force.value",
    ]
