"""Wall models at plane walls of bodies are those at faces; neither cut nor layout shows.

More than 20 s: kernel texts of wall models, by layout.
"""

import numpy as np
import pytest
from support.body_forces import OUTPUT, sample
from support.faces import closed
from support.slabs import PRECISIONS, Cluster
from support.walls import body

from mpilbm.core.registry import make

MODEL = {"name": "wall_model", "law": "spalding"}
LOWER = MODEL | {"roughness": 0.2}
UPPER = {"name": "wall_model", "law": "log", "sample": 2}
HEIGHT = 7


def channel(lattice: str, bodies: bool, **tables) -> dict:
    """An unsteady flow between a rough wall and a moving one, at faces or bodies."""
    D = make("lattices", lattice).D
    size, moves = [5, HEIGHT, 6][:D], ["0.01*sin(t) + 0.001*x", 0, 0.01][:D]
    waves = ["0.05 + 0.01*sin(2*pi*x/nx)", "0.004*cos(2*pi*x/nx)", "0.02 + 0.01*cos(2*pi*x/nx)"]
    upper = UPPER | {"velocity": moves}
    given = {
        "fluid": {"viscosity": 1e-3},
        "collision": {"name": "recursive_regularized"},
        "force": {"name": "guo", "value": [1e-5, 0, 2e-6][:D]},
        "initial": {"u": waves[:D]},
    } | tables
    if not bodies:
        walls = [LOWER | {"where": ["y-"]}, upper | {"where": ["y+"]}]
        found = closed(lattice, size, walls, **given)
        found["domain"]["periodic"] = [True, False, True][:D]
        return found
    solids = []
    for wall, name, y in ((LOWER, "floor", 0), (upper, "lid", HEIGHT + 1)):
        lower, upper_corner = [0, y, 0][:D], [5, y + 1, 6][:D]
        solids.append(body(wall, name, name="box", lower=lower, upper=upper_corner))
    size[1] += 2
    found = closed(lattice, size, [], body=solids, output=[OUTPUT | {"body": ["floor"]}], **given)
    found["domain"]["periodic"] = [True] * D
    return found


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_bodies_are_as_faces(lattice):
    """The same flow to rounding; the force on the floor is what the law demands."""
    faces = Cluster(channel(lattice, False)).start().run(9)
    bodies = Cluster(channel(lattice, True)).start().run(9)
    for name, values in faces.fields("rho", "u").items():
        found = np.moveaxis(bodies.fields(name)[name], int(lattice[1]) - 2, 0)
        expected = np.moveaxis(values, int(lattice[1]) - 2, 0)
        assert np.abs(found[1:-1] - expected).max() < 1e-14
    force, (model, _) = sample(bodies)[:, 0].sum(), faces.case.boundaries
    u = np.moveaxis(faces.fields("u")["u"], int(lattice[1]) - 2, 0)[model.sample - 1].copy()
    rho = np.moveaxis(faces.fields("rho")["rho"], int(lattice[1]) - 2, 0)[model.sample - 1]
    u[..., 1] = 0
    speed = np.sqrt((u**2).sum(axis=-1))
    expected = (rho * model.u_tau(speed, 1e-3) ** 2 * u[..., 0] / speed).sum()
    assert force == pytest.approx(expected, rel=1e-11)
    assert force > 1e-5


WALLS = [
    body(LOWER, "block", name="box", lower=[2, 4], upper=[6, 8]),
    body(UPPER | {"velocity": ["-0.02*(y - 10.3)", "0.02*(x - 9.1)*cos(t/5)"]}, "disc",
         name="sphere", centre=[9.1, 10.3], radius=2.2),
    body(LOWER, "floor", name="box", lower=[0, 0], upper=[13, 1]),
]  # fmt: skip


def obstacles(**tables) -> dict:
    """A block, a turning disc, and a plate at the end of the box."""
    given = {"fluid": {"viscosity": 2e-3}, "precision": PRECISIONS["double"]}
    given |= {"initial": {"u": [0.04, "0.01*sin(2*pi*x/nx)"]}, "collision": {"name": "regularized"}}
    given |= {"body": WALLS, "output": [OUTPUT]}
    found = closed("D2Q9", [13, 15], [], **(given | tables))
    found["domain"]["periodic"] = [True, True]
    return found


