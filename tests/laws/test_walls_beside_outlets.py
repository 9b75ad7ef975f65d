"""Sides that move with a uniform flow, beside outlets: no wave may grow at small viscosities."""

import numpy as np
import pytest
from support.slabs import Cluster, assert_same

SPEED, NOISE = 0.05, 1e-3
OUTLETS = {"characteristic": {"rho": 1.0}, "copy": {"rho": 1.0}}
SIDES = {"equilibrium": {}, "wall_model": {"law": "spalding"}}


def stream(lattice, size, side, outlet, **tables):
    """A uniform flow along x, sides that move with it, and noise in the velocity."""
    D = len(size)
    u = [SPEED, 0.0, 0.0][:D]
    noise = [f"{NOISE}*sin({11 + 3 * k}*x + {7 - k}*y*y)" for k in range(D)]
    faces = ["y-", "y+"]
    return {
        "lattice": {"name": lattice},
        "domain": {"size": size, "periodic": [False, False, True][:D]},
        "fluid": {"viscosity": 1e-5},
        "collision": {"name": "recursive_regularized", "omega_bulk": 1.0},
        "initial": {"u": [f"{u[0]} + {noise[0]}", *noise[1:]]},
        "boundary": [
            {"name": "equilibrium", "where": ["x-"], "velocity": u},
            {"name": outlet, "where": ["x+"]} | OUTLETS[outlet],
            {"name": side, "where": faces, "velocity": u} | SIDES[side],
        ],
        "run": {"steps": 1},
    } | tables


def deviation(case, steps):
    u = Cluster(case).start().run(steps).fields("u")["u"]
    u[..., 0] -= SPEED
    return np.abs(u).max()


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(
    ("lattice", "size", "steps", "side", "outlet"),
    [
        ("D2Q9", [40, 20], 800, "equilibrium", "characteristic"),
        ("D2Q9", [40, 20], 800, "equilibrium", "copy"),
        ("D3Q27", [32, 12, 4], 600, "wall_model", "characteristic"),
    ],
)
def test_noise_decays_between_sides_that_move_with_the_flow(lattice, size, steps, side, outlet):
    assert deviation(stream(lattice, size, side, outlet), steps) < NOISE


BALL = {"name": "sphere", "centre": [5.3, 4.6], "radius": 2.2}


def beside(side, layout, outlet="characteristic"):
    """An outlet across the planes, a side in front of it, and a body that ends at the outlet."""
    u = [0.0, 0.05]
    return {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [11, 7], "periodic": [False, False]},
        "fluid": {"viscosity": 0.01},
        "collision": {"name": "regularized"},
        "precision": {"compute": "float64", "storage": "float64"},
        "layout": {"name": layout},
        "initial": {"u": [0.0, "0.05 + 0.01*sin(3*x + y)"]},
        "body": [{"shape": BALL, "boundary": {"name": "interpolated", "order": 2}}],
        "boundary": [
            {"name": "equilibrium", "where": ["y-"], "velocity": u},
            {"name": outlet, "where": ["y+"], "rho": 1.0},
            {"name": side, "where": ["x-"], "velocity": u, "ramp": 6} | SIDES.get(side, {}),
            {"name": "free_slip", "where": ["x+"]},
        ],
        "run": {"steps": 9},
    }


@pytest.mark.parametrize("side", ["equilibrium", "wall_model", "interpolated"])
def test_neither_slabs_nor_layouts_nor_restarts_show_in_what_outlets_read(side):
    """Restarts within the ramp and after it. In the first slab no outlet is next to the wall."""
    expected = Cluster(beside(side, "ab")).start().run(9)
    for layout, slabs in (("ab", 3), ("esopull", 1)):
        assert_same(expected, Cluster(beside(side, layout), slabs).start().run(9))
    for step in (4, 7):
        first = Cluster(beside(side, "ab")).start().run(step)
        again = Cluster(beside(side, "ab"), 3).restore(first.state(), step, first.kept())
        assert_same(expected, again.run(9 - step))
    moments = Cluster(beside(side, "moments")).start().run(9).fields("rho", "u")
    for name, values in expected.fields("rho", "u").items():
        np.testing.assert_allclose(moments[name], values, rtol=0, atol=1e-13)


@pytest.mark.parametrize("side", ["interpolated", "central_linear", "equilibrium"])
def test_layouts_of_moments_compute_what_outlets_read_in_an_earlier_round(side):
    lists = Cluster(beside(side, "moments")).start().solvers[0].lists[0]
    *early, late = lists.rounds(next(iter(lists._launches)), 0)
    read = sum("characteristic" not in each.kernel for each in lists._ranges)
    assert (sum(map(len, early)), len(late)) == (read, 1)


@pytest.mark.parametrize("name", ["interpolated", "central_linear"])
def test_half_a_body_at_a_plane_of_symmetry_has_the_flow_of_the_whole_one(name):
    """Its walls, which outlets read, read what arrives from the mirror image."""

    def disc(half):
        ny = 10 if half else 20
        return {
            "lattice": {"name": "D2Q9"},
            "domain": {"size": [28, ny], "periodic": [True, False]},
            "fluid": {"viscosity": 0.02},
            "collision": {"name": "trt"},
            "precision": {"compute": "float64", "storage": "float64"},
            "initial": {"u": [0.05, 0.0]},
            "body": [
                {
                    "shape": {"name": "sphere", "centre": [12.2, ny - 10], "radius": 5.3},
                    "boundary": {"name": name},
                }
            ],
            "boundary": [{"name": "free_slip", "where": ["y-", "y+"]}],
            "run": {"steps": 1},
        }

    half, whole = (Cluster(disc(each)).start().run(60).fields("u")["u"] for each in (True, False))
    assert np.abs(half - whole[10:]).max() < 1e-14
