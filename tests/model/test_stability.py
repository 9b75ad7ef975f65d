"""What `check` says about the stability of a case, against flows that were measured."""

import runpy

import numpy as np
import pytest
from support import ROOT

from mpilbm.case import new_case
from mpilbm.case.case import load_case, parse_case
from mpilbm.case.velocity_bounds import largest_speed
from mpilbm.core.registry import make, names
from mpilbm.model import limits
from mpilbm.model.collision_label import label_of, parts_of
from mpilbm.model.limits import judge_stability
from mpilbm.run.preflight.plan import plan

RAW = [
    ROOT / "tools/measured" / name
    for name in (
        "h200_stability_2026-11-22.json",
        "epyc_stability_2026-11-26.json",
        "epyc_body_stability_2026-11-26.json",
        "epyc_d3q27_stability_2026-11-27.json",
    )
]
LEVELS = ["good", "fair", "poor"]
TRT = "D3Q19", "trt"


@pytest.mark.parametrize(
    ("number", "mach", "flow", "stable"),
    [
        (
            39.3,
            0.0866,
            "vortex",
            "recursive_regularized regularized cumulant kbc",
        ),  # 256^3, Re 1600
        (157, 0.0866, "vortex", "regularized cumulant kbc"),  # 64^3
        (1000 / 24, 0.173, "cavity", "cumulant"),
        (1000 / 32, 0.173, "cavity", "mrt cumulant"),
        (100 / 8, 0.0866, "body", "regularized"),  # a sphere, 8 cells per diameter
    ],
)
def test_flows_in_which_trt_failed_are_called_unstable(number, mach, flow, stable):
    sentence, level = judge_stability(number, mach, *TRT, (flow,))
    assert level == "poor"
    assert sentence.startswith("likely unstable: trt was stable up to ")
    for name in stable.split():
        assert name in sentence.partition("stable there: ")[2].replace(";", ",").replace(",", "")


@pytest.mark.parametrize("flow", [*limits.FLOWS, "walls"])
def test_levels_only_fall_as_the_grid_reynolds_number_grows(flow):
    for lattice, place in limits.measured().items():
        for collision in place["collisions"]:
            levels = [
                LEVELS.index(judge_stability(number, 0.1, lattice, collision, (flow,))[1])
                for number in (0.5, 2, 8, 15, 30, 60, 120, 240, 480)
            ]
            assert levels == sorted(levels)
            assert levels[0] == 0


def test_walls_at_rest_warn_where_a_cavity_fails():
    cavity, walls, vortex = (
        judge_stability(30, 0.1, *TRT, (flow,)) for flow in ("cavity", "walls", "vortex")
    )
    assert (cavity[1], walls[1], vortex[1]) == ("poor", "fair", "fair")
    assert walls[0] == cavity[0].replace("likely", "possibly")
    assert judge_stability(60, 0.1, *TRT, ("walls",))[1] == "poor"


def test_the_least_stable_flow_counts():
    """And what is named is stable in all of them."""
    both, body = (
        judge_stability(20, 0.1, *TRT, flows) for flows in (("cavity", "body"), ("body",))
    )
    assert both[1] == body[1] == "poor"
    assert both[0].partition("; ")[0] == body[0].partition("; ")[0]
    assert "stable there: mrt; central_moment" in both[0]
    assert "regularized" in body[0]


def test_what_was_not_measured_is_said():
    for number, level in ((5, "good"), (50, "fair")):
        found = judge_stability(number, 0.1, "D3Q19", "mine")
        assert found == ("the stability of mine on D3Q19 has not been measured", level)
    sentence, level = judge_stability(1000, 0.1, "D3Q27", "cumulant+smagorinsky", ("body",))
    assert (sentence[:12], level) == ("not measured", "fair")
    assert sentence.endswith("the largest measured; stable there: central_moment, cumulant")
    sentence, _ = judge_stability(2e6, 0.1, "D3Q27", "central_moment", ("body",))
    assert sentence.endswith("the largest measured")


