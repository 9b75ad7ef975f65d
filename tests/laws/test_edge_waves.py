"""Inlets and outlets beside walls: no wave grows from step to step.

The step of a box is linearised about its flow. The eigenvalues of the matrix are the factors by
which waves grow in a step; those near -1 alternate. `tools/face_stability` runs all pairs.
"""

import numpy as np
import pytest
from support.faces import closed
from support.findings import warnings_of
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.registry import find, make, names

ON_SITE = [name for name in names("boundaries") if find("boundaries", name).wall_at == "node"]
GIVEN = [name for name in ON_SITE if "velocity" in find("boundaries", name).model_fields]
SPEED = 0.05


def channel(lattice: str, inlet: dict, outlet: dict, **more) -> dict:
    """A channel along x with a parabola at its inlet, or with the densities that drive it."""
    D = make("lattices", lattice).D
    size, across = ([8, 5], "4*y*(ny-y)/ny**2") if D == 2 else ([5, 3, 3], "1")
    flow = [f"{SPEED}*{across}", *["0"] * (D - 1)]
    inlet = {key: flow if each == "parabola" else each for key, each in inlet.items()}
    walls = {"name": "bounce_back", "where": [a + s for a in "xyz"[1:D] for s in "-+"]}
    return closed(
        lattice, size, [inlet | {"where": ["x-"]}, outlet | {"where": ["x+"]}, walls],
        initial={"u": flow}, fluid={"viscosity": 0.1}, collision={"name": "trt"},
        **more,
    )  # fmt: skip


def growth(tables: dict) -> np.ndarray:
    """Eigenvalues of a step about the initial state, the largest ones first."""
    cluster = Cluster(tables).start()
    state, kept, labels = cluster.state(), cluster.kept(), sorted(cluster.kept())
    parts = [state, *(kept[label][1] for label in labels)]
    ends = np.cumsum([part.size for part in parts])[:-1]

    def after(vector):
        first, *others = (
            each.reshape(part.shape)
            for each, part in zip(np.split(vector, ends), parts, strict=True)
        )
        values = zip(labels, others, strict=True)
        cluster.restore(first, 0, {label: (kept[label][0], each) for label, each in values})
        found = cluster.run(1).state(), *(cluster.kept()[label][1] for label in labels)
        return np.concatenate([each.reshape(-1) for each in found])

    start, eps = np.concatenate([part.reshape(-1) for part in parts]), 1e-7
    matrix, next_ = np.empty((start.size, start.size)), after(start)
    for k in range(start.size):
        moved = start.copy()
        moved[k] += eps
        matrix[:, k] = (after(moved) - next_) / eps
    found = np.linalg.eigvals(matrix)
    return found[np.argsort(-np.abs(found))]


def ends(kind: str) -> list[dict]:
    return [
        {"name": n} | ({"rho": 1.0} if kind == "rho" else {"velocity": "parabola"}) for n in GIVEN
    ]


INLETS = [end for pair in zip(ends("rho"), ends("velocity"), strict=True) for end in pair]
PAIRS = [(INLETS[k % len(INLETS)], {"name": name, "rho": 1.0}) for k, name in enumerate(ON_SITE)]
PAIRS += [({"name": n, "rho": 1.0}, {"name": n, "rho": 1.0}) for n in GIVEN]


@pytest.mark.parametrize(
    ("inlet", "outlet"), PAIRS, ids=lambda end: "-".join(f"{each}" for each in end.values())
)
def test_waves_decay(inlet, outlet):
    found = growth(channel("D2Q9", inlet, outlet))
    print(found[:3])
    assert np.abs(found[0]) < 1 - 1e-5


@pytest.mark.parametrize("name", ["zou_he", "regularized"])
def test_waves_decay_in_a_duct(name):
    found = growth(channel("D3Q19", {"name": name, "rho": 1.0}, {"name": name, "rho": 1.0}))
    print(found[:3])
    assert np.abs(found[0]) < 1 - 1e-5


@pytest.mark.parametrize(("nu", "said"), [(0.02, True), (0.05, False)])
def test_a_given_density_at_the_inlet_by_equilibria_is_reported(nu, said):
    pair = {"name": "equilibrium", "rho": 1.01}, {"name": "copy", "rho": 1.0}
    tables = channel("D2Q9", *pair) | {"fluid": {"viscosity": nu}}
    found = [text for text in warnings_of(parse_case(tables, "test.toml")) if "0.03" in text]
    assert [text.startswith("boundary.0.rho: the flow enters here") for text in found] == [
        True
    ] * said
    tables["boundary"][1]["name"] = "equilibrium"
    for given in ({"velocity": [0.01, 0]}, {"rho": "1.01 + 0.001*sin(t)"}):  # outlets
        tables["boundary"][0] = {"name": "zou_he", "where": ["x-"]} | given
        assert not [text for text in warnings_of(parse_case(tables, "test.toml")) if "0.03" in text]


@pytest.mark.parametrize(("nu", "said"), [(0.02, True), (0.05, False)])
def test_extrapolation_next_to_walls_at_small_viscosities_is_reported(nu, said):
    pair = {"name": "zou_he", "velocity": [0.01, 0]}, {"name": "yu", "rho": 1.0}
    tables = channel("D2Q9", *pair) | {"fluid": {"viscosity": nu}}
    found = [text for text in warnings_of(parse_case(tables, "test.toml")) if "'yu'" in text]
    assert [text.startswith("boundary.1.name: next to walls a wave") for text in found] == [
        True
    ] * said
