"""Sponges: the viscosity of a cell, sound at an outlet, the flow upstream, and layouts."""

import numpy as np
import pytest
from support.findings import warnings_of
from support.slabs import PRECISIONS, Cluster

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.run.preflight.plan import plan

CS = 3**-0.5
DOUBLE = {"precision": PRECISIONS["double"]}


def duct(nx: int, sponge=(), collision="regularized", layout="ab", closure=None, **more) -> dict:
    """Fluid that moves along x between an inlet and an outlet, in a periodic row of two cells."""
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [nx, 2], "periodic": [False, True]},
        "fluid": {"viscosity": 1e-3},
        "collision": {"name": collision} | ({"closure": closure} if closure else {}),
        "initial": {"u": [0.05, 0.0]},
        "boundary": [
            {"name": "regularized", "where": ["x-"], "velocity": [0.05, 0.0]},
            {"name": "zou_he", "where": ["x+"], "rho": 1.0},
        ],
        "sponge": list(sponge),
        "layout": {"name": layout},
        "run": {"steps": 10},
    }
    return tables | DOUBLE | more


def at_outlet(thickness, **more) -> dict:
    return {"where": ["x+"], "thickness": thickness} | more


def test_less_sound_returns_from_an_outlet():
    """A pulse of 16 cells towards the outlet, when its echo is back in front of the sponge."""
    hump = "0.001*exp(-((x - 30)/6)**2)"
    initial = {"rho": f"1 + {hump}", "u": [f"0.05 + {CS}*{hump}", 0.0]}
    echo = []
    for sponge in ((), [at_outlet(60, viscosity=1.0)], [at_outlet(60, viscosity=0.1)]):
        cluster = Cluster(duct(120, sponge, initial=initial)).start().run(260)
        echo.append(np.abs(cluster.fields("rho")["rho"][0, 0, 20:60] - 1).max() / 1e-3)
    assert echo[0] > 0.9
    assert echo[1] < 0.5
    assert echo[1] < echo[2] < 0.85


@pytest.mark.usefixtures("optimised")
def test_a_sponge_between_walls_compresses_the_fluid_in_front_of_it():
    """The rise that `check` estimates and its advice; a plane channel needs 1.5 times as much."""
    walls = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    found = {}
    for viscosity in (1.0, 0.05):
        tables = duct(60, [at_outlet(30, viscosity=viscosity)], fluid={"viscosity": 0.01})
        tables["domain"] = {"size": [60, 12], "periodic": [False, False]}
        tables["boundary"] = tables["boundary"] + walls
        findings = plan(parse_case(tables)).findings
        found[viscosity] = [each for each in findings if "density in front" in each.message]
        rho = Cluster(tables).start().run(3000).fields("rho")["rho"]
        risen = float(rho[:, 0, 30].mean()) - 1
        if found[viscosity]:
            (finding,) = found[viscosity]
            assert finding.where == "sponge.0.viscosity"
            assert "by about 0.081 (estimate)" in finding.message
            assert "set viscosity = 0.1" in finding.message
            assert 0.081 < risen < 2 * 0.081
        else:
            assert risen < 0.02
    assert found[1.0]
    assert not found[0.05]


def shear(n: int, collision: str) -> np.ndarray:
    """Couette flow through a sponge at the wall that moves, after a long time."""
    tables = duct(2, [{"where": ["y+"], "thickness": n / 2, "viscosity": 0.4}], collision)
    tables["domain"] = {"size": [2, n], "periodic": [True, False]}
    tables |= {"fluid": {"viscosity": 0.1}, "initial": {"u": [0.0, 0.0]}}
    tables["boundary"] = [
        {"name": "bounce_back", "where": ["y-"]},
        {"name": "bounce_back", "where": ["y+"], "velocity": [0.05, 0.0]},
    ]
    return Cluster(tables).start().run(25 * n * n).fields("u")["u"][:, 0, 0, 0]


@pytest.mark.parametrize("collision", ["trt", "central_moment"])
def test_the_stress_is_constant_where_the_viscosity_rises(collision):
    """u' nu(y) = const, by fine quadrature; the error falls with the square of the cells."""
    errors = []
    for n in (8, 16):
        y = (np.arange(2000 * n) + 0.5) / 2000
        slope = 1 / (0.1 + 0.4 * np.maximum(0, 1 - (n - y) / (n / 2)) ** 2)
        exact = 0.05 * np.cumsum(slope)[999::2000] / slope.sum()
        errors.append(np.abs(shear(n, collision) / exact - 1).max())
    assert errors[1] < 0.02
    assert errors[0] / errors[1] > 2.5


