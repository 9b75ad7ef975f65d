"""The moment sweep does what the generic kernel does: its CUDA text, compiled for a CPU.

A minute of CPU time: each case has three kernel texts, in C, in C++ and of the sweep.
"""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from support.closures import closure_table, lattice_of
from support.emulated_device import EmulatedDevice, command, encode_tiled
from support.pairs import ALL_COMBINATIONS, all_pairs, label, share
from support.settings import MODELS, OPTIONS, defined, tables, with_model
from support.slabs import Cluster

from mpilbm.backends.cuda import tiles
from mpilbm.backends.cuda.tiles import Tile
from mpilbm.core.registry import names, register
from mpilbm.physics.boundaries.partially_saturated import PartiallySaturated
from mpilbm.physics.boundary_capabilities import Capabilities

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")
COLLISIONS = ("regularized", "recursive_regularized")
KINDS = {
    "lattice": OPTIONS["lattice"],
    "collision": COLLISIONS,
    "setting": ["walls", "forced", "through"],
    "precision": ["half", "single", "mixed_moments", "double"],
}


def swept_by(choice: dict) -> bool:
    return defined({**choice, "layout": "moments"})


LATTICES = [n for n in OPTIONS["lattice"] if swept_by({"lattice": n, "collision": "regularized"})]
# A force is the same on all lattices. The walls are those of the tests of tiles.
OF_SETTING = {
    "walls": ["D3Q19"],
    "forced": ["D2Q9"],
    "through": [name for name in LATTICES if name not in ("D3Q19", "D2Q9")],
}


def few() -> list[dict]:
    """Each pair of setting and precision, each lattice; each collision with each setting."""
    found = [
        {"lattice": lattices[k % len(lattices)], "collision": "regularized"}
        | {"setting": setting, "precision": precision}
        for setting, lattices in OF_SETTING.items()
        for k, precision in enumerate(KINDS["precision"])
    ]
    for choice in found:
        other = choice | {"collision": "recursive_regularized"}
        if choice["precision"] == "double" and swept_by(other):
            choice |= other
    other = {"lattice": "D2Q9", "collision": "recursive_regularized"}
    return [*found, other | {"setting": "forced", "precision": "half"}]


CASES = all_pairs(KINDS, swept_by) if ALL_COMBINATIONS else share(few())
# Mixed: one stress in a hundred is rounded the other way in a step, by 2^-11 of at most 0.02.
ALLOWED = {"half": 3e-4, "mixed_moments": 2e-5, "double": 1e-14}


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    """Small tiles, and a driver that knows tensor maps alone."""
    load, library = ctypes.CDLL, SimpleNamespace(cuTensorMapEncodeTiled=encode_tiled)
    monkeypatch.setattr(ctypes, "CDLL", lambda n: library if n == "libcuda.so.1" else load(n))
    use(monkeypatch, Tile(8, 4, 2, 1, planes=3), Tile(16, 1, 2, 1, planes=3))


def use(monkeypatch, *candidates):
    monkeypatch.setattr(tiles, "CANDIDATES", candidates)


def long(lattice, setting, precision, collision="regularized") -> dict:
    """A case with several tiles along x, of which the last is narrower."""
    case = tables(lattice, "moments", collision, setting, precision)
    case["domain"]["size"][0] = 42
    return case


def swept(case, slabs=1) -> Cluster:
    """On emulated devices; none falls back on the generic kernel."""
    cluster = Cluster(case, slabs, EmulatedDevice).start()
    assert all(s.context.kernels["collide_stream_0"].tile for s in cluster.solvers)
    return cluster.run(5)


@pytest.mark.parametrize("choice", CASES, ids=label)
def test_it_does_what_the_generic_kernel_does(choice):
    """To rounding; and bit for bit against itself on two slabs."""
    case = long(**choice)
    expected = Cluster(case).start().run(5).fields("rho", "u")
    whole = swept(case)
    for name, values in whole.fields("rho", "u").items():
        assert np.abs(values - expected[name]).max() < ALLOWED.get(choice["precision"], 3e-6)
    assert np.array_equal(swept(case, 2).state(), whole.state())


def closed(lattice: str, collision: str) -> dict:
    """A case with walls on all faces, and without a body."""
    case = long(lattice, "walls", "double", collision)
    case["domain"]["periodic"] = [False] * len(case["domain"]["size"])
    case.pop("body", None)
    return case


