"""Walls: where they lie, what they keep, and that neither cut nor layout shows.

More than 20 s: each kind of wall has a kernel text in each layout, and flows become steady.
"""

import numpy as np
import pytest
from support.faces import closed
from support.slabs import PRECISIONS, Cluster
from support.walls import CENTRAL, LINEAR, QUADRATIC, between_cylinders, body, rocks

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make, names
from mpilbm.parallel import slabs as domain
from mpilbm.run.preflight.plan import plan
from mpilbm.solids import build

HALF_WAY, TARGET = {"name": "bounce_back"}, {"name": "tamm_mott_smith"}


def named(wall: dict) -> str:
    return f"{wall['name']}{wall.get('order', '')}"


def channel(wall: dict, n: int, offset: float) -> float:
    """Error of a forced channel whose walls, two boxes, lie at a fraction of a cell; one slides."""
    lower, ny, viscosity, top, slide = 1 + offset, n + 3, 0.1, 0.4 / n, 0.1 / n
    upper = lower + n
    flow = f"4*{top}*(y - {lower})*({upper} - y)/{n**2} + {slide}*(y - {lower})/{n}"
    walls = [
        body(wall, "low", name="box", lower=[-9, -9], upper=[9, lower]),
        body(wall | {"velocity": [slide, 0]}, "high",
             name="box", lower=[-9, upper], upper=[9, ny + 9]),
    ]  # fmt: skip
    tables = closed(
        "D2Q9", [3, ny], [{"name": "bounce_back", "where": ["y-", "y+"]}],
        force={"name": "guo", "value": [8 * viscosity * top / n**2, 0]}, body=walls,
        fluid={"viscosity": viscosity}, collision={"name": "trt"},
        initial={"rho": 1, "u": [flow, 0]},
    )  # fmt: skip
    tables["domain"]["periodic"] = [True, False]
    found = Cluster(tables).start().run(8 * n * n).fields("u")["u"][:, 0, 1, 0]
    y = np.arange(ny) + 0.5
    expected = 4 * top * (y - lower) * (upper - y) / n**2 + slide * (y - lower) / n
    fluid = (y > lower) & (y < upper)
    return float(np.abs(found - expected)[fluid].max()) / top


@pytest.mark.parametrize("offset", [0.1, 0.3, 0.8])
def test_a_wall_at_a_fraction_of_a_cell(offset):
    finest = []
    for wall in (LINEAR, QUADRATIC, CENTRAL):
        coarse, fine = (channel(wall, n, offset) for n in (8, 16))
        slope = np.log2(coarse / fine)
        print(f"wall at {offset}, {wall}: {coarse:.2e}, {fine:.2e}, order {slope:.2f}")
        assert slope > (1.85 if wall is CENTRAL else 1.9)
        finest.append(fine)
    assert finest[0] < channel(HALF_WAY, 16, offset) / 8
    assert finest[1] < finest[0] * 0.85


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("wall", [LINEAR, QUADRATIC, CENTRAL], ids=named)
def test_flow_between_cylinders(wall):
    """A turning wall, one line of formulas, and curved."""
    coarse, fine = (between_cylinders(wall, n) for n in (6, 12))
    slope, stairs = np.log2(coarse / fine), between_cylinders(HALF_WAY, 12)
    print(f"{wall}: {coarse:.2e}, {fine:.2e}, order {slope:.2f}; bounce_back {stairs:.2e}")
    assert slope > 1.8
    assert fine < stairs / 4


def test_targets_between_wall_and_flow():
    """First order; in cells that no other wall touches the mass is kept."""
    coarse, fine = (channel(TARGET, n, 0.3) for n in (8, 16))
    slope, curved = np.log2(coarse / fine), between_cylinders(TARGET, 12)
    print(f"{TARGET}: {coarse:.2e}, {fine:.2e}, order {slope:.2f}; cylinders {curved:.2e}")
    assert slope > 1.2
    assert fine < channel(HALF_WAY, 16, 0.3) * 0.75
    assert curved < 0.012
    tables = rocks({"name": "ab"}, TARGET)
    tables["body"] = [tables["body"][0] | {"boundary": TARGET}]
    cluster = Cluster(tables | {"precision": PRECISIONS["double"]}).start()
    mass = cluster.sums()[1][:, 0].sum()
    assert abs(cluster.run(50).sums()[1][:, 0].sum() / mass - 1) < 1e-14


