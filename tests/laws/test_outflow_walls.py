"""A flow that leaves through a wall: unstable where it is fast against the viscosity."""

import numpy as np
import pytest
from support.findings import warnings_of
from support.slabs import Cluster
from support.waves import Waves

from mpilbm.case.case import parse_case
from mpilbm.case.velocity_bounds import speed_along
from mpilbm.physics.boundaries import Boundary


def leaving(out, nu, lattice="D3Q19", wall="bounce_back", length=32):
    """A stream from z- to z+, where it leaves through a wall."""
    ends = [
        {"name": "equilibrium", "where": ["z-"], "velocity": [0, 0, out]},
        {"name": wall, "where": ["z+"], "velocity": [0, 0, out]},
    ]
    return {
        "lattice": {"name": lattice},
        "domain": {"size": [8, 8, length], "periodic": [True, True, False]},
        "fluid": {"viscosity": nu},
        "collision": {"name": "mrt" if lattice == "D3Q13" else "trt"},
        "precision": {"compute": "float64", "storage": "float64"},
        "initial": {"u": ["1e-6*sin(11*x + 7*y*y + 5*z)", 0, out]},
        "boundary": ends,
        "run": {"steps": 1},
    }


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(
    ("lattice", "ratio", "warned"),
    [("D3Q19", 2.5, False), ("D3Q19", 5, True), ("D3Q13", 1.8, False), ("D3Q13", 3, True)],
)
def test_a_wall_with_too_much_outflow_gives_a_warning_and_is_unstable(lattice, ratio, warned):
    case = leaving(0.04, 0.04 / ratio, lattice)
    found = [
        text for text in warnings_of(parse_case(case, "test.toml")) if "leaves through" in text
    ]
    assert bool(found) == warned
    assert all("boundary.1.velocity" in text and "z+ at 0.04" in text for text in found)
    across = np.abs(Cluster(case).start().run(1500).fields("u")["u"][..., :2]).max()
    assert (across > 1e-4) == warned


@pytest.mark.parametrize(
    ("collision", "wall", "ratio", "warned"),
    [
        ("regularized", "bounce_back", 20, True),
        ("regularized", "bounce_back", 4, False),
        ("recursive_regularized", "interpolated", 20, True),
        ("recursive_regularized", "full_way", 20, False),
        ("recursive_regularized", "equilibrium", 20, False),
        ("trt", "bounce_back", 20, False),
    ],
)
def test_a_wall_that_slides_too_fast_gives_a_warning_and_is_unstable(
    collision, wall, ratio, warned
):
    """Fluid that moves with the wall y- at 0.06; y+ is a plane of symmetry."""
    case = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [32, 16], "periodic": [True, False]},
        "fluid": {"viscosity": 0.06 / ratio},
        "collision": {"name": collision},
        "precision": {"compute": "float64", "storage": "float64"},
        "initial": {"u": [0.06, "1e-6*sin(11*x + 7*y*y)"]},
        "boundary": [
            {"name": wall, "where": ["y-"], "velocity": [0.06, 0]},
            {"name": "free_slip", "where": ["y+"]},
        ],
        "run": {"steps": 1},
    }
    found = [t for t in warnings_of(parse_case(case, "test.toml")) if "along itself" in t]
    assert bool(found) == warned
    assert all("boundary.0.velocity" in text and "y- moves" in text for text in found)
    across = np.abs(Cluster(case).start().run(1000).fields("u")["u"][..., 1]).max()
    assert (across > 1e-4) == warned


class Belt(Boundary):
    """A wall that moves at a speed of its own, without the key `velocity`."""

    speed: float = 0.06

    @property
    def wall_velocity(self):
        """Along x."""
        return (self.speed, 0.0)


def test_a_wall_without_the_key_velocity_has_a_speed():
    walls = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    tables = {"lattice": {"name": "D2Q9"}, "domain": {"size": [8, 6], "periodic": [True, False]}}
    tables |= {"fluid": {"viscosity": 0.1}, "run": {"steps": 1}, "boundary": walls}
    case = parse_case(tables, "test.toml")
    assert speed_along(case, Belt(where=("y-",)), "y-") == (0.06, "")


def test_outflow_conditions_and_inflow_through_walls_give_no_warning():
    steady = leaving(0.04, 0.008, wall="tamm_mott_smith")  # stable there, too
    for case in (leaving(0.04, 0.004, wall="equilibrium"), leaving(-0.04, 0.004), steady):
        assert not any("leaves" in text for text in warnings_of(parse_case(case, "test.toml")))


FORMULA, TIMED = "0.04*sin(pi*x/nx)", "where(t > 600, 0.04, -0.04)"


@pytest.mark.parametrize("given", [FORMULA, TIMED, "u.npy", "u.csv"])
@pytest.mark.parametrize("face", ["z-", "z+"])
def test_walls_whose_velocity_varies_are_asked_where_and_when_it_is_most(given, face, tmp_path):
    """A velocity along z leaves through z+; where it turns, through each face at its time."""
    np.save(tmp_path / "u.npy", np.full((8, 8, 3), 0.04))
    (tmp_path / "u.csv").write_text("t,u,v,w\n0,0,0,0.03\n900,0,0,0.04\n")
    case = leaving(0.04, 0.004)
    velocity = str(tmp_path / given) if given.startswith("u.") else [0, 0, given]
    case["boundary"][1] |= {"where": [face], "velocity": velocity}
    case["boundary"][0]["where"] = ["z-" if face == "z+" else "z+"]
    case["run"]["steps"] = 1000
    found = [text for text in warnings_of(parse_case(case, "test.toml")) if "leaves" in text]
    when = {TIMED: "601" if face == "z+" else "0", "u.csv": "900"}
    expected = f"{face} at 0.04 at t = {when[given]};" if given in when else f"{face} at 0.0"
    assert [expected in text for text in found] == [True] * (face == "z+" or given == TIMED)