def test_all_collisions_of_the_package_are_in_the_table():
    found = {
        parts_of(name)[0] for place in limits.measured().values() for name in place["collisions"]
    }
    assert found == set(names("collisions"))
    assert set(limits.measured()) == set(names("lattices"))


def test_the_table_is_that_of_the_measured_points(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    tool = runpy.run_path(str(ROOT / "tools/stability_map"))
    known = [text for file in RAW for text in ("--known", str(file))]
    with pytest.raises(SystemExit):
        tool["main"]([*known, "--table", str(tmp_path / "table.json")])
    assert (tmp_path / "table.json").read_text() == (
        ROOT / "mpilbm/model/stability.json"
    ).read_text()


FLOWS = {
    "cavity3d_re1000": ("cavity",),
    "channel_retau180": ("walls",),
    "sphere_in_channel": ("body",),
    "taylor_green3d": ("vortex",),
}


@pytest.mark.parametrize("name", FLOWS)
def test_the_measured_flow_of_a_case(name):
    assert limits.flows(load_case(ROOT / f"cases/{name}.toml")) == FLOWS[name]


@pytest.mark.parametrize(("velocity", "flow"), [([0.1, 0], ("cavity",)), ([0, 0.1], ("body",))])
def test_a_face_with_a_velocity_is_a_lid_or_an_inlet(velocity, flow):
    walls = {"name": "bounce_back", "where": ["x-", "x+", "y-"]}
    face = {"name": "zou_he", "where": ["y+"], "velocity": velocity}
    case = parse_case(
        {
            "lattice": {"name": "D2Q9"},
            "domain": {"size": [9, 8]},
            "fluid": {"viscosity": 0.1},
            "boundary": [walls, face],
            "run": {"steps": 1},
        }
    )
    assert limits.flows(case) == flow
    assert limits.stability(case, case.fluids[0], 0.1)[1] == "good"


def past_a_body(tool, ends: str):
    variant = {"lattice": "D2Q9", "collision": "mrt", "closure": None, "backend": "cpu"}
    tables, steps = tool["tables_of"]("body", variant, 8, 0.1, 8, 0.5)
    for face in tables["boundary"][:2]:
        face["name"] = ends
    return parse_case(tables), steps


@pytest.mark.parametrize(("ends", "stable"), [("equilibrium", True), ("zou_he", False)])
def test_an_inlet_and_outlet_that_make_flows_fail(ends, stable, monkeypatch):
    """In the measured flow past a cylinder, at the number from which on `fails_from` says so."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    tool = runpy.run_path(str(ROOT / "tools/stability_map"))
    case, steps = past_a_body(tool, ends)
    sentence, level = limits.stability(case, case.fluids[0], 0.1)
    assert (level == "good") == stable == ("'zou_he' flows failed from 8 on" not in sentence)
    solver = tool["Runner"](0).solver(case)
    solver.advance(steps)
    speeds, nonfinite = solver.diagnostics.speeds()
    assert (not nonfinite.any() and bool(speeds.max() < 0.3)) == stable


MORE = {
    "trt": {"collision": {"name": "trt"}},
    "moments": {"layout": {"name": "moments"}, "collision": {"name": "regularized"}},
    "power_law": {
        "collision": {
            "name": "trt",
            "closure": {"name": "power_law", "consistency": 0.0012, "index": 1.0},
        },
    },
    "formula": {
        "scalar": [{"label": "T", "diffusivity": 0.01}],
        "fluid": {"viscosity": "0.0012 + 0*T"},
        "collision": {"name": "trt"},
    },
}


@pytest.mark.parametrize("more", MORE)
def test_check_names_only_collisions_that_the_case_accepts(more):
    """`moments` stores second moments only; formulas and fluids with a closure exclude others."""
    *walls, lid = [axis + side for axis in "xyz" for side in "-+"]
    tables = {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": [8, 8, 8]},
        "fluid": {"viscosity": 0.0012},
        "boundary": [
            {"name": "bounce_back", "where": walls},
            {"name": "bounce_back", "where": [lid], "velocity": [0.1, 0, 0]},
        ],
        "run": {"steps": 10},
        "backend": {"name": "cpu"},
    } | MORE[more]
    (line,) = (one for one in plan(parse_case(tables)).sections["fluid"] if "grid" in one.what)
    _, named, advice = line.verdict.partition("stable there: ")
    assert bool(named) == (more == "trt")
    parts = advice.rpartition("; or ")[0].split("; ") if named else []
    for part in parts:
        collisions, _, lattice = part.partition(" on ")
        for name, parameters, closure in map(parts_of, collisions.split(", ")):
            table = {"name": name} | parameters
            table |= {"closure": {"name": closure}} if closure else {}
            parse_case(tables | {"collision": table, "lattice": {"name": lattice or "D3Q19"}})


def test_other_parameters_than_those_measured_are_said():
    for collision, said in (({"magic": 0.25}, True), ({}, False)):
        case = load_case(ROOT / "cases/taylor_green3d.toml")
        fluid = case.fluids[0]
        changed = fluid.collision.model_copy(update=collision)
        fluid = fluid.model_copy(update={"collision": changed})
        sentence, _ = limits.stability(case, fluid, 0.1)
        assert sentence.endswith("measured with the default parameters") == said


def test_another_constant_of_a_closure_than_that_measured_is_said():
    """A smaller one damps less; one of a closure that was not measured says nothing."""
    case = load_case(ROOT / "cases/taylor_green3d.toml")
    fluid = case.fluids[0]
    for name, constant, said in (("smagorinsky", None, False), ("smagorinsky", 0.01, True),
                                 ("qr", 0.01, False)):  # fmt: skip
        table = {"name": name} | ({"constant": constant} if constant else {})
        update = {"closure": make("closures", table)}
        closed = fluid.model_copy(update={"collision": fluid.collision.model_copy(update=update)})
        sentence, _ = limits.stability(case, closed, 0.1)
        assert ("measured with the default parameters" in sentence) == said
        assert ("has not been measured" in sentence) == (name == "qr")


def test_parameters_of_what_was_not_measured_are_not_said(monkeypatch):
    case = load_case(ROOT / "cases/taylor_green3d.toml")
    changed = case.fluids[0].collision.model_copy(update={"magic": 0.25})
    fluid = case.fluids[0].model_copy(update={"collision": changed})
    monkeypatch.setattr(limits, "measured", dict)
    sentence, _ = limits.stability(case, fluid, 0.1)
    assert "default parameters" not in sentence


@pytest.mark.parametrize(
    ("lattice", "omega_bulk", "same"),
    [("D3Q27", 1, True), ("D3Q27", None, False), ("D3Q27", 1.5, False), ("D3Q19", 1, False)],
)
def test_an_equal_collision_has_the_same_limits(lattice, omega_bulk, same):
    """With the trace rate 1 recursive_regularized is central_moment, which is more stable."""
    case = load_case(ROOT / "cases/ahmed.toml")
    case = case.model_copy(update={"lattice": make("lattices", lattice)})
    fluid = case.fluids[0]
    changed = make("collisions", "recursive_regularized").model_copy(
        update={"omega_bulk": omega_bulk, "closure": fluid.collision.closure}
    )
    fluid = fluid.model_copy(update={"collision": changed})
    sentence, level = limits.stability(case, fluid, 0.06)
    assert (level == "good") == (omega_bulk == 1)
    assert ("central_moment is the same collision on D3Q27" in sentence) == same
    assert ("measured with the default parameters" in sentence) == (omega_bulk == 1.5)


def level_of(case):
    speed, _ = largest_speed(case)
    return limits.stability(case, case.fluids[0], speed)[1] if speed else "good"


@pytest.mark.parametrize("path", sorted(ROOT.glob("cases/*.toml")), ids=lambda path: path.stem)
def test_no_shipped_case_is_likely_unstable(path):
    if path.stem not in ("porous", "rock"):  # at rest; need a rock
        assert level_of(load_case(path)) != "poor"


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_new_case_takes_a_reynolds_number_of_1000(tmp_path, dimensions):
    new_case.write(tmp_path / "box", dimensions)
    path = tmp_path / "box.toml"
    assert level_of(load_case(path, ["fluid.reynolds=1000"])) != "poor"
    assert level_of(load_case(path, ["fluid.reynolds=1000", "collision.name='bgk'"])) == "poor"


def test_a_collision_with_a_parameter_that_has_no_default():
    """As one of a plug-in may have."""
    case = load_case(ROOT / "cases/taylor_green3d.toml")

    class Own(type(case.fluids[0].collision)):
        name: str = "trt"
        rate: float

    fluid = case.fluids[0].model_copy(update={"collision": Own(rate=0.5)})
    assert limits.stability(case, fluid, 0.1)[0].startswith("fine: trt was stable up to 32")


@pytest.mark.parametrize(("speed", "found"), [(0.06, ("road",)), (0.05, ("cavity", "body"))])
def test_a_road_moves_as_fast_as_the_inflow(speed, found):
    case = load_case(ROOT / "cases/ahmed.toml", [f"boundary.3.velocity=[{speed}, 0, 0]"])
    assert limits.flows(case) == found


def test_where_the_road_was_not_measured_cavity_and_body_count():
    assert limits.similar_flows("D3Q19", "entropic", ("road",)) == ["cavity", "body"]
    one, other = (
        judge_stability(5, 0.1, "D3Q19", "entropic", flows)
        for flows in (("road",), ("cavity", "body"))
    )
    assert one == other


@pytest.mark.parametrize(
    "label",
    [
        "trt",
        "trt+smagorinsky",
        "regularized(omega_bulk=1)+smagorinsky",
        "a(b=0.5; c=2)",
        "mine(basis=raw+central; rate=1e-05)+qr",
    ],
)
def test_labels(label):
    assert label_of(*parts_of(label)) == label


@pytest.mark.parametrize(
    "velocity", [["0.01*x/nx", 0], lambda x, y: [0 * x + 0.01, 0 * x], np.full((9, 2), [0.01, 0])]
)
def test_a_wall_that_moves_along_itself_is_no_inlet(velocity):
    """Also with a function or an array for its velocity, which is 0 across the wall."""
    walls = {"name": "bounce_back", "where": ["x-", "x+", "y-"]}
    lid = {"name": "bounce_back", "where": ["y+"], "velocity": velocity}
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [9, 8]},
        "fluid": {"viscosity": 0.1},
        "boundary": [walls, lid],
        "run": {"steps": 1},
    }
    assert limits.flows(parse_case(tables)) == ("cavity",)
    lid["name"] = "zou_he"
    assert "body" in limits.flows(parse_case(tables)) or isinstance(velocity[0], str)


def test_parameters_that_were_measured_have_limits_of_their_own():
    """A higher limit than without them, and no remark on other parameters."""
    assert "recursive_regularized(omega_bulk=1)" in limits.measured_on("D3Q19")
    case = load_case(ROOT / "cases/sphere_in_channel.toml")
    assert case.lattice.name == "D3Q19"
    fluid = case.fluids[0]
    found = {}
    for omega_bulk in (None, 1.0, 1.5):
        table = {"name": "recursive_regularized", "omega_bulk": omega_bulk}
        changed = fluid.model_copy(update={"collision": make("collisions", table)})
        changed = changed.model_copy(update={"viscosity": 0.06 / 200})
        found[omega_bulk] = limits.stability(case, changed, 0.06)
    assert [level for _, level in found.values()] == ["poor", "good", "poor"]
    said = ["default parameters" in sentence for sentence, _ in found.values()]
    assert said == [False, False, True]