def quarter(lattice: str, symmetric: bool, **tables) -> dict:
    """A box with walls and a flow that is symmetric in x and y, or a quarter of it."""
    D, n = int(lattice[1]), 4
    faces = ["x-", "x+", "y-", "y+"]
    slip = [] if symmetric else [{"name": "free_slip", "where": ["x+", "y+"]}]
    walls = [{"name": "bounce_back", "where": faces if symmetric else ["x-", "y-"]}]
    u = [f"0.05*sin(pi*x/{n})", f"0.03*sin(pi*y/{n})", f"0.04*(1 - cos(pi*x*y/{n * n}))"]
    if symmetric:  # x and y of the other side are measured from there
        near = {a: f"min({a}, {2 * n} - {a})" for a in "xy"}
        mirrored = [f"({n} - {a})/abs({n} - {a})*" for a in "xy"] + [""]
        u = [mirrored[k] + text.replace("x*y", f"{near['x']}*{near['y']}")
             .replace("pi*x/", f"pi*{near['x']}/").replace("pi*y/", f"pi*{near['y']}/")
             for k, text in enumerate(u)]  # fmt: skip
    size = [n * (1 + symmetric)] * 2 + [3] * (D - 2)
    case = closed(lattice, size, walls + slip, initial={"rho": 1.02, "u": u[:D]}, **tables)
    case["domain"]["periodic"] = [False, False, True][:D]
    return case


@pytest.mark.parametrize(
    ("lattice", "layout"),
    [("D2Q9", "esopull"), ("D3Q19", "aa"), ("D3Q27", "ab"), ("D3Q19", "indirect")],
)
def test_free_slip_is_a_plane_of_symmetry(lattice, layout):
    """Also where two of them meet, and a wall."""
    whole = Cluster(quarter(lattice, True)).start().run(11)
    part = Cluster(quarter(lattice, False, layout={"name": layout}), 3 - (layout == "ab")).start()
    mass = part.sums()[1][:, 0].sum()
    part.run(11)
    for name, values in whole.fields("rho", "u").items():
        values = values[:, :4, :4] if lattice != "D2Q9" else values[:4, :, :4]
        assert np.abs(part.fields(name)[name] - values).max() < 1e-15
    assert abs(part.sums()[1][:, 0].sum() / mass - 1) < 1e-14


STREAMINGS = [
    n for n in names("layouts") if make("layouts", n).populations and n not in ("auto", "indirect")
]
SLIPPING = [("D2Q9", name, True) for name in STREAMINGS]
SLIPPING += [("D3Q19", "aa", False)]


@pytest.mark.parametrize(("lattice", "streaming", "periodic"), SLIPPING)
def test_mirrors_where_fluid_cells_alone_are_stored(lattice, streaming, periodic):
    """What comes from the mirror is what a dense layout has beyond the face, also across cuts."""
    D = int(lattice[1])
    slowest, size = "xyz"[D - 1], [6, 5, 9][-D:]
    slip = ["x-", "x+", *["y-"] * (D == 3), *[f"{slowest}-"] * (not periodic)]
    others = ["y+"] * (D == 3) + [f"{slowest}+"] * (not periodic)
    faces = [{"name": "free_slip", "where": slip}, {"name": "bounce_back", "where": others}]
    stones = [
        body(HALF_WAY, "low", name="sphere", centre=[0.5, 1.5, 4.5][-D:], radius=1.3),
        body(HALF_WAY, "high", name="box", lower=[3, 3, 6][-D:], upper=[9, 9, 8][-D:]),
    ]
    tables = closed(lattice, size, [f for f in faces if f["where"]], body=stones,
                    precision=PRECISIONS["single"])  # fmt: skip
    tables["domain"]["periodic"] = [False] * (D - 1) + [periodic]
    dense = Cluster(tables).start()
    tables = tables | {"layout": {"name": "indirect", "streaming": streaming}}
    several = [Cluster(tables, slabs).start() for slabs in (1, 3, size[-1])]
    for steps in (1, 4):
        state = dense.run(steps).state()
        for cluster in several:
            assert np.array_equal(cluster.run(steps).state(), state)
    half = Cluster(tables, 2).restore(state, 5).run(3)
    assert np.array_equal(half.state(), dense.run(3).state())


LAYOUTS = [{"name": name} for name in ("aa", "esopull", "moments")]
LAYOUTS += [{"name": "indirect", "streaming": name} for name in ("aa", "esopull")]


