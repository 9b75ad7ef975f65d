"""The speeds that forces and pressure differences reach, estimated before a run."""

from math import sqrt

import numpy as np
import pytest
from support.findings import DUCT, OUTLET, PERIODIC, REST, SIDES, force, lines, parts_of, tables

from mpilbm.case.case import parse_case
from mpilbm.run.preflight import driven_flow


def test_estimated_speeds_are_those_of_known_flows():
    """A channel exactly, a duct within a fifth, a fluid without walls, and one with open ends."""
    duct = {"domain": {"size": [4, 16, 16], "periodic": [True, False, False]}}
    duct |= {"lattice": {"name": "D3Q19"}} | force(1e-5, 0, 0)
    duct |= {"boundary": [REST | {"where": ["y-", "y+", "z-", "z+"]}]}
    ends = {"boundary": [OUTLET | {"where": ["x-"], "rho": 1.01}, OUTLET]}
    ends["domain"] = {"size": [40, 24], "periodic": [False, True]}
    for more, wanted in (
        (DUCT | force(1e-5, 0), 1e-5 * 24**2 / 0.8),
        (duct, 0.29468541 * 1e-5 * 64 / 0.1),
        (PERIODIC | force(1e-5, 0), 0.2),
        (ends, sqrt(2 / 3 * 0.01)),
    ):
        case = parse_case(tables(**more), "test.toml")
        (part,) = parts_of(case, 1)
        (push,) = driven_flow.pushes(case)
        across = {"D2Q9": 3, "D3Q19": 5}[case.lattice.name]
        radius = part.fluid * across / part.wall_links if part.wall_links else np.inf
        found = driven_flow.speed(case, push, radius)
        assert found == pytest.approx(wanted, rel=0.2 if more is duct else 0.02)


@pytest.mark.parametrize("periodic", [True, False])
def test_a_force_on_one_of_coupled_fluids(periodic):
    """Along periodic axes; gravity in a closed box drives no mean flow."""
    more = {"domain": {"size": [40, 24], "periodic": [True, periodic]}}
    more |= {} if periodic else {"boundary": [SIDES]}
    fluids = [
        {"label": name, "viscosity": 0.1, "initial": {"rho": rho}}
        for name, rho in (("a", "0.5 + 0.4*tanh(y - 12)"), ("b", "0.5 - 0.4*tanh(y - 12)"))
    ]
    fluids[1] |= force(0, 1e-3)
    more |= {"fluid": fluids, "coupling": {"name": "shan_chen", "G": [[0, 2.4], [2.4, 0]]}}
    case = tables(**more)
    del case["collision"]
    line = "serious: fluid.b.force.value: accelerates the flow along y to about 20 cells/step"
    assert any(text.startswith(line) for text in lines(parse_case(case))) == periodic


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1.5e308, "1e299*x"])
def test_a_force_whose_estimate_overflows(value):
    double = {"precision": {"compute": "float64", "storage": "float64"}}
    case = parse_case(tables(**PERIODIC, **double, **force(value, 0)), "test.toml")
    assert lines(case)[0].startswith("serious: force.value: accelerates the flow along x to about ")
