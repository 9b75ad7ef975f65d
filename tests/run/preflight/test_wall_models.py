"""`check` predicts y+ of the first cell, and says whether a wall model is needed."""

import pytest
from support.faces import closed
from support.walls import body

from mpilbm.case.case import parse_case
from mpilbm.run.preflight.plan import plan

MODEL = {"name": "wall_model", "law": "spalding", "where": ["y-", "y+"]}
ABOVE = "above 5:"
UNRESOLVED = f"{ABOVE} the viscous sublayer is not resolved; use wall_model"
STILL = {"name": "bounce_back", "where": ["y-", "y+"]}


def report(wall: dict, nu: float, **more):
    """Of a channel of 8 cells with u_tau = 0.01: y+ = 0.005 / nu."""
    given = {"fluid": {"viscosity": nu}, "force": {"name": "guo", "value": [2.5e-5, 0, 0]}}
    tables = closed("D3Q19", [6, 8, 6], [wall], **(given | more))
    tables["domain"]["periodic"] = [True, False, True]
    return plan(parse_case(tables, "test.toml"))


def first_cell(found) -> tuple[str, str, str]:
    (line,) = (
        line
        for lines in found.sections.values()
        for line in lines
        if line.what == "y+ of the first cell"
    )
    return line.value, line.verdict, line.level


@pytest.mark.parametrize(
    ("wall", "nu", "expected"),
    [
        (STILL, 0.005, ("1", "", "")),
        (STILL, 1e-4, ("50", UNRESOLVED, "fair")),
        (MODEL, 1e-4, ("50", f"{ABOVE} wall_model gives the stress", "good")),
        (MODEL, 0.005, ("1", "up to 5: wall_model is not needed", "fair")),
    ],
)  # fmt: skip
def test_a_channel(wall, nu, expected):
    found = report(wall, nu)
    assert first_cell(found) == expected
    needless = [each for each in found.findings if "a wall law is less accurate" in each.message]
    assert len(needless) == (wall is MODEL and nu == 0.005)


@pytest.mark.parametrize("of_body", [False, True])
def test_a_wind_tunnel(of_body):
    """Without a force: y+ of a flat plate as long as the box, sqrt(0.013 / Re^(1/7)) U / (2 nu)."""
    road, sides = {"name": "wall_model", "law": "log"}, ["y-", "y+", "z+"]
    faces = [
        {"name": "equilibrium", "where": ["x-"], "velocity": [0.1, 0, 0]},
        {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
        {"name": "free_slip", "where": sides + ["z-"] * of_body},
    ]
    tables = closed("D3Q19", [60, 8, 8], faces, fluid={"viscosity": 1e-5})
    if of_body:
        tables["body"] = [body(road, "block", name="box", lower=[20, 2, 0], upper=[30, 6, 3])]
    else:
        tables["boundary"].append(road | {"where": ["z-"]})
    found = plan(parse_case(tables, "test.toml"))
    slopes = [
        each for each in found.findings if "the end of a wall parallel to the cells" in each.message
    ]
    assert len(slopes) == of_body  # the upper corners
    value, verdict, level = first_cell(found)
    exact = 0.1 * (0.013 / (0.1 * 60 / 1e-5) ** (1 / 7)) ** 0.5 / 2e-5
    assert value == f"about {exact:.2g}"
    assert verdict == "at a plate of 60 cells; above 5: wall_model gives the stress"
    assert level == "good"
