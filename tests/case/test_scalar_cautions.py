"""Notes on collisions of scalars of small diffusivity."""

import pytest
from support.scalars import carried, flow

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case


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


def test_nothing_is_noted_elsewhere():
    assert notes(diffusivity=0.05 / 3) == []
    assert notes(diffusivity=0.004 / 3, collision={"name": "bgk"}) == []
    assert notes(diffusivity=0.004 / 3, collision={"name": "trt", "magic": 1.6e-5}) == []
