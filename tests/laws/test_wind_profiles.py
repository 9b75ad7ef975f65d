"""Profiles by name: the velocity at an inlet rises with the height as the law says."""

import numpy as np
import pytest
from support.faces import closed, table
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError

HEIGHTS = np.maximum(np.arange(9) + 0.5 - 2.25, 0)
POWER = {"name": "power", "reference": 4.0, "exponent": 0.14, "axis": "y", "ground": 2.25}
PIPE = {"name": "power", "reference": 4.5, "exponent": 0.14, "centre": [4.5]}
LOG = {"name": "log", "reference": 4.0, "roughness": 0.1, "axis": "y", "ground": 2.25}


def wind(profile: dict, **inlet) -> dict:
    ends = [
        {"name": "regularized", "where": ["x-"], "velocity": [0.05, 0.0], "profile": profile}
        | inlet,
        {"name": "zou_he", "where": ["x+"], "rho": 1.0},
        table("bounce_back", "y-", "y+", D=2),
    ]
    return closed("D2Q9", [12, 9], ends, initial={"rho": 1, "u": [0.0, 0.0]})


@pytest.mark.parametrize(
    ("profile", "factor"),
    [
        (POWER, (HEIGHTS / 4) ** 0.14),
        (LOG, np.log((HEIGHTS + 0.1) / 0.1) / np.log(4.1 / 0.1)),
        (PIPE, (1 - abs(np.arange(9) - 4) / 4.5) ** 0.14),
    ],
    ids=["power", "log", "pipe"],
)
def test_the_velocity_follows_the_law(profile, factor):
    found = Cluster(wind(profile)).start().run(3).fields("u")["u"][:, 0, 0, 0]
    assert np.abs(found[1:-1] - 0.05 * factor[1:-1]).max() < 1e-14
    assert factor[1] == 0 or "centre" in profile  # below ground
    late = Cluster(wind(profile, ramp=100)).start().run(50).fields("u")["u"][:, 0, 0, 0]
    assert np.abs(late[1:-1] - 0.025 * factor[1:-1]).max() < 1e-14


@pytest.mark.parametrize(
    ("profile", "more", "message"),
    [
        (POWER | {"exponent": None}, {}, "has no exponent"),
        (POWER | {"roughness": 0.1}, {}, "has roughness; 'power' has none"),
        (LOG | {"axis": "z"}, {}, "profile.axis: found 'z'; allowed in 2D"),
        (LOG | {"axis": "x"}, {}, "along which a face in where has one height"),
        (PIPE | {"axis": "y"}, {}, "has a centre, and an axis or ground"),
        (PIPE | {"centre": [4.5, 4.5]}, {}, "with 2 coordinates of the centre; allowed: 1"),
        (LOG, {"velocity": "inlet.csv"}, "has a profile but no velocity of numbers"),
        (LOG, {"velocity": np.full((9, 2), 0.01)}, "has a profile but no velocity of numbers"),
        (LOG, {"velocity": ["0.01) + (0.01", 0]}, r"velocity.0: '0.01\) \+ \(0.01' is not a form"),
        (LOG | {"ground": 8.5}, {}, "profile.ground: found 8.5, above which there is no cell"),
    ],
)
def test_profiles_that_are_refused(profile, more, message):
    given = {key: value for key, value in profile.items() if value is not None}
    with pytest.raises(CaseError, match=message):
        parse_case(wind(given, **more), "test.toml")
