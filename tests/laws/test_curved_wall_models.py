"""Wall models at curved walls: without energy from nowhere, and the same on all slabs."""

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


def test_neither_slabs_nor_layouts_show():
    """Populations and forces in all bits."""
    given = {"fluid": {"viscosity": 1e-3}}
    whole = Cluster(past(3.0, [17, 13], **given)).start().run(9)
    for slabs, layout in ((3, "ab"), (2, "aa"), (2, "esopull"), (2, "indirect")):
        other = Cluster(past(3.0, [17, 13], layout={"name": layout}, **given), slabs)
        other.start().run(9)
        assert np.array_equal(other.state(), whole.state()), (slabs, layout)
        assert np.array_equal(sample(other), sample(whole)), (slabs, layout)
