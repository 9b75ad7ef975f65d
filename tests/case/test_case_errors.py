import re
import tomllib

import pytest
from support.case_tables import (
    OIL,
    PLANE,
    WATER,
    changed,
    problems,
    tables,
)
from support.findings import warnings_of

from mpilbm.case.case import load_case, parse_case
from mpilbm.core.errors import CaseError

pytestmark = pytest.mark.usefixtures("stand_ins")

# key path, wrong value, what the message must say, in 3D
WRONG = [
    ("titel", "a", "titel: unknown key; allowed: backend, .*did you mean 'title'"),
    ("domain.sise", [1], "domain.sise: unknown key; allowed: periodic, size; did you mean 'size'"),
    ("lattice.name", "D3Q91", "lattice.name: 'D3Q91' is not one of the lattices: .*did you mean"),
    ("lattice.name", 3, "lattice.name: '3' is not one of the lattices"),
    ("lattice", {}, "lattice: has no name; allowed: .*D3Q19"),
    ("lattice", "D3Q19", r"lattice: found \"D3Q19\"; allowed: a table; write {name = "),
    ("lattice.Q", 19, "lattice.Q: unknown key; allowed: name"),
    ("domain.size", [5, 0, 13], "domain.size.1: found 0; allowed: > 0"),
    ("domain.size", [5, 4, -13], "domain.size.2: found -13; allowed: > 0"),
    ("domain.size", [5], "domain.size: found .5.; allowed: 2 or more entries"),
    ("domain.size", [5, 4, 3, 2], "domain.size: found .*; allowed: 3 or fewer entries"),
    ("domain.size", [5, 4, 10**30], "domain.size.2: found 10+; allowed: < 2147483648"),
    ("domain.size", "5x4", 'domain.size: found "5x4"; allowed: a list'),
    ("domain", {"size": [5, 13]}, "domain.size: .* D3Q19 has 3 dimensions; give 3 .x, y, z."),
    ("domain.periodic", [True], "domain: size has 3 entries, periodic has 1"),
    ("domain.periodic", 1, "domain.periodic: found 1; allowed: a list"),
    ("domain.periodic", [True, True, 0], "domain.periodic.2: found 0; allowed: true or false"),
    ("fluid.viscosity", 0, "fluid.viscosity: found 0; allowed: > 0; tau = .* above 1/2"),
    ("fluid.viscosity", -0.1, "fluid.viscosity: found -0.1; allowed: > 0"),
    ("fluid.viscosity", 1e-20, "fluid.viscosity: found 1e-20, tau = .*; allowed: tau > 1/2"),
    ("fluid.viscosity", 1e-10, "collision: omega.* is 2 in float32 with .* 1e-10; allowed: "),
    ("collision", {"name": "trt", "magic": 1e-30}, "collision: omega_minus is 2 in float32 with"),
    ("fluid.viscosity", "0.1", 'fluid.viscosity: found "0.1"; allowed: a number; remove the'),
    ("fluid.viscosity", float("nan"), "fluid.viscosity: found nan; allowed: a finite number"),
    ("fluid", {}, "fluid: is empty; give viscosity, or all of reynolds"),
    ("fluid", 3, "fluid: found 3; allowed: a table"),
    ("fluid", [], "fluid: found ..; allowed: 1 or more entries"),
    ("fluid.reynolds", 10, "fluid: has viscosity and reynolds; give either"),
    ("fluid", {"reynolds": 10, "length": 3}, "fluid: has reynolds, length but no velocity"),
    ("fluid", {"reynolds": 10, "length": 3, "velocity": 2}, "fluid.velocity: found the speed 2;"),
    ("fluid.collision", {"name": "bgk"}, "fluid.collision: unknown key; allowed: length"),
    ("collision.name", "bkg", "collision.name: 'bkg' is not one of the collisions: bgk.*'bgk'"),
    ("collision", {"name": "bgk", "omga": 1}, "collision.omga: unknown key; allowed: clos"),
    ("collision", {"name": "bgk", "equilibrium": {"name": "x"}}, "collision.equilibrium.name: 'x'"),
    (
        "body",
        [
            {
                "label": "a",
                "boundary": {"name": "bounce_back"},
                "shape": {
                    "name": "mesh",
                    "file": "a.stl",
                    "at": [1, 1],
                    "scale": 1,
                    "rotate": [90, 0],
                },
            }
        ],
        "body.a.shape.rotate.2: missing entry: found 2 entries; allowed: 3",
    ),
    ("force", {"name": "guo"}, "force.value: missing; write value = "),
    (
        "boundary",
        [{"name": "pressure_jump", "where": ["x-", "x+"]}],
        "boundary.0.rho_jump: missing; write rho_jump = 1.0",
    ),
    ("force", {"name": "guo", "value": [1, 0]}, "force.value: found 2 components; allowed: 3"),
    ("force", {"name": "guo", "value": [0, "q", 0]}, "force.value.1: unknown name 'q'; allowed"),
    ("force", {"name": "guo", "value": [0, True, 0]}, "force.value.1: found true; allowed: a num"),
    ("coupling", {"name": "x"}, "coupling.name: 'x' is not one of the couplings: "),
    ("precision.compute", "half", "precision.compute: found \"half\"; allowed: 'float32' or"),
    ("precision.offset", "no", 'precision.offset: found "no"; allowed: true or false'),
    ("layout.name", "moments", "layout.name: 'moments' .*; allowed for collision: .*regularized"),
    ("layout.name", "zzz", "layout.name: 'zzz' is not one of the layouts: .*needs --plugin FILE"),
    ("backend.name", "gpu", "backend.name: 'gpu' is not one of the backends: .*cpu"),
    ("initial.rho", 0, "initial.rho: found 0; allowed: from 1e-30"),
    ("initial.rho", True, "initial.rho: found true; allowed: a number"),
    ("initial.rho", "1 + y/0", "initial.rho: divides by zero"),
    ("initial.rho", "1 + q", "initial.rho: unknown name 'q'; allowed: x, y, z"),
    ("initial.u", [0, "x.real", 0], "initial.u.1: 'x.real' is not allowed"),
    ("initial.u", [0, 0, "open(x)"], "initial.u.2: unknown function 'open'"),
    ("initial.u", [0, 0, "9**9**9"], "initial.u.2: exponent"),
    ("initial.u", [0, 0, "y^2"], "initial.u.2: 'y . 2' is not allowed.*; write a power"),
    ("initial.u", [0, 0], "initial.u: found 2 entries; allowed: 3 .x, y, z. in 3D"),
    ("initial.u", 0, "initial.u: found 0; allowed: a list"),
    ("initial.u", [0.5, 0, 0.5], "initial.u: found the speed 0.7071; allowed: below the speed"),
    ("boundary.0.where", ["top"], "boundary.0.where.0: found \"top\"; allowed: 'x-'"),
    ("boundary.0.where", [], "boundary.0.where: missing; name its faces"),
    ("boundary.0.where", ["z-", "z-"], "boundary.0.where: found 'z-' twice"),
    ("boundary.1.velocity", [0, 0], "boundary.1.velocity: found 2 components; allowed: 3"),
    ("boundary.1.velocity", [0, 2, 0], "boundary.1.velocity: found the speed 2; allowed: below"),
    ("boundary.1.velocity", ["a", 0, 0], "boundary.1.velocity.0: unknown name 'a'; allowed: x"),
    ("boundary.1.speed", 1, "boundary.1.speed: unknown key; allowed: name, priority, "),
    ("boundary", {"name": "bounce_back"}, "boundary: found .*; allowed: a list"),
    ("body.0.mask", "rock.npy", "body.ball: has both of shape and mask; give exactly one"),
    ("body.0.shape.radius", -1, "body.ball.shape.radius: found -1; allowed: > 0"),
    ("body.0.shape.centre", [1, 2], "body.ball.shape.centre = .* has 2 entries; give 3"),
    ("body.0.shape.name", "spere", "body.ball.shape.name: 'spere' is not one of.*mean 'sphere'"),
    ("body.0.boundary.where", ["x-"], "body.ball: boundary.where names faces"),
    ("body.0.boundary.velocity", [1, 0, 0], "body.ball.boundary.velocity: found the speed 1"),
    ("body.0.label", "a b", 'body.a b.label: found "a b"; allowed: letters, digits'),
    ("run.steps", -1, "run.steps: found -1; allowed: >= 0"),
    ("run.steps", "10", 'run.steps: found "10"; allowed: a whole number; remove the quotes'),
    ("run.steps", 1e3, "run.steps: found 1000.0; allowed: a whole number; write 1000"),
    ("run.steps", True, "run.steps: found true; allowed: a whole number"),
    ("run.steady", {"every": 0, "tolerance": 1e-6}, "run.steady.every: found 0; allowed: > 0"),
    ("run.steady", {"every": 10}, "run.steady.tolerance: missing; write tolerance = 1e-6"),
    ("run.walltime", 0, "run.walltime: found 0; allowed: > 0"),
    ("output.0.name", "snap", "output.0.name: 'snap' is not one of the outputs"),
    ("output.0.every", 0, "output.0.every: found 0; allowed: > 0"),
    ("output.0.every", 1000, "output.0.every: 1000 is more than the steps"),
    ("output.0.fields", "rho", 'output.0.fields: found "rho"; allowed: a list'),
]