def faces_of(case) -> list[str]:
    return [axis + side for axis in "xyz"[: len(case["domain"]["size"])] for side in "+-"]


ALL = list(dict.fromkeys((c["lattice"], c["collision"]) for c in CASES))
# D3Q27 has the directions of all lattices.
EDGES = [("D2Q9", "recursive_regularized"), ("D3Q27", "regularized")]
BESIDE = [("D2Q9", "regularized"), ("D3Q19", "recursive_regularized")]


@pytest.mark.parametrize(("lattice", "collision"), ALL if ALL_COMBINATIONS else EDGES)
def test_it_applies_half_way_walls_by_itself(lattice, collision):
    """Lids that meet in edges, in either order."""
    case = closed(lattice, collision)
    D = len(case["domain"]["size"])
    case["boundary"] = [
        {"name": "bounce_back", "where": [face], "velocity": [0.01 * (k + 1 + a) for a in range(D)]}
        for k, face in enumerate(faces_of(case))
    ]
    whole = assert_as_the_generic_kernel(case)
    assert not any(solver.lists[0].count for solver in whole.solvers)


@pytest.mark.parametrize(("lattice", "collision"), ALL if ALL_COMBINATIONS else BESIDE)
def test_cells_at_a_body_or_at_an_inlet_keep_their_lists(lattice, collision):
    case = closed(lattice, collision)
    D, faces = len(case["domain"]["size"]), faces_of(case)
    case["boundary"] = [
        {"name": "equilibrium", "where": faces[:1], "rho": 1.01},
        {"name": "bounce_back", "where": faces[1:], "velocity": [0.02] * D},
    ]
    shape = {"name": "sphere", "centre": [9] + [0] * (D - 1), "radius": 3.3}
    wall = {"name": "bounce_back", "velocity": [0.02] * D}
    case["body"] = [{"label": "ball", "shape": shape, "boundary": wall}]
    whole = assert_as_the_generic_kernel(case)
    assert whole.solvers[0].lists[0].count


def assert_as_the_generic_kernel(case) -> Cluster:
    """To rounding of float64; and bit for bit against itself on two slabs."""
    expected = Cluster(case).start().run(5).fields("rho", "u")
    whole = swept(case)
    for name, values in whole.fields("rho", "u").items():
        assert np.abs(values - expected[name]).max() < 1e-14
    assert np.array_equal(swept(case, 2).state(), whole.state())
    return whole


# With 16 bits the equilibrium incompressible has a unit of its own.
HALF = [(*model, "half") for model in (MODELS if ALL_COMBINATIONS else MODELS[-1:])]


@pytest.mark.parametrize(
    ("force", "equilibrium", "precision"), [*((*model, "double") for model in MODELS), *HALF]
)
def test_every_force_and_equilibrium(force, equilibrium, precision):
    given = {"layout": "moments", "collision": "regularized", "precision": precision}
    case = with_model("D2Q9", force, equilibrium, **given)
    case["domain"]["size"][0] = 42
    expected = Cluster(case).start().run(5).fields("rho", "u")
    for name, values in swept(case).fields("rho", "u").items():
        assert np.abs(values - expected[name]).max() < ALLOWED[precision]


@pytest.mark.parametrize(("closure", "precision"), [(c, "half") for c in names("closures")])
def test_every_closure(closure, precision):
    case = long(lattice_of(closure), "forced", precision)
    case["collision"]["closure"] = closure_table(closure)
    expected = Cluster(case).start().run(5).fields("rho", "u")
    for name, values in swept(case).fields("rho", "u").items():
        assert np.abs(values - expected[name]).max() < ALLOWED[precision]


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_a_force_by_formulas(lattice):
    case = long(lattice, "forced", "double")
    value = ["1e-4*x*(nx-x)/nx**2", "2e-4*y/ny*(1 + 0.1*t)", "1e-4*z*y"]
    case["force"]["value"] = value[: len(case["domain"]["size"])]
    assert_as_the_generic_kernel(case)