def channel(sponge) -> np.ndarray:
    """Plane channel flow from a parabola to an outlet: u_x along the middle of three sections."""
    nx, ny = 48, 8
    tables = duct(nx, sponge, domain={"size": [nx, ny], "periodic": [False, False]})
    tables["fluid"] = {"viscosity": 0.05}
    tables["boundary"][0]["velocity"] = ["0.2*y*(ny - y)/ny**2", 0.0]
    tables["boundary"].append({"name": "bounce_back", "where": ["y-", "y+"]})
    u = Cluster(tables).start().run(4000).fields("u")["u"]
    return u[:, 0, 10 : nx // 2, 0]


@pytest.mark.usefixtures("optimised")
def test_the_steady_flow_upstream_is_unchanged():
    without, found = channel(()), channel([at_outlet(16)])
    assert np.abs(found - without).max() < 2e-3 * without.max()


SPONGES = [{"where": ["x+", "y+"], "thickness": 5.5, "viscosity": 0.3}, at_outlet(3, viscosity=0.2)]


def corner(layout: str, collision="regularized", **more) -> dict:
    tables = duct(11, SPONGES, collision, layout, **more)
    tables["domain"] = {"size": [11, 9], "periodic": [False, True]}
    tables["initial"] = {"u": ["0.05 + 0.01*sin(2*pi*y/ny)", "0.02*cos(2*pi*y/ny)"]}
    return tables


@pytest.mark.parametrize("layout", ["aa", "esopull", "indirect", "moments"])
def test_layouts_and_slabs_have_the_same_flow(layout):
    expected = Cluster(corner("ab")).start().run(12).fields("rho", "u")
    found = [Cluster(corner(layout), slabs).start().run(12) for slabs in (1, 3)]
    for name, values in found[0].fields("rho", "u").items():
        assert np.abs(values - expected[name]).max() < 1e-14
    assert np.array_equal(found[0].state(), found[1].state())


def test_a_closure_adds_to_the_sponge():
    """One without an eddy viscosity changes nothing, one with a large constant does."""
    found = []
    for constant in (None, 1e-9, 1.0):
        closure = constant and {"name": "smagorinsky", "constant": constant}
        tables = corner("ab", closure=closure)
        found.append(Cluster(tables).start().run(12).fields("u")["u"])
    assert np.abs(found[1] - found[0]).max() < 1e-14
    assert np.abs(found[2] - found[0]).max() > 1e-5


@pytest.mark.parametrize("closure", [None, {"name": "smagorinsky", "constant": 0.2}])
def test_initial_stresses_have_the_viscosity_of_the_cell(closure):
    """The populations of a row are those of a fluid that has the viscosity of this row."""
    initial = {"u": ["0.05*sin(2*pi*y/ny)", "0.0"], "non_equilibrium": True}
    box = {"domain": {"size": [2, 12], "periodic": [True, True]}, "boundary": []}
    sponge = {"where": ["y-", "y+"], "thickness": 5.5, "viscosity": 0.4}
    found = Cluster(duct(2, [sponge], closure=closure, initial=initial, **box)).start().state()
    for row in (0, 3, 10):
        d = min(row, 11 - row) + 0.5
        fluid = {"viscosity": 1e-3 + 0.4 * max(0, 1 - d / 5.5) ** 2}
        tables = duct(2, closure=closure, initial=initial, fluid=fluid, **box)
        expected = Cluster(tables).start().state()
        assert np.abs(found[row] - expected[row]).max() < 1e-15
    assert np.abs(found[5] - expected[5]).max() > 1e-6


def test_default_rates_of_mrt_follow_the_viscosity_of_the_cell():
    """With the rates s_pi and s_xxyz of the thin fluid, waves of a fluid at rest grew to nan."""
    u = ["0.001*sin(37*x*y*z)", "0.001*sin(41*x*x + 7*y*z)", "0.001*cos(13*x*y + 17*z)"]
    tables = duct(16, [{"where": ["x-", "x+"], "thickness": 7.9}], "mrt", initial={"u": u})
    tables |= {"lattice": {"name": "D3Q27"}, "boundary": [], "fluid": {"viscosity": 0.002}}
    tables["domain"] = {"size": [16, 6, 6], "periodic": [True, True, True]}
    found = Cluster(tables).start().run(1500).fields("u")["u"]
    assert np.abs(found).max() < 1e-3


def test_many_sponges_and_a_scalar():
    """Their formulas are joined, and may be longer than a formula of a case."""
    sponge = {"where": ["x-", "x+", "y-", "y+"], "thickness": 10 / 3, "viscosity": 1 / 7}
    scalar = {"label": "T", "diffusivity": 0.1, "boundary": []}
    tables = duct(
        12, [sponge] * 9, boundary=[], scalar=[scalar], fluid={"viscosity": "0.01*(1 + T)"}
    )
    tables["domain"] = {"size": [12, 12], "periodic": [True, True]}
    case = parse_case(tables, "test.toml")
    places = {"x": np.array([0.5, 6.0]), "y": np.array([6.0, 6.0])}
    assert case.added_viscosity(places) == pytest.approx([9 / 7 * 0.85**2, 0])
    assert "T" in case.viscosity_value.structure()
    Cluster(tables).start().run(2)


def test_the_text_holds_the_faces_alone():
    """Neither the viscosities nor the thickness, and nothing of a sponge that is not there."""
    one, two, none = (
        codegen.structure(parse_case(duct(40, sponge, fluid={"viscosity": nu}), "test.toml"))
        for sponge, nu in (
            ([at_outlet(20)], 0.01),
            ([at_outlet(11.5, viscosity=0.2)], 0.02),
            ((), 0.01),
        )
    )
    assert one == two
    assert one != none
    assert "viscosity" not in none


@pytest.mark.parametrize(
    ("sponge", "more", "message"),
    [
        ({"where": ["z+"], "thickness": 5}, {}, "found z.; allowed in 2D: x-, x., y-, y."),
        (at_outlet(40), {}, "thickness: found 40 at x.; allowed: less than the box, 40 cells"),
        (at_outlet(0.4), {}, "thickness: found 0.4; allowed: >= 1"),
        ({"where": ["x-", "x+"], "thickness": 20}, {}, "found 20 at x- and its opposite; allowed"),
        ({"where": ["x+", "x+"], "thickness": 9}, {}, "where: found x. 2 times; allowed: once"),
        (at_outlet(9), {"collision": "kbc"}, "the viscosity of 'kbc' cannot differ"),
        (
            at_outlet(9),
            {
                "collision": "regularized",
                "closure": {"name": "power_law", "index": 0.7, "consistency": 0.01},
            },
            "the closure 'power_law' determines the whole viscosity",
        ),
    ],
)
def test_sponges_that_are_refused(sponge, more, message):
    with pytest.raises(CaseError, match=message):
        parse_case(duct(40, [sponge], **more), "test.toml")


def test_a_lattice_with_two_rates_of_the_shear_stress_is_refused():
    ends = [{"name": "equilibrium", "where": ["x-", "x+"], "rho": 1.0}]
    tables = duct(40, [at_outlet(9)], "mrt", lattice={"name": "D3Q13"}, boundary=ends)
    tables |= {"domain": {"size": [40, 4, 4], "periodic": [False, True, True]}, "initial": {}}
    with pytest.raises(CaseError, match=r"'mrt' on D3Q13 cannot differ .* lattices allowed"):
        parse_case(tables, "test.toml")


def test_a_jump_at_a_periodic_face_is_reported():
    def found(*faces):
        case = parse_case(duct(40, [{"where": faces, "thickness": 1}]), "test.toml")
        return [text for text in warnings_of(case) if "sponge" in text]

    (text,) = found("x+", "y-")
    assert "sponge.0.where: the box is periodic along y, so that the viscosity jumps by 1" in text
    assert not found("x+")


def test_bodies_and_probes_inside_are_reported():
    """A body that passes through the face is a wall."""
    ball = {"name": "sphere", "centre": [30.0, 8.0], "radius": 2.0}
    plate = {"name": "box", "lower": [20.0, -1.0], "upper": [50.0, 2.0]}
    tables = duct(40, [at_outlet(9.0)], domain={"size": [40, 16], "periodic": [False, True]})
    tables["body"] = [
        {"label": label, "shape": shape, "boundary": {"name": "bounce_back"}}
        for label, shape in (("ball", ball), ("plate", plate))
    ]
    tables["output"] = [{"name": "probe", "label": "p", "every": 1, "points": [[3.0, 8], [35, 8]]}]
    found = [text for text in warnings_of(parse_case(tables, "test.toml")) if "sponge" in text]
    assert len(found) == 2
    assert any("sponge.0.where: the body 'ball' reaches into the sponge" in text for text in found)
    assert any("output.0.points" in text and "(point 1) lies in sponge.0" in text for text in found)
    plate["upper"] = [36.0, 2.0]  # it begins at the inlet, and ends in the sponge
    plate["lower"] = [-1.0, -1.0]
    found = [text for text in warnings_of(parse_case(tables, "test.toml")) if "sponge" in text]
    assert any("the body 'plate' reaches into the sponge" in text for text in found)
    plate["upper"] = [50.0, 2.0]
    tables["body"][0]["shape"]["centre"] = [20.0, 8.0]
    tables["output"][0]["points"] = [[3.0, 8.0]]
    assert not [text for text in warnings_of(parse_case(tables, "test.toml")) if "sponge" in text]
