"""A viscosity that depends on a scalar: channel flow with the profile of the analytic solution."""

import numpy as np
import pytest
from support.scalars import carried, flow
from support.slabs import Cluster

from mpilbm.core.errors import CaseError

FORMULA = "0.1*exp(-1.5*T)"


def channel(N, viscosity=FORMULA, collision="trt", **more) -> dict:
    """T falls linearly from 1 at y = 0 to 0; a force along x."""
    ends = [{"name": "value", "where": ["y-"], "value": 1.0},
            {"name": "value", "where": ["y+"], "value": 0.0}]  # fmt: skip
    push = 1e-3 * (8 / N) ** 3
    return flow(
        scalars=[carried(boundary=ends, initial={"value": "1 - y/ny"}, diffusivity=0.2)],
        fluid={"viscosity": viscosity},
        domain={"size": [2, N], "periodic": [True, False]},
        boundary=[{"name": "bounce_back", "where": ["y-", "y+"]}],
        collision={"name": collision},
        force={"name": "guo", "value": [push, 0]},
        initial={},
        **more,
    )


def exact(N) -> np.ndarray:
    """d/dy (nu du/dy) = -F, by fine quadrature."""
    y = np.linspace(0, 1, 200 * N + 1)
    nu, push = 0.1 * np.exp(-1.5 * (1 - y)), 1e-3 * (8 / N) ** 3
    integral = [np.append(0, np.cumsum((f[1:] + f[:-1]) / 2) / (200 * N)) for f in (1 / nu, y / nu)]
    tau = integral[1][-1] / integral[0][-1]
    u = push * N**2 * (tau * integral[0] - integral[1])
    return u[100::200]


def test_the_profile_of_a_channel_is_of_second_order():
    errors = []
    for N in (8, 16):
        cluster = Cluster(channel(N)).start().run(60 * N * N)
        u = cluster.fields("u")["u"][:, 0, 0, 0]
        errors.append(np.linalg.norm(u - exact(N)) / np.linalg.norm(exact(N)))
    assert errors[1] < 0.01
    assert errors[0] / errors[1] > 3.5


LAYOUTS = {"trt": [("ab", 1), ("esopull", 2)]}
LAYOUTS |= {name: [("esopull", 2)] for name in ("bgk", "mrt", "regularized", "central_moment")}


@pytest.mark.parametrize("collision", LAYOUTS)
def test_a_constant_formula_is_the_number(collision):
    """On layouts and slabs, too."""
    number = Cluster(channel(9, 0.1, collision)).start().run(30).fields("u")["u"]
    for layout, slabs in LAYOUTS[collision]:
        tables = channel(9, "0.1 + 0*T", collision) | {"layout": {"name": layout}}
        found = Cluster(tables, slabs).start().run(30).fields("u")["u"]
        assert np.abs(found - number).max() < 1e-13


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fluid": {"viscosity": "0.1*S"}}, "fluid.viscosity: .*'S'"),
        ({"collision": {"name": "entropic"}}, "fluid.viscosity: found a formula; allowed with"),
        ({"fluid": {"viscosity": "-0.1"}}, "fluid.viscosity: is -0.1 at the centre of the box"),
        ({"scalar": []}, 'fluid.viscosity: found "0.1.*; allowed: a number; or, with'),
    ],
)
def test_wrong_formulas_are_reported(change, words):
    with pytest.raises(CaseError, match=words):
        Cluster(channel(8) | change)
