"""Wall models: the momentum of the wall law, mass at edges; neither cut nor layout shows."""

import numpy as np
import pytest
from support.faces import closed
from support.slabs import PRECISIONS, Cluster
from support.walls import body

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make, names

LATTICES = ["D2Q9", "D3Q15", "D3Q19", "D3Q27"]
MODEL = {"name": "wall_model", "law": "spalding", "sample": 2}


def channel(lattice: str, wall: dict, nu: float = 1e-3, size=(5, 8, 6), **tables) -> dict:
    """An unsteady flow between walls at y- and y+."""
    D = make("lattices", lattice).D
    push, size = [1e-5, 0, 2e-6][:D], list(size[:D])
    waves = ["0.05 + 0.01*sin(2*pi*x/nx)", "0.004*cos(2*pi*x/nx)", "0.02 + 0.01*cos(2*pi*x/nx)"]
    force = {"name": "guo", "value": push}
    given = {"force": force, "fluid": {"viscosity": nu}, "initial": {"u": waves[:D]}}
    found = closed(lattice, size, [wall | {"where": ["y-", "y+"]}], **(given | tables))
    found["domain"]["periodic"] = [True, False, True][:D]
    return found


def momentum(cluster: Cluster) -> np.ndarray:
    columns, planes = cluster.sums()
    D = cluster.case.dimensions
    return planes[:, [columns.index(f"momentum_{axis}") for axis in "xyz"[:D]]].sum(axis=0)


def expected(cluster: Cluster, wall: dict) -> np.ndarray:
    """The momentum that both walls give along themselves in the next step, by the law."""
    case = cluster.case
    (model,) = case.boundaries
    D, nu = case.dimensions, case.fluids[0].viscosity
    fields = cluster.fields("rho", "u")
    rho, u = (np.moveaxis(fields[name], D - 2, 0) for name in ("rho", "u"))  # y first
    total = np.zeros(D)
    for sampled in (model.sample - 1, -model.sample):
        relative = u[sampled].reshape(-1, D) - np.array(wall.get("velocity", [0] * D))
        relative[:, 1] = 0
        speed = np.sqrt((relative**2).sum(axis=1))
        for each, size, density in zip(relative, speed, rho[sampled].ravel(), strict=True):
            ratio = (model.roughness or 0.0) / model.height
            Re = max(float(size) * model.height / nu, 1e-6)
            u_tau = float(size) / float(model.law.u_plus(Re, ratio))
            (inverse,) = case.fluids[0].collision.velocity([1.0], float(density))
            total -= u_tau**2 / inverse * each / size
    return total


WALLS = [MODEL | {"law": name} for name in names("wall_laws")]
WALLS += [
    MODEL | {"sample": 1},
    MODEL | {"sample": 3, "roughness": 0.1},
    MODEL | {"law": "log", "roughness": 0.3},
]


def gained(lattice: str, wall: dict, steps: int = 3, **tables) -> tuple[np.ndarray, np.ndarray]:
    """What the fluid gains from the walls in a step, and what the law demands; along the walls."""
    cluster = Cluster(channel(lattice, wall, **tables)).start().run(steps)
    force = np.array(cluster.case.fluids[0].force.value) * np.prod(cluster.case.domain.size)
    before, demanded = momentum(cluster), expected(cluster, wall)
    found = momentum(cluster.run(1)) - before - force
    along = np.arange(cluster.case.dimensions) != 1
    return found[along], demanded[along]


@pytest.mark.parametrize("wall", WALLS, ids=str)
def test_the_momentum_is_that_of_the_law(wall):
    found, demanded = gained("D3Q19", wall)
    assert np.abs(demanded).min() > 1e-5
    np.testing.assert_allclose(found, demanded, rtol=1e-11)


@pytest.mark.parametrize("lattice", [each for each in LATTICES if each != "D3Q19"])
def test_the_momentum_does_not_depend_on_the_links(lattice):
    """Nor on the velocity of the wall."""
    wall = MODEL | {"velocity": [-0.02, 0, 0.01][: int(lattice[1])]}
    found, demanded = gained(lattice, wall)
    np.testing.assert_allclose(found, demanded, rtol=1e-11)


def test_the_momentum_of_an_incompressible_fluid_is_that_of_rho_0():
    given = {"collision": {"name": "bgk", "equilibrium": {"name": "incompressible"}}}
    u = ["0.05 + 0.01*sin(2*pi*x/nx)", "0.01*cos(2*pi*x/nx)"]
    given["initial"] = {"rho": 1.2, "u": u}
    found, demanded = gained("D2Q9", MODEL, **given)
    np.testing.assert_allclose(found, demanded, rtol=1e-11)


