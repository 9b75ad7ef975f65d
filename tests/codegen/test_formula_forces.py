"""Forces as formulas of x, y, z and t: where and when they act, and what kernels are made of."""

import json
import re

import numpy as np
import pytest
from support.case_tables import PLANE, changed, tables
from support.emulated_device import EmulatedDevice, command
from support.settings import SETTINGS
from support.slabs import PRECISIONS, Cluster, box
from sympy import Symbol, lambdify

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.case.velocity_bounds import require_forces
from mpilbm.codegen import programs
from mpilbm.codegen.printer import c_text
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.parser import FUNCTIONS, Formula
from mpilbm.core.formulas.values import CellValue
from mpilbm.core.registry import find, make, names

pytestmark = pytest.mark.usefixtures("stand_ins")

FORCES, LAYOUTS = names("forcing"), names("layouts")
BOX = {"nx": 5, "ny": 4, "nz": 13, "t": 3}
CELL = {"x": 2.5, "y": 1.5, "z": 7.5}
PARTED = {
    "1e-6": ((), 1),
    "1e-6*sin(0.1*t)*nx": ((), 1),
    "0.1*sin(2*pi*x/nx - 0.01*t)": (("x",), 4),
    "x/nx + y/nx - 3*z**2/nx": (("x", "y", "z"), 2),
    "where(t < 5, x, 2*x)": (("x",), 2),
    "where(z < nz/2, 1, -1)": (("z",), 3),
    "max(x, y, 3) + abs(x - 4)*tanh(y)": (("x", "y"), 2),
}


@pytest.mark.parametrize("text", PARTED)
def test_parts_make_up_the_formula(text):
    """What is the same in all cells is a number, each once."""
    value = CellValue("f", text, 3)
    coordinates, count = PARTED[text]
    numbers = value.evaluate((5, 4, 13), 3)
    assert (value.coordinates, len(numbers)) == (coordinates, count)
    symbols = {name: Symbol(name, real=True) for name in (*coordinates, *numbers)}
    function = lambdify(list(symbols.values()), value.expression(symbols))
    found = function(*((CELL | numbers)[name] for name in symbols))
    assert found == pytest.approx(float(Formula(text).evaluate(**BOX, **CELL)), rel=1e-14)
    other = value.evaluate((5, 4, 13), 4)
    assert {name for name in numbers if other[name] != numbers[name]} <= value.timed
    assert bool(value.timed) == ("t" in Formula(text).names)


@pytest.mark.parametrize(
    "quotient", ["((2*x - nx)/nx)", "where(x < nx/2, (nx - 2*x)/nx, (2*x - nx)/nx)"]
)
def test_powers_of_quotients_do_not_overflow(quotient):
    """384^16 has no float32; what is near 1 has powers near 1."""
    formula = Formula(f"{quotient}**16")
    given = {"x": np.arange(384, dtype=np.float32) + 0.5, "nx": np.full(384, 384, np.float32)}
    symbols = [Symbol(name, real=True) for name in given]
    found = lambdify(symbols, formula.symbolic(), "numpy")(*given.values())
    np.testing.assert_allclose(found, formula.evaluate(**given), rtol=1e-4)


def test_a_power_of_a_power_is_one():
    """Each small power is written as a product, of which the next would have six."""
    once, often = "(x/nx)**6", "(((x/nx)**6)**6)**6"
    assert len(c_text(Formula(often).symbolic())) < len(c_text(Formula(once).symbolic()))


def test_the_plane_in_which_a_formula_is_infinite_is_reported():
    value = CellValue("force", "1/(z - 5.5)", 3)
    assert "in cell z=5 " in value.problem((8, 8, 8), "float64", 3, 6)
    assert not value.problem((8, 8, 8), "float64", 6, 8)


@pytest.mark.parametrize("where", ["force.value.0", "boundary.0.velocity"])
def test_an_overflow_in_float32_is_reported_before_the_run(where):
    text = "1e-5*x**16/nx**16"
    lid = [text, 0] if "velocity" in where else [0, 0]
    sides = {"name": "bounce_back", "where": ["x-", "x+", "y-"]}
    tables = box(
        "D2Q9", size=[400, 3], precision=PRECISIONS["single"],
        domain={"size": [400, 3], "periodic": [False, False]},
        boundary=[{"name": "bounce_back", "where": ["y+"], "velocity": lid}, sides],
    )  # fmt: skip
    if "force" in where:
        tables |= {"force": {"name": "guo", "value": [text, 0]}}
    with pytest.raises(CaseError, match=f"{where}.*float32, .*3.4e38.*compute = 'float64'"):
        require_forces(parse_case(tables, "test.toml"), 0, 3)
    require_forces(parse_case(tables | {"precision": PRECISIONS["double"]}, "test.toml"), 0, 3)


def program(*value):
    case = parse_case(box("D2Q9", force={"name": "guo", "value": list(value)}), "test.toml")
    return programs.build(case), json.dumps(codegen.structure(case))


