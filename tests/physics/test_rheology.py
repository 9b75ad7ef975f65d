"""Generalised Newtonian fluids: the viscosity of a known stress, and exact flows.

More than 20 s: each closure has a kernel text, and flows run until they are steady.
"""

import numpy as np
import pytest
from support.case_tables import changed
from support.closures import REQUIRED, closure_table
from support.rheology import channel, channel_error, pipe_error, profile, scaled, viscosity
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.core.registry import find, make

pytestmark = pytest.mark.usefixtures("stand_ins")

FLUIDS = [
    ("power_law", {"index": 0.5}),
    ("power_law", {"index": 1.5}),
    ("carreau", {"index": 0.4}),
    ("bingham", {}),
    ("herschel_bulkley", {"index": 0.6}),
]
over_fluids = pytest.mark.parametrize(("name", "fields"), FLUIDS)


def viscosity_of_stress(closure, lattice, stress):
    """The viscosity that the kernel finds, for an array of sqrt(stress : stress / 2) / rho."""
    parts = {(0, 0): 0.6 * stress, (0, 1): 0.8 * stress, (1, 1): -0.6 * stress}
    found = [
        closure.omega(
            lattice,
            {key: float(part[k]) for key, part in parts.items()},
            1.0,
            1.0,
            lambda _, value: value,
            **closure.arguments(lattice),
        )
        for k in range(len(stress))
    ]
    return float(lattice.cs2) * (1 / np.array(found, float) - 0.5)


@pytest.mark.parametrize("limits", [(1e-3, 3.0), (1e-5, 30.0)])
@pytest.mark.parametrize("name", REQUIRED)
def test_viscosity_of_a_known_stress(name, limits):
    """P = (nu + cs2/2) gamma, for parameters and shear rates of many sizes."""
    random, lattice = np.random.default_rng(1), make("lattices", "D2Q9")
    for _ in range(40):
        low, high = limits
        nu = low * (high / low) ** random.random()
        rate = 10 ** random.uniform(-6, -1)
        index = random.uniform(0.2, 1.8)
        fields = {
            "consistency": nu * rate ** (1 - index),
            "index": index,
            "viscosity_0": nu,
            "viscosity_inf": low,
            "time": 1 / rate,
            "plastic_viscosity": nu,
            "yield_stress": random.uniform(0.1, 10) * nu * rate,
            "exponent": 10 ** random.uniform(-1, 3) / rate,
        }
        keys = find("closures", name).model_fields
        table = {key: value for key, value in fields.items() if key in keys}
        table |= {"name": name, "viscosity_min": low, "viscosity_max": high}
        g = rate * np.logspace(-4, 2, 13)
        expected = viscosity(table, g)
        closure = make("closures", table)
        found = viscosity_of_stress(closure, lattice, (expected + 1 / 6) * g)
        accuracy = 1e-11 if high < 10 else 1e-4
        assert found == pytest.approx(expected, rel=accuracy)
        strain = {(0, 0): 0.3 * g, (0, 1): 0.4 * g, (1, 1): -0.3 * g}
        assert closure.viscosity(lattice, strain, 0.1) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("name", REQUIRED)
def test_the_kernel_finds_the_viscosity_of_the_initial_shear(name, precision):
    """Wave of small to large shear: the stress after a collision is that of the local tau."""
    table = closure_table(name)
    u = ["0.02*sin(2*pi*y/32)", 0]
    tables = box(
        "D2Q9",
        [3, 32],
        collision={"name": "bgk", "closure": table},
        precision=PRECISIONS[precision],
        initial={"u": u, "non_equilibrium": True},
    )
    cluster = Cluster(tables).start()
    c = np.array(cluster.case.lattice.c)
    found = np.einsum("yirx,i->y", cluster.state(), c[:, 0] * c[:, 1]) / 3
    k = 2 * np.pi / 32
    g = 0.02 * np.sin(k) * np.cos(k * (np.arange(32) + 0.5))
    tau = 3 * viscosity(table, np.abs(g)) + 0.5
    expected = -(1 - 1 / tau) * tau / 3 * g
    size = np.abs(expected).max()
    assert found / size == pytest.approx(
        expected / size, abs=1e-3 if precision == "single" else 1e-9
    )


