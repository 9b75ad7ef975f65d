"""Flows with known answers: viscosity, order of accuracy, walls, mass, sums over the box.

More than 20 s: each lattice, collision and force has a kernel text of its own.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.flows import first_lattice, flow, relative, velocity, wave
from support.pairs import ALL_COMBINATIONS, defined
from support.slabs import Cluster

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.core.registry import find, make, names

LATTICES, COLLISIONS, FORCES = names("lattices"), names("collisions"), names("forcing")
CHANNELS = ("D2Q9", "D3Q19")  # each is a program to compile
if ALL_COMBINATIONS:
    CHANNELS = [n for n in LATTICES if defined(n, "trt")]


def with_equilibrium(collision, equilibrium) -> dict:
    return {"name": collision, "equilibrium": {"name": equilibrium}}


def slope(sizes, errors) -> float:
    """Order of accuracy."""
    return -np.polyfit(np.log(sizes), np.log(errors), 1)[0]


def channel(lattice, collision, H, nu=0.1, force=None) -> dict:
    """A force along x between walls across the slowest axis, from the exact parabola on."""
    force = force or (make("collisions", collision).forces or ["guo"])[0]
    D, U = make("lattices", lattice).D, 0.4 / H
    axis, size = "xyz"[D - 1], [3, 4, H][-D:]
    parabola = f"4*{U}*{axis}*({H}-{axis})/{H}**2"
    return flow(
        lattice,
        collision,
        size,
        nu,
        domain={"size": size, "periodic": [True] * (D - 1) + [False]},
        force={"name": force, "value": [8 * nu * U / H**2] + [0] * (D - 1)},
        boundary=[{"name": "bounce_back", "where": [f"{axis}-", f"{axis}+"]}],
        initial={"u": [parabola] + [0] * (D - 1)},
    )


def cavity(lattice, size, lid, periodic=False, **tables) -> dict:
    """A lid that slides at the upper end of the slowest axis; closed, or open along the others."""
    D = make("lattices", lattice).D
    faces = [f"{axis}{side}" for axis in "xyz"[:D] for side in "-+"]
    faces = faces[-2:] if periodic else faces
    return flow(
        lattice,
        "bgk",
        size,
        domain={"size": size, "periodic": [periodic] * (D - 1) + [False]},
        boundary=[
            {"name": "bounce_back", "where": faces[:-1]},
            {"name": "bounce_back", "where": faces[-1:], "velocity": lid},
        ],
        **tables,
    )


def through(length, H, U) -> dict:
    """In at U, out at rho = 1, between walls."""
    return flow(
        "D2Q9",
        "trt",
        [length, H],
        domain={"size": [length, H]},
        initial={"u": [U, 0]},
        boundary=[
            {"name": "equilibrium", "where": ["x-"], "velocity": [U, 0]},
            {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
            {"name": "bounce_back", "where": ["y-", "y+"]},
        ],
    )


@pytest.fixture(scope="module", autouse=True)
def kernels():
    """Compile all kernels of this file on all cores."""
    vortices = [vortex(c, 16) for c in COLLISIONS]
    channels = [channel(n, "trt", 9, force=force) for n in CHANNELS for force in FORCES]
    channels += [channel(first_lattice(c), c, 8) for c in COLLISIONS]
    cavities = [cavity("D2Q9", [4, 5], [0.1, 0]), cavity("D3Q19", [4, 5, 6], [0.1, 0, 0])]
    tables = [*vortices, *channels, *cavities, through(10, 5, 0.02)]
    programs = [codegen.generate(parse_case(t, "test.toml")) for t in tables]
    with ThreadPoolExecutor() as pool:
        list(pool.map(make("backends", "cpu").open().compile, programs))


def vortex(collision, N, U=0.01, nu=0.05) -> dict:
    """Taylor's and Green's in 2D, with its pressure; one cell deep in 3D."""
    lattice = first_lattice(collision)
    D = make("lattices", lattice).D
    rho = f"1 - 0.75*{U}**2*(cos(4*pi*x/nx) + cos(4*pi*y/ny))"
    u = [f"-{U}*cos(2*pi*x/nx)*sin(2*pi*y/ny)", f"{U}*sin(2*pi*x/nx)*cos(2*pi*y/ny)", 0]
    return flow(lattice, collision, [N, N, 2][:D], nu, initial={"rho": rho, "u": u[:D]})


@pytest.mark.parametrize("collision", COLLISIONS)
def test_taylor_green_is_second_order(collision):
    """Diffusive scaling: U falls with 1/N, so the Mach number's error does with 1/N^2 as well."""
    nu, sizes = 0.05, (16, 32)

    def error(N):
        U, k = 0.64 / N, 2 * np.pi / N
        steps = round(0.35 / (nu * (2 * np.pi / 16) ** 2)) * (N // 16) ** 2
        u = velocity(Cluster(vortex(collision, N, U, nu)).start().run(steps))
        found = u.reshape(-1, N, N, u.shape[-1])[0, ..., :2]
        y, x = np.meshgrid(*[(np.arange(N) + 0.5) * k] * 2, indexing="ij")
        exact = U * np.stack([-np.cos(x) * np.sin(y), np.sin(x) * np.cos(y)], axis=-1)
        return relative(found, exact * np.exp(-2 * nu * k**2 * steps))

    errors = [error(N) for N in sizes]
    assert slope(sizes, errors) > 1.98
    assert errors[-1] < 0.0065


def along_x(profile, u) -> np.ndarray:
    """u_x of each plane, as a field of the shape of u."""
    return profile[:, None, None, None] * (np.arange(u.shape[-1]) == 0) * np.ones_like(u)


def error_of_channel(lattice, collision, H, nu=0.1, force=None) -> float:
    """Relative L2 error of u_x, long after a disturbance has died as exp(-pi^2 nu t/H^2)."""
    cluster = Cluster(channel(lattice, collision, H, nu, force)).start().run(round(2 * H**2 / nu))
    u = velocity(cluster)
    y = np.arange(H) + 0.5
    return relative(u, along_x(4 * (0.4 / H) * y * (H - y) / H**2, u))


def test_poiseuille_between_half_way_walls_is_second_order_for_bgk():
    errors = [error_of_channel("D2Q9", "bgk", H) for H in (8, 16, 32)]
    assert slope((8, 16, 32), errors) == pytest.approx(2, abs=0.02)
    assert errors[0] < 0.02


@pytest.mark.parametrize("collision", COLLISIONS)
def test_poiseuille_with_each_collision(collision):
    """Half-way walls lie where the odd rates put them, a little off with most."""
    assert error_of_channel(first_lattice(collision), collision, 8) < 0.025


@pytest.mark.parametrize("nu", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("force", FORCES)
@pytest.mark.parametrize("lattice", CHANNELS)
def test_poiseuille_is_exact_for_trt_with_magic_3_16(lattice, force, nu):
    assert error_of_channel(lattice, "trt", 9, nu, force) < 1e-9


def test_poiseuille_needs_the_right_odd_rate_in_mrt():
    """As in trt, but for what the other even rates do; the usual rates put walls elsewhere."""
    mrt = {"name": "mrt", "s_q": 1 / (3 / 16 / 0.3 + 0.5)}
    assert error_of_channel("D2Q9", mrt, 9, nu=0.1) < 1e-4
    assert error_of_channel("D2Q9", "mrt", 9, nu=0.1) > 1e-2


def test_couette_is_exact():
    """From rest to a straight line between the walls, half a cell outside the first and last."""
    H, U = 8, 0.05
    case = cavity("D2Q9", [3, H], [U, 0], periodic=True)
    u = velocity(Cluster(case).start().run(40 * H**2))
    assert relative(u, along_x(U * (np.arange(H) + 0.5) / H, u)) < 1e-11


BALL = {
    "label": "ball",
    "shape": {"name": "sphere", "centre": [3.2, 5.1, 4.4], "radius": 1.6},
    "boundary": {"name": "bounce_back"},
}
DISC = BALL | {"shape": {"name": "sphere", "centre": [4.1, 5.2], "radius": 1.7}}
BOXES = {
    "D2Q9": ([13, 9], [0.1, 0], [DISC]),
    "D3Q19": ([7, 13, 9], [0.06, -0.05, 0], [BALL]),
}


def closed(lattice, slabs=1) -> Cluster:
    size, lid, body = BOXES[lattice]
    return Cluster(cavity(lattice, size, lid, body=body), slabs).start()


@pytest.mark.parametrize("lattice", BOXES)
def test_mass_stays_in_a_closed_box(lattice):
    cluster = closed(lattice)
    columns, before = cluster.sums()
    after = cluster.run(1000).sums()[1]
    mass = [planes[:, columns.index("mass")].sum() for planes in (before, after)]
    assert mass[0] == cluster.solvers[0].geometry.fluid_cells.sum()
    assert mass[1] == pytest.approx(mass[0], rel=1e-13)
    assert np.abs(velocity(cluster)).max() > 0.01


def difference(values, axis, fluid) -> np.ndarray:
    """Central; one-sided beside a solid or a wall, zero between two."""
    low, high = (np.roll(fluid, shift, axis) for shift in (1, -1))
    end = [slice(None)] * fluid.ndim
    for side, k in ((low, 0), (high, -1)):
        end[axis] = k
        side[tuple(end)] = False
    below = np.where(low, values - np.roll(values, 1, axis), 0)
    above = np.where(high, np.roll(values, -1, axis) - values, 0)
    return (below + above) / np.maximum(1, low.astype(int) + high)


def curl(u, fluid) -> np.ndarray:
    """(planes, rows, nx, 3) in 3D, (planes, rows, nx, 1) in 2D; 0 in solids."""
    D = u.shape[-1]
    axes = {2: (2, 0), 3: (2, 1, 0)}[D]  # of the array, for x, y, z
    pairs = {2: [(0, 1)], 3: [(1, 2), (2, 0), (0, 1)]}[D]
    parts = [
        difference(u[..., b], axes[a], fluid) - difference(u[..., a], axes[b], fluid)
        for a, b in pairs
    ]
    return np.stack(parts, axis=-1) * fluid[..., None]


@pytest.mark.parametrize("slabs", [1, 3])
@pytest.mark.parametrize("lattice", BOXES)
def test_sums_and_vorticity_are_those_of_the_fields(lattice, slabs):
    cluster = closed(lattice, slabs).run(300)
    columns, planes = cluster.sums()
    fields = cluster.fields("rho", "u", "vorticity")
    fluid = ~np.concatenate(cluster.each(lambda s: s.solid(0, s.slab.planes)))
    rho, u = fields["rho"] * fluid, fields["u"]
    vorticity = curl(u, fluid)
    assert not u[~fluid].any()
    assert np.allclose(fields["vorticity"].reshape(vorticity.shape), vorticity, 0, 1e-15)
    expected = {
        "mass": rho,
        **{f"momentum_{a}": rho * u[..., k] for k, a in enumerate("xyz"[: u.shape[-1]])},
        "kinetic_energy": rho * (u**2).sum(-1) / 2,
        "enstrophy": (vorticity**2).sum(-1) / 2,
        "nonfinite": 0 * rho,
    }
    assert set(columns) == {*expected, "max_speed"}
    for name, values in expected.items():
        found = planes[:, columns.index(name)]
        scale = np.abs(values).sum(axis=(1, 2))
        assert np.all(np.abs(found - values.sum(axis=(1, 2))) <= 1e-12 * scale), name
    fastest = (u**2).sum(-1).max(axis=(1, 2))
    assert planes[:, columns.index("max_speed")] ** 2 == pytest.approx(fastest, rel=1e-12)


@pytest.mark.parametrize("force", FORCES)
@pytest.mark.parametrize("equilibrium", names("equilibria"))
def test_momentum_of_a_periodic_box_grows_by_the_force(equilibrium, force):
    """Also where the density varies: the sums are of what is conserved, also at step 0."""
    lattice = (find("equilibria", equilibrium).lattices or ["D2Q9"])[0]
    D, steps = make("lattices", lattice).D, 10
    size, F = [5, 4, 7][:D], np.array([3e-4, -2e-4, 1e-4])[:D]
    case = flow(lattice, with_equilibrium("mrt", equilibrium), size)
    u = ["0.05*cos(2*pi*x/nx)", 0.02, 0][:D]
    case["initial"] = {"rho": "1 + 0.1*cos(2*pi*x/nx)", "u": u}
    case["force"] = {"name": force, "value": list(F)}
    cluster = Cluster(case).start()
    columns, before = cluster.sums()
    gained = (cluster.run(steps).sums()[1] - before).sum(axis=0)
    first = columns.index("momentum_x")
    assert gained[first : first + D] == pytest.approx(steps * F * np.prod(size), rel=1e-11)
    assert abs(gained[columns.index("mass")]) < 1e-12


def test_vorticity_of_a_periodic_flow_wraps_around():
    cluster = Cluster(wave("D2Q9", "bgk", (1, 2), (2, -1), N=12), 2).start()
    fields = cluster.fields("u", "vorticity")
    u = fields["u"][:, 0]
    slopes = [
        (np.roll(u[..., component], -1, axis) - np.roll(u[..., component], 1, axis)) / 2
        for component, axis in ((1, 1), (0, 0))
    ]
    assert np.allclose(fields["vorticity"][:, 0], slopes[0] - slopes[1], 0, 1e-16)
    assert np.abs(slopes).max() > 1e-3


def test_inlet_and_outlet_lead_to_a_steady_channel_flow():
    """The same flux through all sections, a parabola half-way down, the pressure it takes."""
    length, H, U = 60, 11, 0.02
    cluster = Cluster(through(length, H, U)).start().run(9000)
    before = velocity(cluster)
    fields = cluster.run(1000).fields("rho", "u")
    rho, u = fields["rho"][:, 0], fields["u"][:, 0]
    assert relative(before[:, 0], u) < 1e-12
    momentum = rho * u[..., 0]
    flux = momentum.sum(axis=0)
    assert flux[5:-5] == pytest.approx(flux[length // 2], rel=1e-12)
    assert flux[length // 2] == pytest.approx(U * H, rel=0.02)
    y = np.arange(H) + 0.5
    parabola = 6 * y * (H - y) / H**2 * flux[length // 2] / H
    assert momentum[:, length // 2] == pytest.approx(parabola, rel=0.005)
    assert np.abs(u[:, length // 2, 1]).max() < 1e-4 * U
    drop = np.diff(rho.mean(axis=0))[20:40] / 3  # grad p = -12 nu u_mean/H^2
    assert drop == pytest.approx(-12 * 0.1 * flux[length // 2] / H**3, rel=0.005)