@pytest.mark.parametrize(("path", "value", "sentence"), WRONG, ids=lambda value: str(value)[:40])
def test_bad_input(path, value, sentence):
    found = changed(path, value)
    assert len(found) == 1, found
    assert re.match(sentence, found[0]), found[0]


@pytest.mark.parametrize(
    ("key", "example"),
    [
        ("lattice", '[lattice] with name = "D3Q19"'),
        ("domain", "[domain] with size = [64, 64, 64]"),
        ("fluid", "[fluid] with viscosity = 0.01"),
        ("run", "[run] with steps = 1000"),
    ],
)
def test_missing_table(key, example):
    assert problems(**{key: None}) == [f"{key}: missing; write {example}"]


def test_a_wrong_body_is_not_missed_by_outputs():
    body = {"label": "a", "mask": "a.npy", "boundary": {"name": "interpolated", "order": 3}}
    outputs = [{"name": "body_forces", "every": 1, "body": ["a"]}]
    found = problems(body=[body], output=outputs)
    assert found == ["body.a.boundary.order: found 3; allowed: 1 or 2"]


def test_a_wrong_coupling_is_not_missed_by_others():
    outputs = [{"name": "snapshot", "every": 1, "fields": ["phi"]}]
    coupling = {"name": "free_energy", "a": -1.0, "kappa": 1.0}
    assert problems(coupling=coupling, output=outputs) == ["coupling.a: found -1.0; allowed: > 0"]