@pytest.mark.usefixtures("optimised")
@over_fluids
def test_channel_flow_converges_with_second_order(name, fields):
    errors = []
    for H in (8, 16):
        closure, G = scaled(name, H / 2, viscosity_max=10.0, **fields)
        errors.append(channel_error(closure, G, H))
    assert np.log2(errors[0] / errors[1]) > 1.8
    assert errors[1] < 0.015


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q27"])
def test_lattices_agree(lattice):
    closure, G = scaled("herschel_bulkley", 5, index=0.6)
    collision = {"D2Q9": "mrt", "D3Q19": "regularized", "D3Q27": "cumulant"}[lattice]
    assert channel_error(closure, G, 10, lattice=lattice, collision=collision) < 0.1


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(("name", "index"), [("power_law", 0.5), ("bingham", 1)])
def test_pipe_flow(name, index):
    closure, G = scaled(name, 5.3, per=2, index=index, viscosity_max=10.0)
    assert pipe_error(closure, G, 5.3) < 0.05


def test_the_regularised_bingham_fluid_is_nearly_the_ideal_one():
    """u of the ideal fluid: (G / (2 mu)) ((R - p)^2 - max(s - p, 0)^2), p = yield_stress / G."""
    closure, G = scaled("bingham", 16, viscosity_max=100.0, sharp=3000)
    s, p = np.linspace(0, 15.9, 30), closure["yield_stress"] / G
    exact = G / 2 / closure["plastic_viscosity"] * ((16 - p) ** 2 - np.maximum(s - p, 0) ** 2)
    assert profile(closure, G, s, 16, 1) == pytest.approx(exact, rel=5e-3)


def test_same_bits_in_fluid_cells_alone_and_in_slabs():
    """Dense layouts: physics/test_closures.py."""
    closure, G = scaled("carreau", 5)
    states = []
    sparse = {"name": "indirect", "streaming": "esopull"}
    for layout, slabs in (({"name": "ab"}, 1), (sparse, 2)):
        tables = channel(closure, G, 11, layout=layout)
        states.append(Cluster(tables, slabs).start().run(30).fields("rho", "u"))
    one, other = states
    assert np.array_equal(other["u"], one["u"])
    assert np.array_equal(other["rho"], one["rho"])


def test_an_index_of_one_is_a_newtonian_fluid():
    newton = box("D2Q9", collision={"name": "trt"}, precision=PRECISIONS["double"])
    table = closure_table("power_law", consistency=0.03, index=1)
    same = newton | {"collision": {"name": "trt", "closure": table}}
    u = [Cluster(tables).start().run(50).fields("u")["u"] for tables in (newton, same)]
    assert u[1] == pytest.approx(u[0], rel=1e-10, abs=1e-14)


def test_units():
    """K in Pa s^n, the yield stress in Pa, times in s."""
    units = {"cell": 1e-3, "step": 1e-4, "density": 1100}
    table = {
        "name": "herschel_bulkley",
        "consistency": "0.5 Pa s^0.6",
        "index": 0.6,
        "yield_stress": "2 Pa",
        "exponent": "10 s",
    }
    tables = box("D2Q9", collision={"name": "trt", "closure": table}, units=units)
    closure = parse_case(tables, "test.toml").fluids[0].collision.closure
    assert closure.consistency == pytest.approx(0.5 / 1100 / (1e-6 * 1e-4**-1.4))
    assert closure.yield_stress == pytest.approx(2 / 1100 / (1e-3 / 1e-4) ** 2)
    assert closure.exponent == pytest.approx(1e5)


def test_refused():
    def lines(name="power_law", **fields):
        closure = closure_table(name, **fields)
        return changed("collision", {"name": "trt", "closure": closure})

    (line,) = lines(viscosity_min=2, viscosity_max=1)
    assert line.startswith("collision.closure.viscosity_min: found 2, but viscosity_max is 1")
    (line,) = lines(viscosity_min=0.5)
    assert line.startswith("collision.closure: found a fluid of viscosity")
    (line,) = lines("carreau", viscosity_0=5)
    assert line.startswith("collision.closure.viscosity_0: found 5; allowed: viscosity_min = 0.001")
    (line,) = lines("bingham", yield_stress=-1)
    assert line == "collision.closure.yield_stress: found -1; allowed: > 0"
    (line,) = lines(index=0.6, consistency="0.5 Pa s^0.5")
    assert 'of unit kg/(m s^1.5); allowed: the unit of "0.5 Pa s^0.6"' in line
