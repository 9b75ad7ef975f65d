"""Boxes whose cells the kernels' numbers cannot count are refused before anything is allocated."""

import pytest
from slabs import box

from mpilbm.case import parse_case
from mpilbm.memory_plan import LONGEST_SIDE, limits


@pytest.mark.parametrize(
    ("lattice", "size", "words"),
    [
        ("D3Q19", [11000, 11000, 10], "a plane across the last axis holds"),
        ("D2Q9", [LONGEST_SIDE + 1, 10], f"allowed: {LONGEST_SIDE}"),
        ("D2Q9", [10, LONGEST_SIDE + 1], f"allowed: {LONGEST_SIDE}"),
    ],
)
def test_a_box_beyond_the_limits_is_refused(lattice, size, words):
    (problem,) = limits(parse_case(box(lattice, size=size), "test.toml"))
    assert "domain.size" in problem
    assert words in problem


def test_a_box_at_the_limits_is_not():
    for lattice, size in (("D3Q19", [10000, 10000, 10]), ("D2Q9", [LONGEST_SIDE, 10])):
        assert limits(parse_case(box(lattice, size=size), "test.toml")) == []