def test_text_holds_the_form_of_a_formula_and_none_of_its_numbers():
    first = program("1e-5*sin(2*pi*y/ny)", 0)
    assert program("0.3*sin(5*t*y/7)", 2) == first
    assert program("2e-5*sin(2*pi*y/ny)", 1e-6) == first
    assert program("1e-5*cos(2*pi*y/ny)", 0) != first
    assert program("1e-5*sin(t)", 0) == program(1e-5, 0)


def kolmogorov(layout="ab", N=32, nu=0.05, F=1e-6):
    """A force sin(2 pi y/N) along x on a fluid at rest, walls nowhere."""
    return {
        "lattice": {"name": "D2Q9"},
        "collision": {"name": "trt"},
        "layout": {"name": layout},
        "domain": {"size": [4, N], "periodic": [True, True]},
        "precision": PRECISIONS["double"],
        "fluid": {"viscosity": nu},
        "force": {"name": "guo", "value": [f"{F}*sin(2*pi*y/ny)", 0]},
        "run": {"steps": 1},
    }


@pytest.mark.parametrize("slabs", [1, 3])
def test_kolmogorov_flow(slabs):
    """u = F / (nu k^2) (1 - exp(-nu k^2 t)) sin k y; within 1 % halfway and in the end."""
    N, nu, F = 32, 0.05, 1e-6
    k, cluster = 2 * np.pi / N, Cluster(kolmogorov(), slabs).start()
    wave = np.sin(k * (np.arange(N) + 0.5))[:, None]
    for steps in (400, 4600):
        cluster.run(steps)
        growth = 1 - np.exp(-nu * k**2 * cluster.solvers[0].steps)
        exact = F / (nu * k**2) * growth * wave
        u = cluster.fields("u")["u"][:, 0]
        assert np.abs(u[..., 0] - exact).max() < 0.01 * exact.max()
        assert np.abs(u[..., 1]).max() < 1e-12


EVERYTHING = [
    "1e-4*(sin(x) + cos(y) - tan(x/9)*exp(-y/ny) + log(x + 1) + x**2*y/nx)",
    "1e-4*(sqrt(y)/abs(x - 9) + min(x, y, 3)*max(x, 2) + tanh(x)**7 - where(x < y, x**-2, t + 1)"
    " + where(1 <= x < 3, x*y, y) + where(x == y, 2, 1) + where(x*0 != t, 5, 6))",
]


@pytest.mark.parametrize("device", [None, EmulatedDevice], ids=["C", "CUDA"])
@pytest.mark.parametrize("layout", ["ab", "indirect"])
def test_kernels_know_every_function(layout, device):
    """Populations that left cells at rest contain half of the force: F = 2 sum_i c_i f_i."""
    assert all(f"{name}(" in "".join(EVERYTHING) for name in FUNCTIONS)
    if device and not command():
        pytest.skip("no C++ compiler")
    case = box("D2Q9", force={"name": "guo", "value": EVERYTHING}, precision=PRECISIONS["double"])
    case |= {"initial": {"u": [0, 0]}, "layout": {"name": layout}}
    state = Cluster(case, 2, device).start().state()[:, :, 0]
    found = 2 * np.einsum("pix,ia->pxa", state, np.array(make("lattices", "D2Q9").c))
    y, x = np.meshgrid(np.arange(13) + 0.5, np.arange(4) + 0.5, indexing="ij")
    for k, text in enumerate(EVERYTHING):
        expected = Formula(text).evaluate(x=x, y=y, nx=4, ny=13, t=0)
        assert found[..., k] == pytest.approx(np.broadcast_to(expected, y.shape), rel=1e-11)


@pytest.mark.parametrize("device", [None, EmulatedDevice], ids=["C", "CUDA"])
@pytest.mark.parametrize("layout", ["ab", "esopull"])
def test_staggered_rows_know_where_they_are(layout, device):
    if device and not command():
        pytest.skip("no C++ compiler")
    value = ["1e-4*x", "1e-4*y*x", "1e-4*z"]
    case = box("D3Q13", [6, 4, 6], force={"name": "guo", "value": value})
    case |= {"initial": {"u": [0, 0, 0]}, "layout": {"name": layout}, "collision": {"name": "mrt"}}
    whole, cut = (Cluster(case, slabs, device).start() for slabs in (1, 3))
    state, lattice = whole.state(), make("lattices", "D3Q13")
    found = 2 * np.einsum("piyx,ia->pyxa", state, np.array(lattice.c))
    z, y, k = np.meshgrid(*(np.arange(n) for n in (6, 4, 3)), indexing="ij")
    x, y, z = lattice.x(z, y, k) + 0.5, y + 0.5, z + 0.5
    expected = 1e-4 * np.stack([x, y * x, z], axis=-1)
    assert found == pytest.approx(expected, rel=1e-5)
    assert np.array_equal(cut.run(3).state(), whole.run(3).state())


def momentum(cluster) -> np.ndarray:
    columns, planes = cluster.sums()
    first = columns.index("momentum_x")
    return planes.sum(axis=0)[first : first + cluster.case.lattice.D]


