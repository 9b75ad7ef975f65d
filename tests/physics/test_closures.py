"""Closures: the eddy viscosity of a known stress, where it ends, and what it saves.

More than 20 s: channels of each collision run for 10 000 steps, and each closure has a kernel text.
"""

import json

import numpy as np
import pytest
from support.case_tables import PLANE, changed
from support.closures import closure_table, lattice_of
from support.equations import F, Numbers, model
from support.flows import first_lattice
from support.pairs import all_pairs, defined, label
from support.settings import SETTINGS
from support.slabs import PRECISIONS, Cluster, box

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.codegen import programs
from mpilbm.codegen.model import Macroscopic
from mpilbm.core import registry
from mpilbm.core.registry import find, make, names
from mpilbm.physics.collisions import Collision

pytestmark = pytest.mark.usefixtures("stand_ins")

CLOSURES, FORCES = names("closures"), names("forcing")
COLLISIONS = [name for name in names("collisions") if find("collisions", name).shear_rate]
OPTIONS = {
    "lattice": [name for name in names("lattices") if make("lattices", name).isotropy >= 4],
    "collision": COLLISIONS,
    "equilibrium": list(names("equilibria")),
}


def flow_of(choice: dict) -> dict:
    """The collision table of a combination."""
    return {"name": choice["collision"], "equilibrium": {"name": choice["equilibrium"]}}


def flows(**more) -> list[dict]:
    """Pairs of lattices, collisions, equilibria and these further options."""
    return all_pairs(OPTIONS | more, allowed)


def allowed(choice: dict) -> bool:
    closure, D = choice.get("closure", "smagorinsky"), make("lattices", choice["lattice"]).D
    return D in find("closures", closure).dimensions and defined(choice["lattice"], flow_of(choice))


def closed(collision, closure="smagorinsky", **fields):
    table = {"name": collision} if isinstance(collision, str) else collision
    return table | {"closure": closure_table(closure, **fields)}


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def sheared(given, rho, u, S, tau):
    """What streams in at a rate of strain S: feq - F/2 - w rho tau / cs2 (c c - cs2 1) : S."""
    lattice, force = given.lattice, [float(v) for v in F.values()][: given.lattice.D]
    source = given.source(Macroscopic(rho - 1, rho, u), force)
    feq, cs2 = given.collision.feq(lattice, rho - 1, rho, u), float(lattice.cs2)
    (inverse,) = given.collision.velocity([1], rho)
    f = []
    for w, c, feq_i, F_i in zip(lattice.w, lattice.c, feq, source, strict=True):
        Q = np.outer(c, c) - cs2 * np.eye(lattice.D)
        f.append(feq_i - given.half * F_i / 2 - float(w) * tau / inverse / cs2 * np.sum(Q * S))
    return f, force, source if given.half else None


@pytest.mark.parametrize("choice", flows(force=FORCES), ids=label)
def test_eddy_viscosity_of_a_known_strain(choice):
    """nu_t = C^2 |S|, |S| = sqrt(2 S_ab S_ab); a compression adds nothing to it."""
    collision, C = closed(flow_of(choice), constant=0.4), 0.4
    given = model(choice["lattice"], collision, choice["force"])
    one, rho, nu = given.lattice, 1.1, 0.01
    u, cs2 = [0.05, -0.03, 0.02][: one.D], float(one.cs2)
    S = np.array([[0.01, 0.03, -0.01], [0.03, -0.02, 0.005], [-0.01, 0.005, 0.01]])
    S = S[: one.D, : one.D]
    S = S - np.trace(S) / one.D * np.eye(one.D)
    tau = 0.5 + (nu + C**2 * np.sqrt(2 * np.sum(S * S))) / cs2
    arguments = given.collision.arguments(nu, one)
    f, _, source = sheared(given, rho, u, S + 0.01 * np.eye(one.D), tau)
    stress = given.stress(f, Macroscopic(rho - 1, rho, u), source, lambda _, value: value)
    rates = given.local_rates(stress, rho, arguments, lambda _, value: value)
    assert rates[given.collision.shear_rate] == pytest.approx(1 / tau, rel=1e-9)
    own = given.collision.rates(cs2 * (tau - 0.5), one)  # of a fluid that is as viscous everywhere
    local = {name: rate for name, rate in rates.items() if rate != arguments[name]}
    assert local == pytest.approx({name: own[name] for name in local}, rel=1e-9)


@pytest.mark.parametrize("choice", flows(force=[None, *FORCES], closure=CLOSURES), ids=label)
def test_uniform_flow_stays_as_it_is(choice):
    force = choice["force"]
    given = model(choice["lattice"], closed(flow_of(choice), choice["closure"]), force)
    one, D = given.lattice, given.lattice.D
    force = [float(v) for v in F.values()][:D] if force else [0.0] * D
    rates, u = given.collision.arguments(0.02, one), [0.05, 0.03, -0.02][:D]
    kernel = Numbers(**dict(zip(F, force, strict=False)))
    f = given.initial(kernel, 0.1, u)
    gains = given.collision.velocity(force, 1.1)
    for step in range(1, 4):
        f = given.collide(kernel, f, rates)
        _, rho, found = given.macroscopic(kernel, f, -1)
        expected = [v + step * gain for v, gain in zip(u, gains, strict=True)]
        assert rho == pytest.approx(1.1, rel=1e-14)
        assert found == pytest.approx(expected, rel=1e-12)