def test_body_needs_shape_or_mask_and_a_boundary():
    assert problems(body=[{"label": "a", "boundary": {"name": "bounce_back"}}]) == [
        "body.a: has neither of shape and mask; give exactly one"
    ]
    assert problems(body=[{"mask": "a.npy"}]) == ["body.0.boundary: missing; write boundary = {…}"]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("domain.size", [5, 13, 4], "domain: size has 3 entries, periodic has 2"),
        (
            "force",
            {"name": "guo", "value": [0, 0, 1]},
            "force.value: found 3 components; allowed: 2",
        ),
        ("initial.u", [0, 0, 0], "initial.u: found 3 entries; allowed: 2 (x, y) in 2D"),
        ("initial.u", ["z", 0], "initial.u.0: unknown name 'z'; allowed: x, y, nx, ny, t, pi"),
        ("initial.rho", "nz", "initial.rho: unknown name 'nz'; allowed: x, y, nx, ny, t, pi"),
        ("boundary.1.velocity", [0, 0, 0], "boundary.1.velocity: found 3 components; allowed: 2"),
        ("boundary.0.where", ["z-"], "boundary.0.where: found 'z-' in 2D; allowed: x-, x+, y-, y+"),
        (
            "body.0.shape.centre",
            [1, 2, 3],
            "body.ball.shape.centre = [1.0, 2.0, 3.0] has 3 entries",
        ),
    ],
)
def test_third_dimension_in_a_plane_case(path, value, sentence):
    (found,) = changed(path, value, PLANE)
    assert found.startswith(sentence)


def test_three_sizes_on_a_plane_lattice():
    (found,) = problems(PLANE, domain={"size": [5, 4, 13]}, boundary=[])
    assert found == (
        "domain.size: found 3 entries, but D2Q9 has 2 dimensions; give 2 (x, y) or another lattice"
    )


def test_all_problems_are_reported_at_once():
    found = problems(
        run={"steps": "a"},
        titel=1,
        initial={"u": [1, 1, 1]},
        collision={"name": "bkg"},
        layout={"name": "abc"},
    )
    assert [line.split(": ")[0] for line in found] == [
        "collision.name",
        "layout.name",
        "run.steps",
        "titel",
        "initial.u",
    ]