@pytest.mark.parametrize("sample", [2, 3])
def test_no_wall_samples_the_flow_behind_a_body(sample):
    """A plate in the second cells: the fluid below is at rest, and the wall has no stress."""
    plate = {"name": "box", "lower": [0, 1], "upper": [5, 2]}
    given = {"initial": {"u": ["where(y < 2, 0, 0.05)", 0]}}
    given |= {"force": {"name": "guo", "value": ["where(y < 2, 0, 1e-5)", 0]}}
    walls = channel("D2Q9", MODEL | {"sample": sample}, **given)
    u = Cluster(walls | {"body": [body({"name": "bounce_back"}, "plate", **plate)]}).start().run(3)
    np.testing.assert_array_equal(u.fields("u")["u"][0], 0)


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_the_stress_of_a_steady_channel_is_that_of_the_force(lattice):
    """u_tau^2 = G h to rounding, at y+ = 10 of the sampled velocity."""
    h, u_tau, nu = 2, 0.01, 0.0015
    push, start = ([each, 0, 0][: int(lattice[1])] for each in (u_tau**2 / h, 0.08))
    tables = channel(lattice, MODEL, nu, (2, 2 * h, 2), force={"name": "guo", "value": push})
    tables["initial"] = {"u": start}
    cluster = Cluster(tables).start().run(20_000)
    found = expected(cluster, MODEL)[0] / (2 * np.prod(cluster.case.domain.size) / (2 * h))
    assert found == pytest.approx(-(u_tau**2), rel=1e-9)


def test_fluid_that_moves_with_the_wall_stays_as_it_is():
    """The relative velocity is 0, and so is the stress; single precision, to rounding."""
    wall = MODEL | {"velocity": [0.06, 0, -0.03]}
    given = {"initial": {"u": wall["velocity"]}, "layout": {"name": "aa"}}
    tables = channel("D3Q27", wall, precision=PRECISIONS["single"], **given)
    del tables["force"]
    u = Cluster(tables).start().run(200).fields("u")["u"]
    np.testing.assert_allclose(u, np.broadcast_to(wall["velocity"], u.shape), atol=2e-6)


@pytest.mark.parametrize("lattice", LATTICES)
def test_edges_conserve_the_mass_and_no_cut_shows(lattice):
    """A box of wall models and other faces, with a body at a wall; also in `moments`."""
    D = int(lattice[1])
    faces = ["x-", "x+", "y-", "y+", "z-", "z+"][: 2 * D]
    others = {"name": "bounce_back", "where": faces[1:2]}
    lid = MODEL | {"where": faces[-1:], "velocity": [0.05, 0.03, 0][3 - D :][:D], "law": "power"}
    walls = [MODEL | {"where": [faces[0], *faces[2:-1]], "roughness": 0.2}, others, lid]
    ball = {"name": "sphere", "centre": [4.3, 1.2, 5.5][:D], "radius": 1.8}
    stone = body({"name": "bounce_back"}, "stone", **ball)
    u = ["0.03*sin(2*pi*y/ny)", "0.02*sin(2*pi*x/nx)", "0.02*sin(2*pi*x/nx)"][:D]
    given = {"body": [stone], "initial": {"rho": 1, "u": u}, "fluid": {"viscosity": 0.01}}

    def cluster(slabs: int, layout: str = "ab") -> Cluster:
        tables = closed(lattice, [9, 8, 12][:D], walls, layout={"name": layout}, **given)
        return Cluster(tables, slabs)

    whole = cluster(1).start()
    before = whole.sums()[1][:, 0].sum()
    half = whole.run(10).state()
    after = whole.run(10).sums()[1][:, 0].sum()
    assert abs(after / before - 1) < 1e-14
    for slabs, layout in ((2, "aa"), (2, "esopull"), (1, "indirect")):
        resumed = cluster(slabs, layout).restore(half, 10).run(10)
        assert np.array_equal(resumed.state(), whole.state())
    moments = cluster(1, "moments").start().run(20)
    assert np.array_equal(cluster(2, "moments").start().run(20).state(), moments.state())
    for name, values in whole.fields("rho", "u").items():
        np.testing.assert_allclose(moments.fields(name)[name], values, atol=1e-12)


def problems(wall: dict, **tables) -> str:
    with pytest.raises(CaseError) as error:
        parse_case(channel("D3Q19", MODEL | wall, **tables), "test.toml")
    return str(error.value)


def test_mistakes_are_explained():
    with pytest.raises(CaseError, match='law: missing; write law = "log" or "power" or "spald'):
        parse_case(channel("D2Q9", {"name": "wall_model"}), "test.toml")
    assert "'spaldin' is not one of the wall laws" in problems({"law": "spaldin"})
    assert "roughness: the law 'power' has none; allowed: log, spalding" in problems(
        {"law": "power", "roughness": 0.1}
    )
    assert "found 1.5; allowed: less than the height of the sampled velocity, 1.5" in problems(
        {"roughness": 1.5}
    )
    assert "sample: found 3 at y-; the box has 2 cells along y" in problems(
        {"sample": 3}, size=(4, 2, 4)
    )
    assert "sample" in problems({"sample": 4})
    closure = {"name": "power_law", "consistency": 0.01, "index": 0.7}
    closure |= {"viscosity_min": 1e-3, "viscosity_max": 0.1}
    assert "viscosity that differs from cell to cell" in problems(
        {}, collision={"name": "trt", "closure": closure}
    )