@pytest.mark.parametrize("layout", ["ab", "moments"])
@pytest.mark.parametrize("force", FORCES)
def test_momentum_is_the_integral_of_the_force(force, layout):
    """By the trapezoidal rule, to rounding, from the force at t = 0 to that at the end."""
    value = ["1e-4*cos(0.3*t)", "1e-5*(2 + sin(2*pi*x/nx))*(t + 1)"]
    case = box("D2Q9", force={"name": force, "value": value}, precision=PRECISIONS["double"])
    case |= {"layout": {"name": layout}, "collision": {"name": "regularized"}}
    cluster = Cluster(case, 2).start()
    before = momentum(cluster)
    t = np.arange(51)
    total = np.stack([1e-4 * np.cos(0.3 * t), 2e-5 * (t + 1)]) * 4 * 13
    gained = momentum(cluster.run(50)) - before
    trapezoids = (total[:, 1:] + total[:, :-1]).sum(axis=1) / 2
    assert gained == pytest.approx(trapezoids, rel=1e-11)
    integral = 1e-4 * np.sin(15) / 0.3 * 4 * 13
    assert gained[0] == pytest.approx(integral, rel=0.01)


VALUES = {
    2: ["1e-4*sin(2*pi*y/ny)*cos(0.3*t)", "2e-4*where(x < nx/2, 1, -1) + 1e-5*t"],
    3: ["1e-4*sin(2*pi*z/nz)*cos(0.3*t)", "2e-4*where(x < nx/2, 1, -1)", "1e-4*y/ny*sin(0.1*t)"],
}


def driven(lattice, layout, precision="single", force="guo"):
    """A body, inflow and outflow; one of these needs the velocity of the outgoing populations."""
    tables = SETTINGS["through"](lattice) | {"body": SETTINGS["walls"](lattice)["body"]}
    tables["force"] = {"name": force, "value": VALUES[make("lattices", lattice).D]}
    tables["precision"] = PRECISIONS[precision]
    return box(lattice, layout={"name": layout}, collision={"name": "regularized"}, **tables)


CHOICES = [("D2Q9", layout, "single") for layout in LAYOUTS]
CHOICES += [("D2Q9", "aa", "half"), ("D3Q19", "indirect", "single")]


@pytest.mark.parametrize(("lattice", "layout", "precision"), CHOICES)
def test_neither_slabs_nor_layout_nor_a_restart_show(lattice, layout, precision):
    case = driven(lattice, layout, precision)
    whole, ab = (Cluster(c).start().run(6) for c in (case, driven(lattice, "ab", precision)))
    half, expected = whole.state(), ab.state()
    if find("layouts", layout).populations:
        assert np.array_equal(half, expected)
    for name, values in ab.fields("rho", "u").items():
        assert np.abs(whole.fields(name)[name] - values).max() < 1e-6
    state = whole.run(3).state()
    cut = Cluster(case, 3).start().run(9)
    assert np.array_equal(cut.state(), state)
    assert np.array_equal(cut.fields("u")["u"], whole.fields("u")["u"])
    assert np.array_equal(cut.sums()[1], whole.sums()[1])
    resumed = Cluster(case, 2).restore(half, 6).run(3)
    assert np.array_equal(resumed.state(), state)
    assert np.array_equal(resumed.fields("u")["u"], whole.fields("u")["u"])


def test_before_the_beginning_the_force_is_that_at_0():
    found = []
    for value in ["1e-4*cos(0.3*t)", 1e-4]:
        case = box("D2Q9", force={"name": "guo", "value": [value, "1e-4*(1 + t)"]})
        case["initial"]["iterate"] = 5
        found.append(Cluster(case, 2).start().state())
    assert np.array_equal(*found)
    case["force"]["value"] = [0, 1e-4]
    assert not np.array_equal(Cluster(case).start().state(), found[0])
    case["force"]["value"] = [1e-4, 1e-4]
    assert np.array_equal(Cluster(case).start().state(), found[0])


def test_what_does_not_change_is_not_handed_over_again():
    assert not Cluster(kolmogorov()).solvers[0].context.forces.timed
    assert Cluster(driven("D2Q9", "ab")).solvers[0].context.forces.timed


WRONG = {
    "1e-6*sin(q)": "unknown name 'q'; allowed: x, y, nx, ny, t, pi, where",
    "z": "unknown name 'z'",
    "x <": "'x <' is not a formula",
    "x < 1": "'x < 1' is a comparison; write where",
    "x/0": "divides by zero",
    "1e-6/t": "is not finite at t = 0; change the formula",
    "1e-6/(x - 2.5)": "is not finite in cell x=2 (counted from 0) at t = 0; change the formula",
    "sqrt(x - y + 11)": "is not finite in cell x=0, y=12 (counted from 0) at t = 0;",
}


@pytest.mark.parametrize("text", WRONG)
def test_refused(text):
    force = {"name": FORCES[0], "value": [0, text]}
    if "in cell" in WRONG[text]:  # what needs cells comes after the memory plan
        case = parse_case(tables(PLANE, force=force))
        with pytest.raises(CaseError, match=re.escape(f"force.value.1: {WRONG[text]}")):
            require_forces(case, 3, 13)
        return
    (line,) = changed("force", force, PLANE)
    assert line.startswith(f"force.value.1: {WRONG[text]}")
