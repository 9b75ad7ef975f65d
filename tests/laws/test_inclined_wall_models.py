"""Wall models at walls that are inclined to the cells: the stress of the law, and no other drag.

More than 20 s: kernel texts on three lattices and in five layouts, and planes found by bisection.
"""

import numpy as np
import pytest
from support.body_forces import OUTPUT, sample
from support.faces import closed
from support.slabs import Cluster
from support.walls import body

from mpilbm.core.registry import make

MODEL = {"name": "wall_model", "law": "spalding"}
SPEED, NU = 0.05, 2e-5
LONG = np.sqrt(5) / 2  # length of a wall at a slope of 1/2, per cell along x
WIDTH, PERIOD = 14, 22  # along y: of the channel, and from one to the next


def channels(wall: dict, lattice: str = "D2Q9", **tables) -> dict:
    """Uniform flow along channels at a slope of 1/2 through a periodic box of 44 x 22 cells."""
    D = make("lattices", lattice).D
    solid = []
    for k in (-2, -1, 0):
        ends = (0.3137 + (k + 1) * PERIOD, 0.3137 + k * PERIOD + WIDTH)
        sides = [
            {"name": "half_space", "point": [0, y, 0][:D], "normal": [-1.0, 2.0, 0][:D]}
            for y in ends
        ]
        solid.append({"name": "difference", "of": sides})
    along = [float(u) for u in SPEED * np.array([2, 1, 0]) / np.sqrt(5)][:D]
    given = {
        "fluid": {"viscosity": NU},
        "collision": {
            "name": "recursive_regularized",
            "omega_bulk": 1,
            "closure": {"name": "smagorinsky", "constant": 0.17},
        },
        "initial": {"u": along},
        "output": [OUTPUT],
        "body": [body(wall, "walls", name="union", of=solid)],
    }
    found = closed(lattice, [2 * PERIOD, PERIOD, 3][:D], [], **(given | tables))
    found["domain"]["periodic"] = [True] * D
    return found


def ratio(cluster: Cluster) -> float:
    """The force along the walls, divided by that of the law at the initial speed."""
    case, D = cluster.case, cluster.case.dimensions
    force = sample(cluster).reshape(-1)[:D] @ np.array([2, 1, 0][:D]) / np.sqrt(5)
    (entries,) = cluster.shapes[0].lists
    assert entries.samples.inclined.all()
    heights = entries.samples.height
    assert 2 < heights.min() < heights.max() < 3.7
    law = case.bodies[0].boundary.law
    u_tau = SPEED / law.u_plus(SPEED * heights / NU)
    return force / ((u_tau**2).mean() * 4 * PERIOD * LONG * (3 if D == 3 else 1))


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q27"])
def test_uniform_flow_feels_the_stress_of_the_law_alone(lattice):
    """In the first step, in which all cells have the same density and velocity."""
    assert ratio(Cluster(channels(MODEL, lattice)).start().run(1)) == pytest.approx(1, abs=0.05)


def test_the_flow_stays_smooth():
    """After 1000 steps, when it is slower at the walls; steps of a wall without slip are rough."""
    cluster = Cluster(channels(MODEL)).start()
    mass = cluster.sums()[1][:, 0].sum()
    assert ratio(cluster.run(1000)) == pytest.approx(1, abs=0.2)
    assert abs(cluster.sums()[1][:, 0].sum() / mass - 1) < 2e-4


@pytest.mark.parametrize("name", ["central_moment", "regularized"])
def test_other_collisions(name):
    """In the first step the force is that of the law, with and without a recursion."""
    tables = channels(MODEL, collision={"name": name})
    assert ratio(Cluster(tables).start().run(1)) == pytest.approx(1, abs=0.05)


def test_neither_slabs_nor_layouts_show():
    """Populations and forces in all bits; `moments` to rounding. Four kernel texts take seconds."""
    given = {"collision": {"name": "regularized"}, "fluid": {"viscosity": 1e-3}}
    whole = Cluster(channels(MODEL, **given)).start().run(8)
    forces = sample(whole)
    for slabs, layout in ((3, "ab"), (2, "aa"), (3, "esopull"), (2, "indirect")):
        other = Cluster(channels(MODEL, layout={"name": layout}, **given), slabs).start().run(8)
        assert np.array_equal(other.state(), whole.state()), (slabs, layout)
        assert np.array_equal(sample(other), forces), (slabs, layout)
    tables = channels(MODEL, layout={"name": "moments"}, **given)
    moments = [Cluster(tables, slabs).start().run(8) for slabs in (1, 3)]
    assert np.array_equal(*(each.state() for each in moments))
    for name, values in whole.fields("rho", "u").items():
        np.testing.assert_allclose(moments[0].fields(name)[name], values, atol=1e-12)