def profile(H, G, nu, C) -> tuple[np.ndarray, str]:
    """Steady flow between walls at 0 and H, nu u' + (C u')^2 = G (H/2 - y), and its formula."""
    s = np.abs(H / 2 - np.arange(H) - 0.5)
    whole = [(nu**2 + 4 * C**2 * G * x) ** 1.5 / (6 * C**2 * G) - nu * x for x in (H / 2, s)]
    root = f"({nu**2} + {4 * C**2 * G}*abs({H / 2} - y))"
    at_y = f"({root}*sqrt({root})/{6 * C**2 * G} - {nu}*abs({H / 2} - y))"
    return (whole[0] - whole[1]) / (2 * C**2), f"({whole[0]} - {at_y})/{2 * C**2}"


CHANNELS = [*((name, "guo") for name in COLLISIONS), ("trt", "exact_difference")]


@pytest.mark.parametrize(("collision", "force"), CHANNELS)
def test_channel_flow_has_the_profile_of_its_eddy_viscosity(collision, force):
    """Within 1 %, with an eddy viscosity of up to twice the fluid's; 10 000 steps, in which the
    flow leaves a wrong profile by 90 %."""
    H, G, nu, C = 21, 3e-5, 0.01, 1.2
    u, formula = profile(H, G, nu, C)
    assert C**2 * u[0] / 0.5 > 1.5 * nu
    lattice = first_lattice(collision)
    D = make("lattices", lattice).D
    case = {
        "lattice": {"name": lattice},
        "collision": closed(collision, constant=C),
        "domain": {"size": [1, H, 1][:D], "periodic": [True, False, True][:D]},
        "precision": PRECISIONS["double"],
        "fluid": {"viscosity": nu},
        "force": {"name": force, "value": [G, 0, 0][:D]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "initial": {"u": [formula, 0, 0][:D]},
        "run": {"steps": 1},
    }
    found = Cluster(case).start().run(10000).fields("u")["u"][..., 0].ravel()
    assert np.abs(found - u).max() < 0.01 * u.max()


LAYOUTS = [("trt", "ab", "forced"), ("mrt", "aa", "walls"), ("regularized", "moments", "forced")]


@pytest.mark.parametrize(
    ("closure", "collision", "layout", "setting"),
    [(closure, *LAYOUTS[k % len(LAYOUTS)]) for k, closure in enumerate(CLOSURES)],
)
def test_neither_slabs_nor_layout_show(closure, collision, layout, setting):
    def run(layout, slabs):
        case = box(
            lattice_of(closure),
            **SETTINGS[setting](lattice_of(closure)),
            layout={"name": layout},
            collision=closed(collision, closure),
        )
        return Cluster(case, slabs).start().run(7)

    whole, ab = run(layout, 1), run("ab", 1)
    assert np.array_equal(run(layout, 3).state(), whole.state())
    for name, values in ab.fields("rho", "u").items():
        assert np.abs(whole.fields(name)[name] - values).max() < 1e-6


def shear_layers(collision):
    """Two thin layers that roll up, at a Reynolds number of 300 000 on 32 x 32 cells."""
    u = "0.1*where(y < ny/2, tanh(80*(y/ny-0.25)), tanh(80*(0.75-y/ny)))"
    return {
        "lattice": {"name": "D2Q9"},
        "collision": collision,
        "domain": {"size": [32, 32], "periodic": [True, True]},
        "fluid": {"viscosity": 1e-5},
        "initial": {"u": [u, "0.005*sin(2*pi*(x/nx+0.25))"]},
        "run": {"steps": 1},
    }


@pytest.mark.parametrize("collision", [{"name": "bgk"}, closed("bgk", constant=0.2)])
def test_a_flow_that_kills_bgk_lives_with_it(collision):
    u = Cluster(shear_layers(collision)).start().run(4000).fields("u")["u"]
    assert np.isfinite(u).all() == ("closure" in collision)


def test_constant_is_a_number_of_the_kernel():
    flows = [closed("trt", constant=constant) for constant in (0.1, 0.2)]
    cases = [parse_case(box("D2Q9", collision=flow), "test.toml") for flow in flows]
    assert programs.build(cases[0]) == programs.build(cases[1])
    structures = [json.dumps(codegen.structure(case), sort_keys=True) for case in cases]
    assert structures[0] == structures[1]


FCC = """
lattice = {name = "D3Q13"}
domain = {size = [4, 4, 4], periodic = [true, true, true]}
fluid = {viscosity = 0.02}
collision = {name = "mrt", closure = {name = "smagorinsky"}}
run = {steps = 1}
"""


def test_refused():
    class Fixed(Collision):
        """A collision with rates that nobody may change."""

    registry.register("collisions", "fixed")(Fixed)
    (line,) = changed("collision", closed("fixed"))
    assert line == (
        "collision.closure: found 'smagorinsky', but fixed supports no closure; "
        f"collisions that support closures: {', '.join(COLLISIONS)}"
    )
    (line,) = changed("lattice", {"name": "D3Q13"}, FCC)
    assert line.startswith(
        "collision.closure: found 'smagorinsky', but the shear stress relaxes at two"
    )
    (line,) = changed("collision", closed("trt", "qr"), PLANE)
    assert line == (
        "collision.closure: found 'qr', but it has no effect in 2D; closures in 2D: "
        f"{', '.join(name for name in CLOSURES if name != 'qr')}; or use a lattice of another "
        "dimension"
    )
    (line,) = changed("collision", closed("trt", constant=0))
    assert line == "collision.closure.constant: found 0; allowed: > 0"
    (line,) = changed("collision", closed("trt", "smagorinski"))
    assert "did you mean 'smagorinsky'" in line
