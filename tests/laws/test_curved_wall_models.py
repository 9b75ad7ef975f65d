"""Wall models at curved walls: no energy is added, the friction of the law, same bits on all slabs.

More than 20 s: a dozen kernel texts.
"""

import numpy as np
import pytest
from support.body_forces import OUTPUT, sample
from support.faces import closed
from support.slabs import Cluster
from support.walls import body

from mpilbm.case.case import parse_case
from mpilbm.core.registry import make
from mpilbm.parallel.slabs import split
from mpilbm.solids.build import build

MODEL = {"name": "wall_model", "law": "spalding"}
SPEED = 0.05
GRAINS = 0.1  # cells


def past(radius: float, size: list[int], lattice: str = "D2Q9", **tables) -> dict:
    """A stream past a disc or a sphere at a Reynolds number of 1e6, from a uniform start."""
    D = make("lattices", lattice).D
    speed = [SPEED, 0, 0][:D]
    faces = [
        {"name": "equilibrium", "where": ["x-"], "velocity": speed},
        {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
        {"name": "free_slip", "where": ["y-", "y+", "z-", "z+"][: 2 * D - 2]},
    ]
    centre = [n / 2 + off for n, off in zip(size, (0.31, 0.17, 0.23), strict=False)]
    shape = {"name": "sphere", "centre": centre, "radius": radius}
    given = {
        "fluid": {"viscosity": SPEED * 2 * radius / 1e6},
        "collision": {
            "name": "recursive_regularized",
            "omega_bulk": 1,
            "closure": {"name": "smagorinsky"},
        },
        "initial": {"u": speed},
        "output": [OUTPUT],
        "body": [body(MODEL, "ball", **shape)],
    }
    return closed(lattice, size, faces, **(given | tables))


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(
    ("lattice", "radius", "size", "steps", "least", "most"),
    [("D2Q9", 5.0, [60, 60], 1500, 1.7, 2.2), ("D3Q19", 4.0, [36, 26, 26], 200, 1.2, 1.6)],
)
def test_no_energy_is_added(lattice, radius, size, steps, least, most):
    """The largest speed is that of the potential flow, 2 and 3/2 of the stream's.

    Mirror images of the cells gave 3.9 and 2.6, and a flow faster than sound later.
    """
    cluster = Cluster(past(radius, size, lattice)).start().run(steps)
    u = cluster.fields("u")["u"]
    fastest = np.sqrt(np.nanmax((u**2).sum(axis=-1))) / SPEED
    assert least < fastest < most


def test_plane_parts_and_curved_ones():
    """A turned square: its sides are plane, except within two cells of its corners."""
    sides = [
        {"name": "half_space", "point": [30 + 10 * x, 30 + 10 * y], "normal": [x, y]}
        for x, y in ((0.6, 0.8), (0.8, -0.6), (-0.8, 0.6), (-0.6, -0.8))
    ]
    for side in sides[1:]:
        side["normal"] = [-n for n in side["normal"]]
    tables = past(1.0, [60, 60])
    tables["body"] = [body(MODEL, "square", name="difference", of=sides)]
    case = parse_case(tables, "test.toml")
    (slab,) = split(case.shape, 1, True)
    (entries,) = (each for each in build(case, slab).lists if each.samples)
    walls = entries.samples
    plane, x = np.divmod(entries.cells, 60)
    away = np.stack([x, plane], axis=1) + 0.5 - 30
    along = np.abs(away @ np.array([[0.6, -0.8], [0.8, 0.6]])).min(axis=1)
    assert walls.inclined[along < 9].all()
    assert not walls.curved[along < 7.9].any()
    assert walls.curved[walls.inclined & (along > 8.1)].all()
    assert walls.curved.any()


def test_wedges_end_at_faces():
    """A ramp between two faces of the box is plane up to these, and curved at its upper edge."""
    sides = [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+", "z-", "z+"]}]
    above = {"name": "half_space", "point": [0, 2.2, 0], "normal": [0.6, -0.8, 0]}
    block = {"name": "box", "lower": [-9, -9, 0], "upper": [9, 19, 6]}
    tables = closed("D3Q19", [14, 14, 6], sides)
    tables["body"] = [body(MODEL, "ramp", name="difference", of=[block, above])]
    case = parse_case(tables, "test.toml")
    (slab,) = split(case.shape, 1, True)
    (entries,) = (each for each in build(case, slab).lists if each.samples)
    walls, x = entries.samples, entries.cells % 14
    assert walls.inclined[x < 7].all()
    assert not walls.curved[x < 7].any()
    assert walls.curved[walls.inclined & (x > 7)].all()


def turning(lattice: str, radius: float, **tables) -> dict:
    """A ball in a fluid that turns about the axis of the ball along z, at SPEED everywhere."""
    D = make("lattices", lattice).D
    n = round(2 * radius) + 12
    centre = [n / 2 + 0.31, n / 2 + 0.17, n / 2 + 0.23][:D]
    x, y = (f"({axis} - {c})" for axis, c in zip("xy", centre, strict=False))
    spin = [f"{SPEED}*{u}/sqrt({x}**2 + {y}**2)" for u in (f"(-{y})", x)] + [0] * (D - 2)
    given = {
        "fluid": {"viscosity": 2e-5},
        "collision": {"name": "recursive_regularized", "omega_bulk": 1},
        "precision": {"compute": "float64", "storage": "float64"},
        "initial": {"u": spin},
        "output": [OUTPUT],
        "body": [body(MODEL, "ball", name="sphere", centre=centre, radius=radius)],
    }
    found = closed(lattice, [n] * D, [], **(given | tables))
    found["domain"]["periodic"] = [True] * D
    return found


def torque(tables: dict, **wall) -> float:
    """The torque on the ball about its axis along z in the first step."""
    (ball,) = tables["body"]
    given = tables | {"body": [ball | {"boundary": MODEL | wall}]}
    force = sample(Cluster(given).start())[0]
    x, y = ball["shape"]["centre"][:2]
    return float(force[-1] - (x * force[1] - y * force[0]))


def of_the_law(radius: float, D: int, grains: float = 0) -> float:
    """That of rho u_tau^2 on the ball, 2.5 cells above it."""
    u_tau = SPEED / make("wall_laws", "spalding").u_plus(SPEED * 2.5 / 2e-5, grains / 2.5)
    moment = 2 * np.pi * radius if D == 2 else (np.pi * radius) ** 2  # of sin over the surface
    return float(u_tau**2 * (radius + 2.5) * moment)


def of_roughness(tables: dict, **wall) -> float:
    """What roughness adds to the torque; the populations at links do not depend on it."""
    return torque(tables, roughness=GRAINS, **wall) - torque(tables, roughness=1e-9, **wall)


@pytest.mark.parametrize(("lattice", "radius"), [("D2Q9", 12.0), ("D3Q19", 7.0), ("D3Q27", 7.0)])
def test_the_friction_is_that_of_the_law(lattice, radius):
    D = make("lattices", lattice).D
    more = of_the_law(radius, D, GRAINS) - of_the_law(radius, D)
    assert of_roughness(turning(lattice, radius)) == pytest.approx(more, rel=0.08)


def test_a_half_model_has_half_of_the_friction():
    """A ball, and its half above a plane of symmetry."""
    whole = turning("D3Q19", 7.0)
    (ball,), n = whole["body"], whole["domain"]["size"][2]
    ball["shape"]["centre"][2] = n / 2
    half = whole | {
        "domain": {"size": [n, n, n // 2], "periodic": [True, True, False]},
        "boundary": [{"name": "free_slip", "where": ["z-", "z+"]}],
    }
    cut = ball["shape"] | {"centre": [*ball["shape"]["centre"][:2], 0.0]}
    half["body"] = [ball | {"shape": cut}]
    assert of_roughness(half) == pytest.approx(of_roughness(whole) / 2, rel=0.01)


def test_friction_is_relative_to_the_wall():
    """A disc that turns with the fluid has none, one that turns twice as fast the reverse."""
    tables = turning("D2Q9", 12.0)
    spin = {"centre": tables["body"][0]["shape"]["centre"], "rate": SPEED / 12}
    more = of_roughness(tables)
    assert abs(of_roughness(tables, rotation=spin)) < 1e-3 * more
    twice = spin | {"rate": 2 * spin["rate"]}
    assert of_roughness(tables, rotation=twice) == pytest.approx(-more, rel=0.01)


@pytest.mark.parametrize(
    ("lattice", "layout", "name"),
    [
        ("D2Q9", "ab", "recursive_regularized"),
        ("D3Q19", "aa", "recursive_regularized"),
        ("D3Q19", "moments", "regularized"),
    ],
)
def test_momentum_is_balanced(lattice, layout, name):
    """The force on the body is what the fluid loses, in all digits."""
    D = make("lattices", lattice).D
    tables = turning(lattice, 4.0, collision={"name": name}, layout={"name": layout})
    tables["initial"] = {"u": [SPEED, 0.01, -0.02][:D]}
    cluster = Cluster(tables).start().run(20)
    total = np.zeros(D)
    before = cluster.sums()[1].sum(axis=0)[1 : 1 + D]
    for _ in range(4):
        total += sample(cluster)[0, :D]
        cluster.run(1)
    after = cluster.sums()[1].sum(axis=0)[1 : 1 + D]
    assert np.abs(total).max() > 1e-3
    np.testing.assert_allclose(after - before, -total, atol=1e-11)


def test_neither_slabs_nor_layouts_show():
    """Populations and forces in all bits; `moments` to rounding."""
    given = {"fluid": {"viscosity": 1e-3}, "collision": {"name": "regularized"}}
    size = [19, 17]
    whole = Cluster(past(3.0, size, **given)).start().run(9)
    assert any(each.layer for each in whole.solvers[0].geometry.lists)
    for slabs, layout in ((3, "ab"), (4, "aa"), (2, "esopull"), (2, "indirect")):
        other = Cluster(past(3.0, size, layout={"name": layout}, **given), slabs)
        other.start().run(9)
        assert np.array_equal(other.state(), whole.state()), (slabs, layout)
        assert np.array_equal(sample(other), sample(whole)), (slabs, layout)
    tables = past(3.0, size, layout={"name": "moments"}, **given)
    moments = [Cluster(tables, slabs).start().run(9) for slabs in (1, 3)]
    assert np.array_equal(*(each.state() for each in moments))
    assert np.array_equal(*map(sample, moments))
    for name, values in whole.fields("rho", "u").items():
        np.testing.assert_allclose(moments[0].fields(name)[name], values, atol=1e-12)
