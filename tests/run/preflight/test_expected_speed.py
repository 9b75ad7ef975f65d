"""The expected speed on GPUs, and the line of `check` on what would be faster."""

from math import prod
from types import SimpleNamespace

import pytest
from support import ROOT

from mpilbm.case.case import load_case, parse_case
from mpilbm.core.errors import MpilbmError
from mpilbm.core.registry import find, make, names
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight.expected_speed import Estimate, links_to_bodies, of_run
from mpilbm.run.preflight.plan import plan
from mpilbm.solids import build, plane_costs
from mpilbm.view import bench

SIZE = [40, 20, 16]
COPY = 4.2e12
FORCE = {"name": "guo", "value": [1e-6, 0.0, 0.0]}
BALL = {
    "shape": {"name": "sphere", "centre": [12, 10, 8], "radius": 4.1},
    "boundary": {"name": "bounce_back"},
}


def case_of(collision="trt", layout="auto", lattice="D3Q19", setting="periodic", **more):
    size = SIZE[: int(lattice[1])]
    tables = bench.box(setting, size, lattice, collision, layout) | more
    return parse_case(tables, "box.toml")


def lines(case, gpu_memory=80.0, ranks=1) -> dict[str, tuple[str, str]]:
    found = plan(case, ranks, gpu_memory).sections["box"]
    return {each.what: (each.value, each.verdict) for each in found}


# (tables, GLUPS on one H200 in large boxes; the files are named in expected_speed.py)
MEASURED = [
    ({"layout": "ab"}, 27.1),
    ({"layout": "esopull"}, 26.7),
    ({"layout": "ab", "lattice": "D3Q27"}, 19.0),
    ({"layout": "ab", "precision": {"storage": "float16"}}, 49.7),
    ({"layout": "ab", "precision": {"compute": "float64", "storage": "float64"}}, 13.5),
    ({"layout": "moments", "collision": "regularized"}, 43.7),
    ({"layout": "moments", "collision": "regularized", "precision": {"storage": "mixed"}}, 54.3),
    ({"layout": "ab", "collision": "entropic"}, 5.82),
]


@pytest.mark.parametrize(("tables", "wanted"), MEASURED)
def test_the_speeds_that_were_measured(tables, wanted):
    case = case_of(**tables)
    assert Estimate(COPY, 512**3, 0).glups(case_512(case)) == pytest.approx(wanted, rel=0.06)


@pytest.mark.parametrize(("layout", "wanted"), [("ab", 25.2), ("moments", 34.0)])
def test_the_speed_of_the_flow_past_a_sphere_that_was_measured(layout, wanted):
    case = case_of(layout=layout, collision="regularized")
    links = 100_000  # about those of a sphere of 128 cells
    assert Estimate(COPY, 512**3, links).glups(case_512(case)) == pytest.approx(wanted, rel=0.06)


def test_an_estimate_needs_room_for_a_copy():
    assert Estimate(0.0, 512**3, 0).glups(case_of(layout="ab")) is None


def case_512(case):
    domain = case.domain.model_copy(update={"size": (512, 512, 512)})
    return case.model_copy(update={"domain": domain})


