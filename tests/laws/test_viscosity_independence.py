"""Curved walls whose results do not depend on the viscosity, and those of which they do."""

import numpy as np
import pytest
from support.faces import closed
from support.slabs import PRECISIONS, Cluster, box
from support.walls import CENTRAL, LINEAR, body

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case

HALF_WAY = {"name": "bounce_back"}


def permeability(wall: dict, viscosity: float, n: int = 8) -> float:
    """k of a simple cubic array of spheres, in cells squared; a solid fraction of 0.216."""
    force = 1e-6 * viscosity
    ball = body(wall, "ball", name="sphere", centre=[n / 2] * 3, radius=0.3722 * n)
    tables = box(
        "D3Q19", [n] * 3, body=[ball], force={"name": "guo", "value": [force, 0, 0]},
        collision={"name": "trt"}, precision=PRECISIONS["double"], layout={"name": "aa"},
        fluid={"viscosity": viscosity}, initial={"u": [0, 0, 0]},
    )  # fmt: skip
    columns, sums = Cluster(tables).start().run(round(4 * n * n / viscosity)).sums()
    momentum = sums.sum(axis=0)[[name.startswith("momentum") for name in columns].index(True)]
    return viscosity * momentum / n**3 / force


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("wall", [HALF_WAY, CENTRAL, LINEAR], ids=lambda wall: wall["name"])
def test_permeability_at_two_viscosities(wall):
    """Equal to 1e-5 with `trt`, but not with interpolated walls."""
    found = [permeability(wall, viscosity) for viscosity in (0.5, 0.05)]
    change = found[0] / found[1] - 1
    print(f"{wall}: k = {found}, changes by {change:.1e}")
    assert abs(change) < 1e-5 if wall is not LINEAR else change > 0.02


@pytest.mark.parametrize("viscosity", [0.5, 0.02])
@pytest.mark.parametrize("offset", [0.1, 0.45, 0.8])
def test_a_linear_profile_is_exact(offset, viscosity):
    """Between a wall at rest and one that slides, both at a fraction of a cell."""
    lower, upper, slide = 1 + offset, 7 + offset, 0.03
    profile = f"{slide}*min(max(y - {lower}, 0), 6)/6"
    walls = [
        body(CENTRAL, "low", name="box", lower=[0, -9], upper=[3, lower]),
        body(CENTRAL | {"velocity": [slide, 0]}, "high",
             name="box", lower=[0, upper], upper=[3, 19]),
    ]  # fmt: skip
    faces = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    tables = closed("D2Q9", [3, 10], faces, body=walls, fluid={"viscosity": viscosity},
                    collision={"name": "trt"}, initial={"rho": 1, "u": [profile, 0]})  # fmt: skip
    tables["domain"]["periodic"] = [True, False]
    found = Cluster(tables).start().run(round(400 / viscosity)).fields("u")["u"][:, 0, 1, 0]
    y = np.arange(10) + 0.5
    fluid = (y > lower) & (y < upper)
    np.testing.assert_allclose(found[fluid], slide * (y - lower)[fluid] / 6, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("more", "noted"),
    [({}, False), ({"fluid": {"viscosity": 0.3}}, True),
     ({"force": {"name": "guo", "value": [1e-6, 0]}}, True)],
)  # fmt: skip
def test_the_position_of_interpolated_walls_is_noted_where_it_matters(more, noted):
    for wall in (LINEAR, CENTRAL):
        disc = body(wall, "disc", name="sphere", centre=[8, 8], radius=3)
        tables = box("D2Q9", [16, 16], **({"body": [disc], "fluid": {"viscosity": 0.1}} | more))
        found = [f for f in of_case(parse_case(tables, "a.toml")) if "effective" in f.message]
        assert [f.severity for f in found] == ["note"] * (noted and wall is LINEAR)
        assert all(f.where == "body.disc.boundary" for f in found)
