"""Free slip in the moment sweep: the flow of the boundary lists, also by two steps in one pass.

More than 20 s: texts of the sweep are generated, in up to 10 s on D3Q27, and compiled in C++. Both
tests use the same texts.
"""

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.slabs import Cluster
from support.two_steps import FILLED, FORCE, at_faces, small_tiles, tile, two_are_faster

from mpilbm.backends.cuda import tiles
from mpilbm.backends.cuda.tiles import Tile

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
STEPS = 8


@pytest.fixture(autouse=True)
def small(monkeypatch):
    small_tiles(monkeypatch)
    two_are_faster(monkeypatch)
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))


def slip(*faces: str) -> dict:
    return {"name": "free_slip", "where": list(faces)}


def wall(*faces: str, **more) -> dict:
    return {"name": "bounce_back", "where": list(faces)} | more


def block(lower: list[int], upper: list[int], name="bounce_back") -> dict:
    shape = {"name": "box", "lower": lower, "upper": upper}
    return {"label": "b" + "_".join(map(str, lower)), "shape": shape, "boundary": {"name": name}}


ALL = [slip("x-", "x+", "y-", "y+", "z-", "z+")]
ROAD = wall("z-", velocity=[0.05, 0.02, 0])
RECURSIVE = {"collision": {"name": "recursive_regularized"}}
CASES = {
    "all faces": (ALL, (20, 10, 9), {}),
    "rows": ([slip("y-", "y+")], (34, 9, 7), FORCE),
    "x": ([slip("x-", "x+")], (42, 9, 7), {}),
    "planes": ([slip("z-", "z+")], (20, 9, 11), {}),
    "beside walls": ([slip("x-", "y+", "z+"), wall("x+", "y-"), ROAD], (36, 10, 9), FORCE),
    "around walls": ([slip("x+", "y-", "z-"), wall("x-", "y+", "z+")], (26, 12, 8), {}),
    "D3Q27": (ALL, (20, 10, 9), {"lattice": "D3Q27"}),
    "D3Q15": ([slip("x-", "y-", "z-"), wall("x+", "y+", "z+")], (20, 9, 9), {"lattice": "D3Q15"}),
    "a road": ([slip("y-", "y+", "z+"), ROAD], (20, 9, 9), {"lattice": "D3Q27"} | RECURSIVE),
    "bodies": (
        ALL,
        (26, 12, 10),
        {"body": [block([0, 3, 0], [5, 8, 4]), block([12, 0, 5], [18, 6, 10]), FILLED]},
    ),
    "an outlet": (
        [
            {"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0, 0]},
            {"name": "characteristic", "where": ["x+"], "rho": 1.0},
            slip("y-", "y+", "z+"),
            ROAD,
        ],
        (20, 9, 9),
        {},
    ),
    "a body with lists": (
        [slip("y-", "y+", "z-", "z+")],
        (26, 12, 10),
        {"body": [block([6, 3, 0], [11, 8, 4], "interpolated")]},
    ),
}  # fmt: skip
LISTS = ("a body with lists", "an outlet")  # that remain


def tables(name: str, precision="double") -> dict:
    boundaries, size, more = CASES[name]
    return at_faces(boundaries, size, precision=precision, **more)


SHAPES = [(1, 1), (1, 2), (2, 2)]
EVEN = [name for name in CASES if not CASES[name][1][1] % 2]  # rows of a thread divide those
ONCE = [(name, SHAPES[k % 2]) for k, name in enumerate(CASES)] + [(n, (2, 2)) for n in EVEN[:2]]


@pytest.mark.parametrize(("name", "shape"), ONCE, ids=str)
def test_the_flow_of_boundary_lists(name, shape, monkeypatch):
    rows, cells = shape
    sizes = {(1, 1): (8, 4), (1, 2): (16, 5), (2, 2): (16, 16)}
    monkeypatch.setattr(
        tiles, "CANDIDATES", (Tile(*sizes[shape], 2, 1, cells, planes=3, rows=rows),)
    )
    found = Cluster(tables(name), 1, EmulatedDevice).start()
    (solver,) = found.solvers
    assert solver.context.kernels["collide_stream_0"].tile
    assert bool(solver.lists[0].count) == (name in LISTS)
    found.run(STEPS)
    listed = Cluster(tables(name)).start()
    assert listed.solvers[0].lists[0].count
    expected = listed.run(STEPS).fields("rho", "u")
    for field, values in found.fields("rho", "u").items():
        assert np.abs(values - expected[field]).max() < 1e-14


MIXED = ("rows", "beside walls")


@pytest.mark.parametrize("name", [name for name in CASES if name not in LISTS])
def test_two_steps_have_the_bits_of_single_steps(name):
    precision = "mixed_moments" if name in MIXED else "double"
    single = Cluster(tables(name, precision), 1, EmulatedDevice).start().run(STEPS).state()
    for slabs in (1, 2):
        cluster = Cluster(tables(name, precision), slabs, EmulatedDevice).start()
        assert all(solver.two_steps for solver in cluster.solvers)
        cluster.each(lambda solver: solver.advance(STEPS))
        assert np.array_equal(cluster.state(), single)
