"""Cases with a wall at rest at x-, so that rows of cells end in walls."""

from support.slabs import PRECISIONS

U = {"initial": {"u": ["0.03*sin(2*x + y)", "0.02*cos(x - y)"]}}


def walls(*, ends=(), rest=()):
    """A wall at rest at x-, followed by the boundaries `ends` and `rest`."""
    return [{"name": "bounce_back", "where": ["x-"]}, *ends, *rest]


LID = {"name": "bounce_back", "where": ["y+"], "velocity": [0.05, 0]}
FLOOR = {"name": "bounce_back", "where": ["y-"]}
CASES = {
    "a lid that is first, pairs of cells": ([6, 5], [LID, *walls(rest=[FLOOR]),
        {"name": "bounce_back", "where": ["x+"]}], {"precision": PRECISIONS["half"]}),
    "another wall at x+ slides": ([5, 6], walls(ends=[{"name": "bounce_back", "where": ["x+"],
        "velocity": [0, 0.03]}], rest=[LID, FLOOR]), {}),
    "an outlet at x+, slip at y-": ([4, 5], walls(ends=[{"name": "equilibrium", "where": ["x+"],
        "rho": 1.01}], rest=[{"name": "free_slip", "where": ["y-"]}, LID]), {}),
    "one cell between": ([1, 7], walls(ends=[{"name": "bounce_back", "where": ["x+"]}],
                                       rest=[LID, FLOOR]), {}),
    "a ball reaches x-": ([6, 7], walls(ends=[{"name": "bounce_back", "where": ["x+"]}],
        rest=[LID, FLOOR]), {"body": [{"shape": {"name": "sphere", "centre": [0.3, 3.5],
        "radius": 1.6}, "boundary": {"name": "interpolated", "order": 2}}]}),
}  # fmt: skip
