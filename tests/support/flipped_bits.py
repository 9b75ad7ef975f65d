"""A case with checkpoints and snapshots."""

from mpilbm.case.case import parse_case
from support.faces import closed, table
from support.slabs import PRECISIONS

STEPS = 8


def case_of(steps: int, **more):
    """A case whose checkpoints contain every kind of data."""
    outputs = [
        {"name": "checkpoint", "every": 2, "keep": 9},
        {"name": "statistics", "every": 2, "average": ["x"]},
        {"name": "snapshot", "every": 4},
    ]
    faces = [table("full_way", "y-", D=2), table("bounce_back", "x-", "x+", "y+", D=2)]
    tables = closed("D2Q9", [8, 5], faces, precision=PRECISIONS["single"], output=outputs)
    tables |= {"run": {"steps": steps}, "backend": {"name": "cpu"}} | more
    return parse_case(tables, "flips.toml")
