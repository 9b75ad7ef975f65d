"""`check` on wall models at inclined walls: collision, closure, and closed flows."""

import pytest
from support.faces import closed
from support.walls import body

from mpilbm.case.case import parse_case
from mpilbm.model.findings import NOTE, SERIOUS, WARNING
from mpilbm.run.preflight.plan import plan

MODEL = {"name": "wall_model", "law": "spalding"}
SUITS = {
    "name": "recursive_regularized",
    "omega_bulk": 1,
    "closure": {"name": "smagorinsky"},
}
DISC = {"name": "sphere", "centre": [8.1, 6.2], "radius": 3}
SLOPE = {"name": "half_space", "point": [0, 3], "normal": [-1, 3]}
BLOCK = {"name": "box", "lower": [5, 4], "upper": [9, 8]}


def found(shape: dict, collision: dict, outlet: bool = False) -> list:
    """The findings on the wall model of a body in a channel."""
    faces = [{"name": "free_slip", "where": ["y-", "y+"]}]
    if outlet:
        faces.append({"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0]})
        faces.append({"name": "equilibrium", "where": ["x+"], "rho": 1.0})
    given = {"fluid": {"viscosity": 1e-4}, "collision": collision, "initial": {"u": [0.05, 0]}}
    tables = closed("D2Q9", [20, 12], faces, body=[body(MODEL, "disc", **shape)], **given)
    tables["domain"]["periodic"] = [not outlet, False]
    report = plan(parse_case(tables, "test.toml"))
    all_of_it = [each for each in report.findings if each.where == "body.disc.boundary"]
    curved = [each for each in all_of_it if "at curved walls or next to edges" in each.message]
    assert [each.severity for each in curved] == ([NOTE] if shape is DISC else [])
    return [each for each in all_of_it if each not in curved]


def test_what_suits_is_not_reported():
    assert not found(DISC, SUITS, outlet=True)
    assert not found(DISC, {"name": "central_moment", "closure": {"name": "smagorinsky"}}, True)
    assert not found(BLOCK, {"name": "trt"})


@pytest.mark.parametrize("name", ["trt", "regularized"])
def test_collisions(name):
    collision = {"name": name, "closure": {"name": "smagorinsky"}}
    (each,) = found(SLOPE, collision, outlet=True)
    assert each.severity == SERIOUS
    assert f"found the collision {name}" in each.message
    assert not found(DISC, collision, outlet=True)


def test_no_closure():
    (each,) = found(DISC, {"name": "recursive_regularized", "omega_bulk": 1}, outlet=True)
    assert each.severity == WARNING
    assert "no closure" in each.message


def test_a_closed_flow():
    (each,) = found(DISC, SUITS)
    assert each.severity == WARNING
    assert "the mass is not conserved" in each.message
