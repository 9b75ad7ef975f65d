"""A pressure that jumps between periodic faces drives a flow, on any layout and any slabs."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from support.case_tables import problems
from support.pairs import defined
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.core.registry import make, names

LAYOUTS = [name for name in names("layouts") if name != "ab"]
NU, LENGTH = 0.1, 6


def jump(axis="x", rho_jump=1e-3):
    return {"name": "pressure_jump", "where": [f"{axis}-", f"{axis}+"], "rho_jump": rho_jump}


def channel(lattice, axis, H, *driven, **more):
    """A channel along an axis, walls across the next one; resting, in double precision."""
    D, along = make("lattices", lattice).D, "xyz".index(axis)
    across, size = (along + 1) % D, [4] * D
    size[along], size[across] = LENGTH, H
    walls = {"name": "bounce_back", "where": [f"{'xyz'[across]}{side}" for side in "-+"]}
    return box(lattice, size) | {
        "domain": {"size": size, "periodic": [k != across for k in range(D)]},
        "precision": PRECISIONS["double"],
        "fluid": {"viscosity": NU},
        "initial": {"rho": 1.0},
        "boundary": [walls, *driven],
    } | more  # fmt: skip


def profile(tables, axis):
    """The velocity along the axis across the channel, its mean along it."""
    cluster = Cluster(tables).start().run(12 * max(tables["domain"]["size"]) ** 2)
    u = cluster.fields("u")["u"][..., "xyz".index(axis)]
    return u[:, 0].mean(axis=1) if axis == "x" else u[:, 0].mean(axis=0)


@pytest.mark.parametrize("axis", "xy")
def test_poiseuille_at_second_order_and_as_by_a_force(axis):
    top, errors = 1e-4, []
    for H in (8, 16):
        pressure = top * 8 * NU / H**2 * LENGTH
        found = profile(channel("D2Q9", axis, H, jump(axis, 3 * pressure)), axis)
        value = [pressure / LENGTH * (axis == a) for a in "xy"]
        forced = channel("D2Q9", axis, H, force={"name": "guo", "value": value})
        y = (np.arange(H) + 0.5) / H
        errors.append(np.abs(found - 4 * top * y * (1 - y)).max() / top)
        assert np.abs(found - profile(forced, axis)).max() < 1e-5 * top
    slope = np.log2(errors[0] / errors[1])
    print(f"along {axis}: errors {errors}, slope {slope:.3f}")
    assert 1.9 < slope < 2.2
    assert errors[1] < 0.01


def rough(lattice, layout):
    """A channel with slabs cut across the jump, and a body at one of its faces."""
    D = make("lattices", lattice).D
    axis = "xyz"[D - 1]
    ball = {"name": "sphere", "centre": [1.6, 3.2, 0.8][3 - D :], "radius": 1.3}
    waves = {"rho": "1 + 0.01*cos(2*pi*x/nx)", "u": ["0.02*sin(2*pi*y/ny)", 0.01, 0.03][:D]}
    boundary = {"name": "bounce_back"}
    more = {"layout": {"name": layout}, "body": [{"shape": ball, "boundary": boundary}]}
    more |= {"initial": waves, "collision": {"name": "regularized"}}
    more |= {"collision": {"name": "mrt"}} if make("lattices", lattice).staggered else {}
    tables = channel(lattice, axis, 6, jump(axis, "0.01*(1 + x/9)*cos(t/3)"), **more)
    tables["domain"]["size"][D - 1] = 8 if D == 3 else 7
    return tables


CHOSEN = [("D2Q9", layout) for layout in LAYOUTS]
CHOSEN += [("D3Q15", "esopull"), ("D3Q13", "aa")]


@pytest.mark.parametrize(("lattice", "layout"), CHOSEN)
def test_cut_and_layout_are_not_seen_and_mass_is_kept(lattice, layout):
    whole = Cluster(rough(lattice, "ab")).start()
    mass = [whole.sums()[1][:, 0].sum(), whole.run(7).sums()[1][:, 0].sum()]
    cut = Cluster(rough(lattice, layout), 3).start().run(7)
    if layout == "moments":
        assert np.array_equal(Cluster(rough(lattice, layout)).start().run(7).state(), cut.state())
        fields = cut.fields("rho", "u")
        for name, values in whole.fields("rho", "u").items():
            np.testing.assert_allclose(fields[name], values, rtol=0, atol=1e-13)
    else:
        assert np.array_equal(cut.state(), whole.state())
    assert mass[1] == pytest.approx(mass[0], abs=1e-11)
    still = rough(lattice, "ab")
    still["boundary"][1]["rho_jump"] = 0.0
    assert not np.allclose(Cluster(still).start().run(7).state(), whole.state(), atol=1e-6)


@pytest.mark.parametrize("lattice", names("lattices"))
def test_the_jump_is_one_of_the_pressure_alone(lattice):
    """At rest, whatever the collision: no momentum, and a stress cs2 rho_jump in all directions."""
    lattice, d = make("lattices", lattice), Fraction(1, 7)
    for collision in names("collisions"):
        if not defined(lattice.name, collision):
            continue
        step = make("collisions", collision).feq(lattice, d, d, [0] * lattice.D)
        for a, b in product(range(lattice.D), repeat=2):
            stress = sum(f * c[a] * c[b] for f, c in zip(step, lattice.c, strict=True))
            assert stress == lattice.cs2 * d * (a == b)
        assert sum(step) == d


def test_walls_that_look_behind_their_links_do_not_look_through_a_jump():
    """A plug beside the face holds the jump: the fluid stays at rest."""
    plug = {"name": "box", "lower": [1.7, -1], "upper": [4.2, 9]}
    body = [{"shape": plug, "boundary": {"name": "interpolated", "order": 2}}]
    still = {"rho": "1 + where(x < 3, 0.01, 0)", "u": [0, 0]}
    tables = channel("D2Q9", "x", 8, jump("x", 0.01), body=body, initial=still)
    tables["domain"]["size"][0] = 10
    u = Cluster(tables).start().run(20).fields("u")["u"]
    assert np.abs(u).max() < 1e-12


WRONG = [
    ({"where": ["x-", "y+"]}, "boundary.1.where: found .*; allowed: two opposite faces"),
    ({"where": ["x-"]}, "boundary.1.where: found .*; allowed: two opposite faces"),
    ({"rho_jump": "z"}, "boundary.1.rho_jump: unknown name 'z'"),
    ({"rho_jump": 5}, "boundary.1.rho_jump: found 5.*; allowed: between -1 and 1"),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG)
def test_wrong_jumps_are_refused(change, sentence):
    tables = channel("D2Q9", "x", 8, jump() | change)
    (line, *_) = problems("", **tables)
    assert re.match(sentence, line), line