def test_fluids_that_do_not_fit():
    found = problems(fluid=[WATER, OIL])
    assert found == ["coupling: missing; 2 fluids require one; add [coupling] or keep one fluid"]
    found = problems(fluid=[WATER, WATER | {"viscosty": 1}], coupling={"name": "stand_in_too"})
    assert found[0].startswith("fluid.water.viscosty: unknown key; allowed: collision, force")
    found = problems(
        fluid=[WATER, WATER],
        coupling={"name": "stand_in_too"},
        collision={"name": "bgk"},
        initial={"rho": 1},
    )
    assert found == [
        "collision: found together with [[fluid]]; allowed: one in each [[fluid]]; move it there",
        "initial: found together with [[fluid]]; allowed: one in each [[fluid]]; move it there",
        "fluid: found the label 'water' twice; give each fluid its own label",
    ]


def test_two_bodies_of_one_label():
    body = tables()["body"][0]
    assert problems(body=[body, body]) == [
        "body: found the label 'ball' twice; give each body its own label"
    ]


def test_high_speed_is_a_warning():
    case = parse_case(tables(initial={"u": [0, 0.3, 0]}))
    (found,) = warnings_of(case)
    assert found.startswith("initial.u: the speed 0.3, Mach number 0.52, is too fast")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[run\nsteps = 1", "is not TOML: .*line 1"),
        (b"a = 1\nb = = 2", "is not TOML: .*line 2"),
        (b"a = " + b"9" * 5000, "is not TOML: "),
        (b"a = " + b"[" * 5000, "is not TOML: "),
        (b"title = '\xff'", "is not UTF-8 text"),
    ],
)
def test_file_that_is_not_toml(tmp_path, content, sentence):
    path = tmp_path / "box.toml"
    path.write_bytes(content)
    with pytest.raises(CaseError, match=f"box.toml: {sentence}"):
        load_case(path)


def test_file_that_cannot_be_read(tmp_path):
    with pytest.raises(CaseError, match=r"no\.toml: there is no such file; `mpilbm new"):
        load_case(tmp_path / "no.toml")
    with pytest.raises(CaseError, match="cannot be read: Is a directory"):
        load_case(tmp_path)


@pytest.mark.parametrize(
    ("force", "viscosity", "expected"),
    [(1e-7, 0.1, "lose the force: it adds 1e-07 per step"), (1e-3, 1e-6, "may lose the viscosity")],
)
def test_a_change_lost_in_sixteen_bits_is_reported(force, viscosity, expected):
    """The change per step by the force or viscosity is below half a unit of the stored values."""
    more = {"fluid": {"viscosity": viscosity}, "force": {"name": "guo", "value": [force, 0, 0]}}
    half = {"precision": {"compute": "float32", "storage": "float16"}}
    case = parse_case(tables(**more, **half))
    (warning,) = [w for w in warnings_of(case) if w.startswith("precision.storage")]
    assert expected in warning
    assert 'use storage = "float32"' in warning
    moments = {"layout": {"name": "moments"}, "collision": {"name": "regularized"}}
    case = parse_case(tables(**more, **half, **moments))
    (warning,) = [w for w in warnings_of(case) if w.startswith("precision.storage")]
    assert 'use storage = "mixed"' in warning
    single = parse_case(tables(**more))
    assert not [w for w in warnings_of(single) if w.startswith("precision.storage")]


def test_a_key_that_is_not_similar_is_not_proposed():
    ball = {
        "label": "ball",
        "shape": {"name": "sphere", "centre": [2, 2, 6], "radius": 1.5},
        "boundary": {"name": "partially_saturated", "velocity": [0, 0, 0]},
    }
    (line,) = changed("body", [ball])
    assert line == (
        "body.ball.boundary.velocity: unknown key; allowed: name, priority, wetting, where"
    )


@pytest.mark.parametrize("equilibrium", ['{name = "hermit"}', '"hermite"'])
def test_a_layout_is_not_judged_with_the_collision_that_replaces_a_wrong_one(equilibrium):
    given = tomllib.loads(f"equilibrium = {equilibrium}")
    found = problems(layout={"name": "moments"}, collision={"name": "regularized"} | given)
    assert [line.partition(": ")[0].startswith("collision.equilibrium") for line in found] == [True]