@pytest.mark.parametrize(("nu", "grows"), [(0.016, False), (0.005, True)])
def test_a_wall_through_which_too_much_leaves_at_one_place_is_unstable(nu, grows):
    case = leaving(0.04, nu)
    for end in case["boundary"]:
        end["velocity"] = [0, 0, FORMULA]
    across = np.abs(Cluster(case).start().run(800).fields("u")["u"][..., 1]).max()
    assert (across > 1e-4) == grows


@pytest.mark.parametrize("collision", ["bgk", "trt", "regularized"])
@pytest.mark.parametrize("nu", [0.004, 0.016, 0.064])
def test_the_odd_even_wave_grows_from_2_sqrt_3_viscosities_on(collision, nu):
    def growth(ratio):
        waves = Waves("D2Q9", {"name": collision}, nu, (0, ratio * nu))
        return max(waves.growth_between_walls([k * np.pi / 4]) for k in range(5))

    limit = 2 * np.sqrt(3)
    assert growth(0.95 * limit) < 1e-7 < 1e-5 < growth(1.05 * limit)


@pytest.mark.parametrize(
    ("collision", "u", "grows"),
    [("regularized", 0.02, 0), ("regularized", 0.05, 0.016), ("trt", 0.1, 0)],
)
def test_waves_beside_walls_that_slide(collision, u, grows):
    """tau = 0.514 on D3Q19."""
    waves = Waves("D3Q19", {"name": collision}, 0.014 / 3, (u, 0, 0))
    along = [np.pi * k / 4 for k in range(5)]
    found = max(waves.growth_between_walls([kx, kz]) for kx in along for kz in along[::2])
    assert found == pytest.approx(grows, abs=1e-6 if not grows else 1e-3)


@pytest.mark.parametrize("collision", ["bgk", "trt", "recursive_regularized"])
@pytest.mark.parametrize(("squared", "grows"), [(0.5, False), (12, True)])
def test_a_wave_of_three_cells_grows_beside_walls_that_slide(collision, squared, grows):
    """squared: u^2 / nu; with omega_bulk = 1 waves of two cells are damped."""
    tables = {"name": collision} | ({"omega_bulk": 1.0} if collision[:3] == "rec" else {})
    waves = Waves("D2Q9", tables, 0.1**2 / squared, (0.1, 0))
    found = max(waves.growth_between_walls([k * np.pi / 12]) for k in range(13))
    assert (found > 1e-4) == grows


def sliding(u, nu, start, wall="bounce_back", inlet=None, **collision):
    """The warnings of a wall that moves along x at u, below fluid with the velocity `start`."""
    ends = [{"name": "equilibrium", "where": ["x-"], "velocity": [inlet, 0]}] if inlet else []
    ends += [{"name": "copy", "where": ["x+"], "rho": 1.0}] if inlet else []
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [16, 8], "periodic": [not inlet, False]},
        "fluid": {"viscosity": nu},
        "collision": {"name": "trt"} | collision,
        "initial": {"u": start},
        "boundary": [
            {"name": wall, "where": ["y-"], "velocity": [u, 0]},
            {"name": "free_slip", "where": ["y+"]},
            *ends,
        ],
        "run": {"steps": 1},
    }
    found = [t for t in warnings_of(parse_case(tables, "test.toml")) if "along itself" in t]
    return " ".join(found)


def test_fluid_that_moves_with_a_half_way_wall_gives_a_warning():
    found = sliding(0.1, 1e-3, [0.1, 0])
    assert "y- moves along itself at 0.1, 100 viscosities; above 44.7 fluid" in found
    assert "is unstable; use the boundary wall_model or full_way" in found
    assert sliding(0.1, 1e-3, [0, 0], inlet=0.09)
    regularized = {"name": "recursive_regularized"}
    assert "unless its omega_bulk is 1; set it, or" in sliding(0.1, 1e-3, [0, 0], **regularized)
    assert "unless" not in sliding(0.1, 1e-3, [0.1, 0], **regularized, omega_bulk=1.0)
    assert not sliding(0.1, 1e-3, [0, 0])  # a Couette flow
    assert not sliding(0.1, 1e-3, [0.04, 0])
    assert not sliding(0.1, 6e-3, [0.1, 0])
    assert not sliding(0.1, 1e-3, [0.1, 0], wall="full_way")


@pytest.mark.parametrize(
    ("side", "outlet", "warned"),
    [
        ("guo", "characteristic", True),
        ("regularized", "copy", True),
        ("equilibrium", "characteristic", False),
        ("full_way", "characteristic", False),
    ],
)
def test_roads_at_nodes_that_meet_an_outlet_give_a_warning(side, outlet, warned):
    """Those with a warning make the velocity of the edge wrong by more than 40 %."""
    u = [0.05, 0.0]
    case = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [24, 12]},
        "fluid": {"viscosity": 0.1},
        "initial": {"u": u},
        "boundary": [
            {"name": "equilibrium", "where": ["x-"], "velocity": u},
            {"name": outlet, "where": ["x+"], "rho": 1.0},
            {"name": side, "where": ["y-"], "velocity": u},
            {"name": "free_slip", "where": ["y+"]},
        ],
        "run": {"steps": 1},
    }
    found = [t for t in warnings_of(parse_case(case, "test.toml")) if "meets x+" in t]
    assert bool(found) == warned
    edge = Cluster(case).start().run(600).fields("u")["u"].reshape(12, 24, 2)[0, -1, 0]
    assert (abs(edge / u[0] - 1) > 0.4) == warned