@pytest.mark.parametrize(
    "walls",
    [
        pytest.param([QUADRATIC, TARGET], id="two cells"),
        pytest.param([LINEAR, CENTRAL, {"name": "full_way"}], id="one cell"),
    ],
)
def test_neither_cut_nor_layout_shows(walls):
    """Nor a restart; six slabs have two planes each, or three.

    Walls that read two cells behind a wall, and those that read one, which need fewer ghost planes.
    """
    whole = Cluster(rocks({"name": "ab"}, *walls)).start().run(9)
    half = Cluster(rocks({"name": "ab"}, *walls), 2).start().run(4)
    for layout in LAYOUTS if QUADRATIC in walls else LAYOUTS[:-1]:
        if layout["name"] == "moments":
            one = Cluster(rocks(layout, *walls)).start().run(9)
            for name, values in whole.fields("rho", "u").items():
                assert np.abs(one.fields(name)[name] - values).max() < 3e-6
            cut = Cluster(rocks(layout, *walls), 6).start().run(9)
            assert np.array_equal(cut.state(), one.state())
            continue
        other = Cluster(rocks(layout, *walls), 6).restore(half.state(), 4, half.kept())
        assert np.array_equal(other.run(5).state(), whole.state())


@pytest.mark.parametrize(("layout", "wall"), [("esopull", QUADRATIC), ("aa", TARGET)])
def test_two_cells_behind_on_staggered_rows(layout, wall):
    """Of a ball through which the cuts of a periodic box go."""
    wall = wall | {"velocity": [0.01, 0.02, 0.03]}
    ball = body(wall, "ball", name="sphere", centre=[4.1, 3.2, 4.6], radius=1.7)
    tables = closed("D3Q13", [8, 6, 10], [{"name": "bounce_back", "where": ["y-", "y+"]}],
                    body=[ball], layout={"name": layout}, collision={"name": "mrt"})  # fmt: skip
    tables["domain"]["periodic"] = [True, False, True]
    whole = Cluster(tables).start().run(6).state()
    for slabs in (3, 5):
        assert np.array_equal(Cluster(tables, slabs).start().run(6).state(), whole)


def test_a_rank_owns_two_planes_where_two_cells_behind_are_read():
    tables = rocks({"name": "ab"}, QUADRATIC)
    tables["body"][0] |= {"boundary": QUADRATIC}
    case = parse_case(tables, "test.toml")
    for find in (
        lambda: plan(case, 7),
        lambda: build.build(case, domain.split(case.shape, 7, False)[6]),
    ):
        with pytest.raises(CaseError, match=r"a rank owns 1 plane of 13; .* at most 6 ranks"):
            find()
    plan(case, 6)


@pytest.mark.parametrize("wall", [LINEAR, QUADRATIC], ids=named)
def test_distances_are_those_of_the_shape(wall):
    """Of each link: the point so far along it lies on the surface; half-way where it must be."""
    case = parse_case(rocks({"name": "ab"}, wall), "test.toml")
    (slab,) = domain.split(case.shape, 1, False)
    lists = [e for e in build.build(case, slab).lists if e.per_link]
    disc = next(e for e in lists if e.boundary.velocity)
    far = []
    for entry, i, q in zip(*disc.links.unpack(), disc.per_link.distance, strict=True):
        x = np.array([disc.cells[entry] % 9 + 0.5, disc.cells[entry] // 9 + 0.5])
        at = x - q * np.array(case.lattice.c[i])
        if abs(np.hypot(*(at - [4.1, 6.3])) - 2.2) > 1e-12:
            far.append((q, (at + 1.5 * np.array(case.lattice.c[i])).tolist()))
    assert far == [(0.5, [7.5, 8.5])]  # behind that cell is the block
    assert [*disc.fallbacks.values()] == ([1, 2] if "order" in wall else [1])


def test_narrow_gaps_fall_back_and_say_so():
    def warnings(wall, gap):
        bodies = [
            body(wall, "low", name="box", lower=[0, 0], upper=[5, 2.2]),
            body(wall, "high", name="box", lower=[0, 1.9 + gap], upper=[5, 8]),
        ]
        faces = [{"name": "bounce_back", "where": ["y-", "y+"]}]
        tables = closed("D2Q9", [5, 8], faces, body=bodies)
        tables["domain"]["periodic"] = [True, False]
        found = map(str, plan(parse_case(tables, "t.toml")).findings)
        return [text for text in found if "behind their cell" in text]

    for wall in (LINEAR, QUADRATIC):
        (warning,) = warnings(wall, 1)
        assert "in 30 places: links have no fluid behind their cell" in warning
    (warning,) = warnings(CENTRAL, 1)
    assert "'central_linear' in 30 places: links have no fluid cell behind their cell" in warning
    (warning,) = warnings(QUADRATIC, 2)
    assert "in 30 places: links lack one of two fluid cells behind their cell; the" in warning
    assert not warnings(QUADRATIC, 3) + warnings(LINEAR, 2)
