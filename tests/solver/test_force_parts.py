"""Pressure and viscous part of the forces on bodies."""

import numpy as np
import pytest
from support.body_forces import LAYOUTS, OUTPUT, STILL, flow, rows, sample
from support.flows import first_lattice
from support.pairs import defined
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.core.registry import make, names
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run

SPLIT = [OUTPUT | {"split": True}]


def sheared(lattice: str, **more) -> np.ndarray:
    """Force, pressure and stress on a plate over a unit of its area, of nu u' = 1e-3."""
    D, gap, nu = make("lattices", lattice).D, 5, 0.1
    size = [4] * (D - 1) + [gap + 3]
    plate = {"name": "box", "lower": [0] * D, "upper": [4] * (D - 1) + [3]}
    speed = [1e-3 * gap / nu] + [0.0] * (D - 1)
    case = box(
        lattice,
        size=size,
        fluid={"viscosity": nu},
        precision=PRECISIONS["double"],
        initial={"u": [0] * D},
        output=SPLIT,
        body=[{"shape": plate, "boundary": {"name": "bounce_back"}}],
        **more,
    )
    top = "xyz"[D - 1]
    case["domain"]["periodic"] = [True] * (D - 1) + [False]
    case["boundary"] = [
        {"name": "bounce_back", "where": [top + "-"]},
        {"name": "bounce_back", "where": [top + "+"], "velocity": speed},
    ]
    found = sample(Cluster(case).start().run(400))[0] / 4 ** (D - 1)
    return found[:D], found[-2 * D : -D], found[-D:]


PAIRS = [("mrt" if n == "D3Q13" else "trt", n) for n in names("lattices")]
PAIRS += [(n, first_lattice(n)) for n in names("collisions") if not defined("D3Q13", n)]


@pytest.mark.parametrize(("collision", "lattice"), dict.fromkeys(PAIRS))
def test_shear_is_viscous_whatever_collides(collision, lattice):
    force, pressure, stress = sheared(lattice, collision={"name": collision})
    expected = [1e-3] + [0.0] * (len(force) - 1)
    assert np.abs(pressure).max() < 2e-5
    np.testing.assert_allclose(force - pressure, expected, atol=1e-5)
    np.testing.assert_allclose(stress, expected, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: "-".join(one.values()))
def test_neither_cut_nor_layout_shows_in_the_parts(layout):
    """Also of bodies that touch, and where walls keep a state; looking changes nothing."""
    tables = flow("D2Q9", output=SPLIT)
    tables["body"] += [
        {
            "shape": {"name": "box", "lower": [2, 3], "upper": [4, 4]},
            "boundary": {"name": "full_way"},
        }
    ]
    expected = sample(Cluster(tables).start().run(5))
    found = [Cluster(tables | {"layout": layout}, slabs).start() for slabs in (1, 2, 3)]
    for cluster in found:
        sample(cluster.run(3))
    found = [sample(cluster.run(2)) for cluster in found]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-13)
    assert np.abs(expected[:, 3:]).min() > 1e-8


def test_a_fluid_at_rest_presses_alone():
    """On a ball in a fluid that is drawn down: the weight of what it displaces, from the cells."""
    ball = {"shape": {"name": "sphere", "centre": [10, 10.3], "radius": 6.2}}
    tables = flow(
        "D2Q9",
        size=[20, 21],
        output=SPLIT,
        force=STILL | {"value": [0, -1e-5]},
        initial={"rho": "1 - 3e-5*(y - 10)", "u": [0, 0]},
        body=[ball | {"boundary": {"name": "bounce_back"}}],
    )
    tables["domain"]["periodic"] = [True, False]
    tables["boundary"] = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    force, pressure, stress = np.split(sample(Cluster(tables).start().run(10))[0], [3, 5])
    assert force[1] == pytest.approx(1e-5 * np.pi * 6.2**2, rel=0.02)
    assert pressure[1] == pytest.approx(1e-5 * np.pi * (6.2 + 0.4) ** 2, rel=0.03)
    assert np.abs(stress).max() < 0.01 * pressure[1]


@pytest.mark.usefixtures("optimised")
def test_both_methods_find_the_drag_of_a_cylinder(tmp_path):
    """In a periodic array; the columns of the file are the parts of its force."""
    disc = {"name": "sphere", "centre": [20.2, 19.9], "radius": 8.3}
    tables = flow(
        "D2Q9",
        size=[40, 40],
        initial={"u": [0, 0]},
        force={"name": "guo", "value": [1e-6, 0]},
        body=[{"label": "disc", "shape": disc, "boundary": {"name": "interpolated"}}],
        fluid={"viscosity": 0.1},
        collision={"name": "trt"},
        run={"steps": 6000},
        output=[SPLIT[0] | {"every": 6000}],
        backend={"name": "cpu"},
    )
    run(parse_case(tables, "test.toml"), Serial(), tmp_path / "out")
    last = rows(tmp_path / "out/forces_disc.csv")[-1]
    print({key: value for key, value in last.items() if key.endswith("_x")})
    assert last["viscous_x"] == last["force_x"] - last["pressure_x"]
    assert last["stress_x"] == pytest.approx(last["viscous_x"], rel=0.1)
    assert 0.2 < last["viscous_x"] / last["force_x"] < 0.8
    assert abs(last["pressure_y"]) < 0.01 * last["pressure_x"]


def test_nothing_is_made_where_nobody_asks_for_parts():
    (solver,) = Cluster(flow("D2Q9")).solvers
    assert not any(name.startswith("stress") for name in solver.program.kernels)
