"""Fluid that enters through an outlet comes from rest: it has the given density less its head."""

import numpy as np
import pytest
from support.faces import closed
from support.slabs import Cluster

from mpilbm.core.registry import find, names
from mpilbm.physics.boundaries.outflow import FromInside

OUTLETS = [name for name in names("boundaries") if issubclass(find("boundaries", name), FromInside)]
RHO = 1.02  # given at the outlet


def stream(name: str, rho: float, u: list[float]) -> dict:
    """A box between a given velocity and an outlet, periodic along x, from a uniform flow."""
    ends = [
        {"name": "zou_he", "where": ["y-"], "velocity": u},
        {"name": name, "where": ["y+"], "rho": RHO},
    ]
    case = closed("D2Q9", [5, 6], ends, initial={"rho": rho, "u": u})
    case["domain"]["periodic"] = [True, False]
    return case


@pytest.mark.parametrize("name", OUTLETS)
@pytest.mark.parametrize("u", [[0.0, -0.05], [0.02, -0.05], [0.02, 0.05]], ids=str)
def test_a_uniform_flow_has_the_given_total_pressure_where_it_enters(name, u):
    """rho (1 - u^2 / (2 cs2)) is a steady state, and rho where the fluid leaves."""
    rho = RHO * (1 - 1.5 * (u[0] ** 2 + u[1] ** 2)) if u[1] < 0 else RHO
    fields = Cluster(stream(name, rho, u)).start().run(20).fields("rho", "u")
    assert np.abs(fields["rho"] - rho).max() < 1e-13
    assert np.abs(fields["u"] - u).max() < 1e-13


@pytest.mark.parametrize("name", sorted({*OUTLETS} - {"characteristic"}))
def test_an_outlet_reaches_this_density(name):
    """From another density, while sound fades."""
    u = [0.0, -0.05]
    case = stream(name, RHO, u) | {"fluid": {"viscosity": 0.5}}
    rho = Cluster(case).start().run(2000).fields("rho")["rho"]
    assert np.abs(rho - RHO * (1 - 1.5 * u[1] ** 2)).max() < 1e-5