@pytest.mark.parametrize(
    ("lattice", "precision", "closure"),
    [
        ("D2Q9", "double", None),
        ("D3Q19", "single", None),
        ("D3Q19", "mixed_moments", "smagorinsky"),
        ("D3Q15", "half", None),
    ],
)
def test_bodies_that_act_in_cells(lattice, precision, closure):
    """They have no boundary lists; the box has walls, a lid and a force.

    D3Q27, which takes ten seconds to generate: test_sweep_moving.py.
    """
    case = long(lattice, "walls", precision)
    D = len(case["domain"]["size"])
    case["force"] = {"name": "guo", "value": [1e-4, -2e-4, 3e-4][:D]}
    case["body"][0]["boundary"] = {"name": "partially_saturated"}
    if closure:
        case["collision"]["closure"] = closure_table(closure)
    expected = Cluster(case).start().run(5).fields("rho", "u")
    whole = swept(case)
    assert not whole.solvers[0].lists[0].count
    for name, values in whole.fields("rho", "u").items():
        assert np.abs(values - expected[name]).max() < ALLOWED.get(precision, 3e-6)
    assert np.array_equal(swept(case, 2).state(), whole.state())


def test_a_boundary_in_cells_that_names_no_weight(stand_ins):
    """The share acts in all cells alike; the flow is the same to rounding."""

    @register("boundaries", "by_share")
    class ByShare(PartiallySaturated):
        """The same, but no value has a name."""

        declares = Capabilities(in_cells=True)

        def weight(self, cell):
            """As a part of the expressions."""
            let = lambda name, value: value  # noqa: E731
            return super().weight(SimpleNamespace(share=cell.share, omega=cell.omega, let=let))

    case, found = long("D2Q9", "walls", "double"), []
    for name in ("partially_saturated", "by_share"):
        case["body"][0]["boundary"] = {"name": name}
        found.append(swept(case).state())
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("lattice", "precision", "tile"),
    [
        ("D3Q19", "single", Tile(16, 8, 3, 1)),
        ("D3Q19", "single", Tile(16, 4, 2, 1, cells=2)),
        ("D3Q19", "single", Tile(16, 16, 2, 1, cells=2, rows=2)),
        ("D3Q19", "half", Tile(16, 16, 2, 1, cells=2, rows=2)),
        ("D3Q19", "single", Tile(8, 4, 2, 1, bulk=False)),
        ("D3Q19", "mixed_moments", Tile(16, 8, 3, 1)),
        ("D3Q19", "mixed_moments", Tile(16, 4, 2, 1, cells=2)),
        ("D3Q19", "mixed_moments", Tile(8, 4, 2, 1, bulk=False)),
        ("D2Q9", "mixed_moments", Tile(16, 1, 2, 1, cells=2)),
        ("D2Q9", "half", Tile(16, 1, 3, 1, bulk=False)),
        ("D2Q9", "single", Tile(16, 1, 2, 1, cells=2)),
        ("D2Q9 recursive_regularized", "half", Tile(16, 1, 2, 1, cells=2)),
        ("D3Q19 recursive_regularized", "half", Tile(16, 16, 2, 1, cells=2, rows=2)),
        ("D3Q27 recursive_regularized", "single", Tile(16, 4, 2, 1, cells=2)),
    ],
    ids=str,
)
def test_the_tile_does_not_show(lattice, precision, tile, monkeypatch):
    """All bits; `lattice`: also the collision, if it is another one than usual."""
    setting = "forced" if lattice.startswith("D2Q9") else "walls"
    case = long(*lattice.split()[:1], setting, precision, *lattice.split()[1:])
    expected = swept(case).state()
    use(monkeypatch, tile)
    assert np.array_equal(swept(case).state(), expected)


@pytest.mark.parametrize(
    ("precision", "nx", "tile"),
    [
        ("half", 160, Tile(96, 3, 2, 1, cells=2)),
        ("mixed_moments", 160, Tile(96, 3, 2, 1, cells=2)),
        ("half", 128, Tile(64, 8, 2, 1, cells=2, rows=2)),
    ],
    ids=str,
)
def test_threads_at_walls_exchange_their_places(precision, nx, tile, monkeypatch):
    """Whole and narrower tiles at a wall along x have the bits of small tiles."""
    case = long("D3Q19", "walls", precision)
    case["domain"] |= {"size": [nx, 10, 5], "periodic": [False] * 3}
    faces = [axis + side for axis in "xyz" for side in "+-"]
    case["boundary"] = [{"name": "bounce_back", "where": faces[:1], "velocity": [0, 0.02, 0]},
                        {"name": "bounce_back", "where": faces[1:]}]  # fmt: skip
    case.pop("body", None)
    expected = swept(case).state()
    use(monkeypatch, tile)
    assert np.array_equal(swept(case).state(), expected)
