"""Findings on collisions of scalars of small diffusivity, and on viscosities from scalars."""

import pytest
from support.scalars import carried, flow

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case
from mpilbm.core.errors import CaseError
from mpilbm.physics.scalars.collisions import ScalarCollision
from mpilbm.physics.scalars.collisions.trt import ScalarTRT


def notes(lattice="D2Q5", **scalar) -> list[str]:
    case = parse_case(flow(scalars=[carried(lattice=lattice, **scalar)]), "test.toml")
    return [str(found) for found in of_case(case) if "oscillates" in found.message]


@pytest.mark.parametrize("odd", [0.02, 0.004])
def test_trt_is_noted_where_it_oscillates(odd):
    (note,) = notes(diffusivity=odd / 3)
    assert note.startswith(
        "scalar.T.collision: trt oscillates behind sharp fronts, since tau - 1/2"
    )
    assert f"is {odd}, below 0.03" in note
    assert note.endswith('set collision = {name = "bgk"} and lattice = "D2Q9"')


def test_only_periodic_boxes_are_referred_to_bgk():
    """Next to the inlet of a channel `bgk` was unstable."""
    periodic = notes("D2Q9", diffusivity=0.004 / 3)
    assert periodic[0].endswith('use a finer box, or set collision = {name = "bgk"}')
    walls = {
        "domain": {"size": [5, 8], "periodic": [True, False]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
    }
    tables = flow(scalars=[carried(diffusivity=0.004 / 3)], **walls)
    (found,) = (
        str(each)
        for each in of_case(parse_case(tables, "test.toml"))
        if "oscillates" in each.message
    )
    assert found.endswith("where fronts are sharp, use a finer box")


def test_a_caution_without_a_remedy_has_no_advice(monkeypatch):
    """Plug-ins may define `caution` only."""
    monkeypatch.setattr(ScalarTRT, "caution", lambda self, diffusivity, lattice: "oscillates")
    monkeypatch.setattr(ScalarTRT, "remedy", ScalarCollision.remedy)
    assert notes(diffusivity=0.004) == ["scalar.T.collision: oscillates"]


def test_values_that_are_infinite_in_16_bits_are_refused():
    half = {"precision": "half"}
    for value, good in ((5.9, True), (300, False)):
        tables = flow(scalars=[carried(initial={"value": value})], **half)
        if good:
            parse_case(tables, "test.toml")
            continue
        with pytest.raises(CaseError, match=r'value 300; allowed .* up to 6, .* "float32"'):
            parse_case(tables, "test.toml")


def test_nothing_is_noted_elsewhere():
    assert notes(diffusivity=0.05 / 3) == []
    assert notes(diffusivity=0.004 / 3, collision={"name": "bgk"}) == []
    assert notes(diffusivity=0.004 / 3, collision={"name": "trt", "magic": 1.6e-5}) == []


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("0.1 - 0.15*T", "serious: fluid.viscosity: is -0.05 at T = 1; allowed: above 0"),
        ("0.1 + 10*T", "note: fluid.viscosity: tau = 30.8 at T = 1: large: inaccurate"),
        ("0.1 + 0.2*T", ""),
    ],
)
def test_a_viscosity_is_judged_at_all_given_values_of_a_scalar(formula, expected):
    """T is 0 in the fluid and 1 on a wall."""
    hot = {"name": "value", "where": ["y+"], "value": 1.0}
    tables = flow(
        scalars=[carried(boundary=[hot], initial={"value": 0.0})],
        domain={"size": [5, 8], "periodic": [True, False]},
        boundary=[{"name": "bounce_back", "where": ["y-", "y+"]}],
        fluid={"viscosity": formula},
    )
    found = " ".join(each.line for each in of_case(parse_case(tables, "test.toml")))
    assert found.startswith(expected)
    assert bool(found) == bool(expected)
