"""Forces on bodies that the faces of a pressure jump cut: as if the faces were elsewhere."""

import numpy as np
import pytest
from support.body_forces import sample
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.core.registry import find, make, names

JUMP, SIZE = 2e-3, (14, 11)
OUTPUT = [{"name": "body_forces", "every": 1, "split": True}]
SAME_WALLS = ("bounce_back", "full_way")  # others have another wall beside the faces
SHIFTS = (5, 7, -6)


def driven(body, shift=0, axis=0, rho_jump=JUMP, **more):
    """A resting fluid with a constant gradient of the density, which the jump begins to drive.

    The flow is moved by `shift` cells along the axis of the jump with respect to the faces; the
    collision is linear in the density, so that the flow is the same to rounding.
    """
    a, jump = "xy"[axis], rho_jump if isinstance(rho_jump, float) else JUMP
    tables = box("D2Q9", size=SIZE if axis == 0 else SIZE[::-1]) | {
        "collision": {"name": "trt", "equilibrium": {"name": "incompressible"}},
        "precision": PRECISIONS["double"],
        "fluid": {"viscosity": 0.1},
        "initial": {"rho": f"1 + {jump}*(0.5 - ({a} - {shift})/n{a})", "u": [0, 0]},
        "boundary": [{"name": "pressure_jump", "where": [a + "-", a + "+"], "rho_jump": rho_jump}],
        "body": [body],
        "output": OUTPUT,
    }
    return tables | more


def disc(shift, axis=0, boundary="bounce_back"):
    centre = [(7.2 + shift) % SIZE[0], 5.4]
    shape = {"name": "cylinder", "radius": 2.7, "centre": centre[:: 1 - 2 * axis]}
    return {"label": "disc", "shape": shape, "boundary": {"name": boundary}}


def solid_cells(shift, axis=0, through=False):
    """The disc as a mask, with a plate along the whole box or without."""
    x, y = (np.arange(n) + 0.5 for n in SIZE)
    found = ((x - 7.2) ** 2 + (y[:, None] - 5.4) ** 2 < 2.7**2) | (through & (y[:, None] < 2))
    found = np.roll(found, shift, axis=1)
    return found.T if axis else found


def mask(shift, axis=0, through=False):
    cells = solid_cells(shift, axis, through)
    return {"label": "disc", "mask": cells, "boundary": {"name": "bounce_back"}}


def about(found, shift, axis=0):
    """The sums of a body whose torque is about a point that moves with it."""
    force, (torque,), *parts = np.split(found[0], [2, 3, 5])
    fx, fy = force
    torque = torque - (shift * fy if axis == 0 else -shift * fx)
    return np.concatenate([force, [torque], *parts])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("boundary", SAME_WALLS)
def test_the_force_is_the_same_wherever_the_faces_cut_the_body(boundary, axis):
    def force(shift):
        at = (7.2 + shift) % SIZE[0] - 7.2
        cluster = Cluster(driven(disc(shift, axis, boundary), shift, axis)).start().run(12)
        return about(sample(cluster), at, axis)

    whole = force(0)
    assert abs(whole[axis]) > 1e-4
    for shift in SHIFTS:
        cut = force(shift)
        np.testing.assert_allclose(cut[:2], whole[:2], rtol=0, atol=1e-10 * abs(whole[axis]))
        np.testing.assert_allclose(cut, whole, rtol=0, atol=1e-9 * abs(whole[axis]))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("through", [False, True])
def test_so_is_that_on_a_mask_with_or_without_a_plate_along_the_flow(axis, through):
    """A mask has no coordinates in which it is in one piece, and a plate has no ends."""

    def force(shift):
        return sample(Cluster(driven(mask(shift, axis, through), shift, axis)).start().run(12))

    whole = force(0)[0]
    if not through:
        as_shape = sample(Cluster(driven(disc(0, axis), 0, axis)).start().run(12))[0]
        np.testing.assert_allclose(whole[:2], as_shape[:2], rtol=0, atol=1e-14)
    for shift in SHIFTS:
        cut = force(shift)[0]
        assert cut[axis] == pytest.approx(whole[axis], rel=1e-10)
        assert cut[3 + axis] == pytest.approx(whole[3 + axis], rel=1e-10)


LATTICES = [("D2Q9", 0), ("D2Q9", 1), ("D3Q19", 2), ("D3Q19", 0), ("D3Q13", 2)]


@pytest.mark.parametrize(("lattice", "axis"), LATTICES)
def test_the_bodies_get_what_the_jump_drives(lattice, axis):
    """p(t + 1) - p(t) = cs2 rho_jump A - F, with jumps that change; any slabs have the same bits.

    A: the area of the face; where a body is solid all along the flow, without it.
    """
    lattice = make("lattices", lattice)
    D, size = lattice.D, [10, 10, 10] if lattice.D == 3 else [9, 10]
    a, across = "xyz"[axis], (axis + 1) % D
    ball = {"name": "sphere", "centre": [1.2, 1.4, 1.1][:D], "radius": 2.3}
    ball["centre"][across] = 2.6
    lower, upper = [-1.0] * D, [11.0] * D
    lower[across], upper[across] = 6.0, 8.0
    wall = {"name": "box", "lower": lower, "upper": upper}
    bodies = [
        {"label": n, "shape": s, "boundary": {"name": "bounce_back"}}
        for n, s in (("ball", ball), ("wall", wall))
    ]
    tables = box(lattice.name, size=size) | {
        "collision": {"name": "mrt" if lattice.staggered else "regularized"},
        "precision": PRECISIONS["double"],
        "boundary": [
            {
                "name": "pressure_jump",
                "where": [a + "-", a + "+"],
                "rho_jump": "0.004*(1 + cos(t/3))",
            }
        ],
        "body": bodies,
        "output": OUTPUT,
    }
    area = np.prod(size) / size[axis] * (1 - 2 / size[across])
    found = []
    for slabs in (1, 2):
        cluster = Cluster(tables, slabs).start()
        found.append([])
        for step in range(3):
            before, forces = momentum(cluster), sample(cluster)
            gained = momentum(cluster.run(1)) - before
            driving = float(lattice.cs2) * 0.004 * (1 + np.cos((step + 0.5) / 3)) * area
            expected = driving * (np.arange(D) == axis) - forces[:, :D].sum(axis=0)
            np.testing.assert_allclose(gained, expected, rtol=0, atol=1e-13)
            found[-1].append(forces)
    assert np.array_equal(found[0], found[1])


def momentum(cluster):
    columns, sums = cluster.sums()
    return sums.sum(axis=0)[[k for k, name in enumerate(columns) if name.startswith("momentum")]]


@pytest.mark.parametrize("layout", [name for name in names("layouts") if name != "ab"])
def test_every_layout_has_the_same_force(layout):
    more = {"layout": {"name": layout}, "rho_jump": "0.002*(1 + y/9)*cos(t/3)"}
    if not find("layouts", layout).populations:
        more["collision"] = {"name": "regularized", "equilibrium": {"name": "incompressible"}}
    tables = driven(disc(7), 7, **more)
    expected = sample(Cluster(tables | {"layout": {"name": "ab"}}).start().run(5))
    for slabs in (1, 3):
        found = sample(Cluster(tables, slabs).start().run(5))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