def test_links_take_time_and_solid_cells_do_not_count():
    case = case_of(layout="ab")
    cells = prod(SIZE)
    whole, half, listed = (
        Estimate(COPY, fluid, links).glups(case)
        for fluid, links in ((cells, 0), (cells // 2, 0), (cells, cells))
    )
    assert half == pytest.approx(whole / 2)
    slower = case.layout.past_bodies * 152 / (152 + plane_costs.LINK_BYTES)
    assert listed == pytest.approx(whole * slower)


def test_shares_are_those_of_storages_and_a_layout_needs_none():
    layouts = [find("layouts", name) for name in names("layouts")]
    assert all(set(layout.shares) <= set(layout.storages) for layout in layouts)
    case = case_of()
    assert case.layout.automatic
    assert not case.layout.shares
    assert Estimate(COPY, 1, 0).glups(case) is None


def test_links_are_those_of_bodies():
    case = case_of(setting="cavity", layout="ab", body=[BALL])
    slab = split(case.shape, 1, False)[0]
    (count,) = build.survey(case).body_links
    assert links_to_bodies(case, build.build(case, slab).lists) == count > 0
    nodes = case.model_copy(update={"layout": make("layouts", "indirect")})
    assert links_to_bodies(nodes, build.build(nodes, slab).lists) == 0


def test_check_states_the_speed_on_gpus_and_what_is_faster():
    found = lines(case_of())
    assert found["layout"] == ("ab", "the fastest on GPUs")
    value, note = found["speed"]
    assert value == "about 26.8 GLUPS"
    assert note == "estimated for an H200, which copies 4.2 TB/s; small boxes are slower"
    text = "about 1.6 times as fast; in the layout moments"
    assert found["faster"] == ('collision "regularized"', text)
    swept = lines(case_of("regularized"))
    assert "faster" not in swept
    assert swept["speed"][1].endswith("two steps in one pass: up to 1.5 times as fast")
    shaken = lines(case_of("regularized", force=FORCE | {"value": ["1e-6*sin(t)", 0.0, 0.0]}))
    assert shaken["speed"][1].endswith("not used here: the force depends on time")
    assert "speed" not in lines(case_of(backend={"name": "cpu"}), None)
    assert "speed" not in lines(case_of(scalar=[{"label": "T", "diffusivity": 0.05}]))


def test_two_steps_need_room_on_all_ranks():
    """Slabs of 4, 3 and 3 planes: the last one needs 4 for its window, the middle one none."""
    inlet = {"name": "equilibrium", "where": ["z-", "z+"], "velocity": [0, 0, 0.05]}
    domain = {"size": [40, 20, 10], "periodic": [True, True, False]}
    case = case_of("regularized", domain=domain, boundary=[inlet])
    why = "not used here: there are too few cells between the faces with boundary lists"
    assert lines(case, ranks=3)["speed"][1].endswith(why)
    assert lines(case, ranks=2)["speed"][1].endswith("up to 1.5 times as fast")


@pytest.mark.parametrize(
    "more",
    [
        {"lattice": "D3Q13", "collision": "mrt"},
        {"backend": {"name": "cuda", "fused": False}},
        {"scalar": [{"label": "T", "diffusivity": 0.05}]},
        {"fluid": {"viscosity": 1e-5}},  # unstable with both
        {"initial": {}, "force": FORCE},  # at an unknown speed
        {"body": [BALL | {"shape": {"name": "sphere", "centre": [12, 10, 8], "radius": 7.5}}]},
    ],
    ids=str,
)
def test_nothing_is_faster(more):
    assert "faster" not in lines(case_of(**more))


def test_a_flow_that_moments_would_change_says_by_what():
    what, text = lines(case_of("recursive_regularized", force=FORCE))["faster"]
    assert what == 'layout "moments"'
    assert text.startswith("about 1.6 times as fast; adds terms of the order F u^2")
    what, text = lines(case_of("regularized", "ab"))["faster"]
    assert (what, text) == ('layout "moments"', "about 1.6 times as fast")


def test_a_collision_that_check_would_report_is_not_proposed():
    """A lid at 10 viscosities: `regularized` is unstable beside it unless its omega_bulk is 1."""
    case = load_case(ROOT / "cases/cavity3d_re1000.toml")
    text = "about 1.6 times as fast; with omega_bulk = 1; in the layout moments"
    assert lines(case)["faster"] == ('collision "regularized"', text)


def test_an_equal_collision_is_proposed_at_any_reynolds_number():
    more = {"fluid": {"viscosity": 1e-5}, "initial": {"u": [0.05, 0.0, 0.0]}}
    what, text = lines(case_of("central_moment", lattice="D3Q27", **more))["faster"]
    assert (what, "with omega_bulk = 1" in text) == ('collision "recursive_regularized"', True)
    more |= {"collision": {"name": "central_moment", "omega_third": 1.2}}
    other = bench.box("periodic", SIZE, "D3Q27", "central_moment", "auto") | more
    assert "faster" not in lines(parse_case(other, "box.toml"))


def test_an_error_while_copying_is_raised_on_all_ranks():
    """Otherwise the others wait for the bandwidth of this rank."""
    gathered = []

    class Comm(Serial):
        def allgather(self, value):
            gathered.append(value)
            return super().allgather(value)

    def fail(**_):
        raise MpilbmError("no memory")

    device = SimpleNamespace(kind="cuda", copy_bandwidth=fail)
    with pytest.raises(MpilbmError, match="no memory"):
        of_run(case_of(), device, 1, [], Comm())
    assert [str(each) for each in gathered] == ["no memory"]
