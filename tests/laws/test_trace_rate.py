"""`omega_bulk` of the regularized collisions: the damping of sound, in every layout."""

import numpy as np
import pytest
from support.findings import OUTLET, SIDES, tables, warnings_of
from support.flows import flow
from support.slabs import Cluster
from support.waves import Waves

from mpilbm.case.case import parse_case
from mpilbm.core.registry import make
from mpilbm.physics.collisions.trace_rate import WALLS

NAMES = ("regularized", "recursive_regularized")


def trace(name, omega_bulk) -> dict:
    """The table of the collision; without the key if `omega_bulk` is None."""
    return {"name": name} | ({} if omega_bulk is None else {"omega_bulk": omega_bulk})


over_names = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("omega_bulk", [None, 1, 1.4])
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q27"])
@over_names
def test_sound_decays_with_shear_and_bulk_viscosity(name, lattice, omega_bulk):
    """As exp(-nu_L k^2 t / 2) with nu_L = 2 (D - 1) nu / D + 2 cs2 (1/omega_bulk - 1/2) / D."""
    D, nu, k = int(lattice[1]), 0.02, 2 * np.pi / 200
    waves = Waves(lattice, trace(name, omega_bulk), nu)
    values = np.linalg.eigvals(waves.step([k, 0, 0][:D]))
    sound = values[np.argmin(abs(np.angle(values) - k / np.sqrt(3)))]
    collision = make("collisions", trace(name, omega_bulk))
    expected = collision.sound_viscosity(nu, make("lattices", lattice))
    bulk = nu if omega_bulk is None else (1 / omega_bulk - 0.5) / 3
    assert expected == pytest.approx(2 * (D - 1) / D * nu + 2 / D * bulk)
    assert -2 * np.log(abs(sound)) / k**2 == pytest.approx(expected, rel=2e-3)


@over_names
def test_the_shear_viscosity_stays(name):
    waves = Waves("D2Q9", {"name": name, "omega_bulk": 1}, 0.01)
    assert waves.viscosity([0.1, 0], [0, 1]) == pytest.approx(0.01, rel=2e-3)


def vortex(lattice, collision, **more) -> dict:
    """A vortex in the first two directions and sound along x."""
    D, N = int(lattice[1]), 12
    u = ["0.05*sin(2*pi*x/nx)*cos(2*pi*y/ny)", "-0.05*cos(2*pi*x/nx)*sin(2*pi*y/ny)", "0.01"][:D]
    start = {"u": u, "rho": "1 + 0.01*sin(2*pi*x/nx)"}
    return flow(lattice, collision, [N, N, 5][:D], 1e-3, initial=start, **more)


def state(tables) -> np.ndarray:
    found = Cluster(tables).start().run(30).fields("rho", "u")
    return np.concatenate([found["rho"][..., None] - 1, found["u"]], axis=-1)


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q27"])
def test_with_the_rate_1_the_recursion_is_central_moment(lattice):
    """All central Hermite moments above the second order relax to zero in both."""
    closure = {"name": "smagorinsky"}
    one, other = (
        state(vortex(lattice, {"name": name, "closure": closure} | more))
        for name, more in (("recursive_regularized", {"omega_bulk": 1}), ("central_moment", {}))
    )
    assert np.abs(one - other).max() < 1e-14


@pytest.mark.parametrize(
    ("name", "lattice", "omega_bulk"),
    [
        ("regularized", "D3Q19", 1.3),
        ("recursive_regularized", "D3Q19", 1),
        ("recursive_regularized", "D2Q9", 1.3),
    ],
)
def test_moments_have_the_flow_of_populations(name, lattice, omega_bulk):
    collision = trace(name, omega_bulk)
    one, other = (
        state(vortex(lattice, collision, layout={"name": layout})) for layout in ("ab", "moments")
    )
    assert np.abs(one - other).max() < 1e-14
    without = state(vortex(lattice, {"name": name}, layout={"name": "moments"}))
    assert np.abs(one - without).max() > 1e-5


@pytest.mark.parametrize(
    ("nu", "collision", "warned"),
    [
        (1e-5, "regularized", True),
        (1e-5, {"name": "regularized", "omega_bulk": 1.9999}, True),
        (1e-5, {"name": "regularized", "omega_bulk": 1}, False),
        (1e-2, "regularized", False),
        (1e-5, "central_moment", False),
        (1e-5, {"name": "central_moment", "omega_bulk": 1.9999}, True),
    ],
)
def test_undamped_sound_between_inlet_and_outlet_gives_a_warning(nu, collision, warned):
    collision = {"name": collision} if isinstance(collision, str) else collision
    inlet = {"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0]}
    case = tables(boundary=[inlet, OUTLET, SIDES], fluid={"viscosity": nu}, collision=collision)
    found = [text for text in warnings_of(parse_case(case, "test.toml")) if "damps sound" in text]
    assert [text.startswith("collision.omega_bulk: ") for text in found] == [True] * warned


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
@over_names
def test_walls_that_slide_are_stable(name, lattice):
    """At ten viscosities, where a wave of two cells grows by 1.5 % a step without `omega_bulk`."""
    found = {}
    for omega_bulk in (None, 1, WALLS, 1.9):
        collision = make("collisions", trace(name, omega_bulk))
        assert (collision.fastest_wall < 10) == (omega_bulk in (None, 1.9))
        waves = Waves(lattice, trace(name, omega_bulk), 0.005, (0.05, 0, 0))
        along = [[k * np.pi / 4, 0][: waves.lattice.D - 1] for k in range(5)]
        found[omega_bulk] = max(waves.growth_between_walls(k) for k in along)
    assert max(found[1], found[WALLS]) < 1e-9 < 1e-3 < found[1.9] < 0.01 < found[None]