def test_neither_slabs_nor_layouts_show():
    """Populations and forces in all bits, also after a restart; `moments` to rounding.

    Five kernel texts take some seconds.
    """
    whole = Cluster(obstacles()).start()
    half = whole.run(10).state()
    forces = sample(whole.run(10))
    assert np.abs(forces[:, 0]).min() > 1e-7
    for slabs, layout in ((3, "ab"), (2, "aa"), (3, "esopull"), (1, "indirect"), (2, "indirect")):
        resumed = Cluster(obstacles(layout={"name": layout}), slabs).restore(half, 10).run(10)
        assert np.array_equal(resumed.state(), whole.state()), (slabs, layout)
        assert np.array_equal(sample(resumed), forces), (slabs, layout)
    moments = [Cluster(obstacles(layout={"name": "moments"}), n).start().run(20) for n in (1, 3)]
    assert np.array_equal(*(each.state() for each in moments))
    for name, values in whole.fields("rho", "u").items():
        np.testing.assert_allclose(moments[0].fields(name)[name], values, atol=1e-12)


def test_blocks_conserve_the_mass():
    walls = [each for each in WALLS if each["shape"]["name"] == "box"]
    walls.append(body(MODEL, "free", name="box", lower=[4, 6], upper=[8, 9]))
    cluster = Cluster(obstacles(body=walls, output=[])).start()
    mass = cluster.sums()[1][:, 0].sum()
    assert abs(cluster.run(20).sums()[1][:, 0].sum() / mass - 1) < 1e-13


def test_slopes_of_masks_have_no_slip(tmp_path):
    """A staircase of cells acts as `bounce_back`, in all bits."""
    y, x = np.mgrid[:15, :13]
    np.save(tmp_path / "stairs.npy", x + y < 4)
    found = []
    for wall in (MODEL, {"name": "bounce_back"}):
        stairs = {"label": "stairs", "mask": str(tmp_path / "stairs.npy"), "boundary": wall}
        tables = obstacles(body=[stairs], output=[])
        tables["domain"]["periodic"] = [False, False]
        tables["boundary"] = [{"name": "free_slip", "where": ["x-", "x+", "y-", "y+"]}]
        found.append(Cluster(tables).start().run(5).fields("rho", "u"))
    for name, values in found[0].items():
        assert np.abs(values - found[1][name]).max() < 1e-15


def test_fluid_that_moves_with_the_body_stays_as_it_is():
    wall = MODEL | {"velocity": [0.03, 0]}
    plate = body(wall, "plate", name="box", lower=[0, 4], upper=[13, 6])
    cluster = Cluster(obstacles(body=[plate], initial={"u": [0.03, 0]}, output=[])).start().run(20)
    u = cluster.fields("u")["u"][[0, 3, 6], 0]
    np.testing.assert_allclose(u, np.broadcast_to([0.03, 0], u.shape), atol=1e-15)


BLOCK = body(MODEL | {"sample": 3}, "block", name="box", lower=[2, 1], upper=[5, 6])
PARTIAL = body({"name": "partially_saturated"}, "p", name="sphere", centre=[3.4, 8.8], radius=0.8)

MOVING = PARTIAL | {"motion": {"name": "translation", "velocity": [0.01, 0.05]}}


def block(**tables) -> dict:
    """A block; the cells below and above it sample two planes beyond the periodic face or a cut."""
    given = {"body": [BLOCK], "output": [], "initial": {"u": [0.03, "0.02*cos(2*pi*x/nx)"]}}
    return obstacles(**(given | tables)) | {"domain": {"size": [7, 11], "periodic": [True, True]}}


T = {"label": "T", "prandtl": 0.7, "initial": {"value": "sin(2*pi*y/ny)"}, "source": "0.01*cos(y)"}


@pytest.mark.parametrize(
    "tables",
    [
        {"layout": {"name": "indirect"}},
        {
            "layout": {"name": "aa"},
            "scalar": [T],
            "buoyancy": {"gravity": [-0.01, 0], "T": {"beta": 1}},
        },
        {"body": [BLOCK, PARTIAL], "force": {"name": "guo", "value": [0.005, 0]}},
        {"body": [BLOCK, MOVING], "force": {"name": "guo", "value": [0.005, 0]}},
    ],
    ids=["of listed cells", "with buoyancy", "with solid shares", "of a moving body"],
)
def test_samples_two_planes_beyond_a_slab(tables):
    """The force, too, is that of the sampled cell: u includes half of it."""
    one, three = (Cluster(block(**tables), n).start().run(4) for n in (1, 3))
    assert np.array_equal(one.state(), three.state())


@pytest.mark.parametrize("boundary", [None, {"name": "tamm_mott_smith"}])
def test_forces_beyond_a_periodic_face_are_those_at_the_other_one(boundary):
    """A force that depends on y, and one that is the same in the box and periodic beyond it."""
    found = []
    for force in ("0.002*y/ny", "0.002*where(y < 0, y + ny, where(y < ny, y, y - ny))/ny"):
        tables = block(force={"name": "guo", "value": [force, 0]})
        if boundary:
            tables["body"][0] = tables["body"][0] | {"boundary": boundary}
        found += [Cluster(tables, n).start().run(4).state() for n in (1, 2)]
    assert all(np.array_equal(found[0], each) for each in found)
