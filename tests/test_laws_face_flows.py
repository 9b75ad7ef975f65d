"""What boundaries do to flows: the same in every orientation, nothing to uniform flow."""

import numpy as np
import pytest
from faces import closed, on_faces, table
from slabs import Cluster

from mpilbm.registry import find, make, names

NAMES = on_faces()
ON_SITE = [name for name in NAMES if find("boundaries", name).wall_at == "node"]


def defined(name: str, lattice: str) -> bool:
    allowed = find("boundaries", name).lattices
    return allowed is None or lattice in allowed


def turned(vector, axes, signs):
    """A vector after axis a has become axes[a], with this sign."""
    found = [0.0] * len(axes)
    for value, axis, sign in zip(vector, axes, signs, strict=True):
        found[axis] = sign * value
    return found


def turned_box(lattice, size, entries, axes, signs):
    """The box of (name, face, velocity) after a rotation."""
    boundaries = []
    for name, (axis, side), velocity in entries:
        a = "xyz".index(axis)
        side = side if signs[a] > 0 else {"-": "+", "+": "-"}[side]
        entry = table(name, "xyz"[axes[a]] + side, D=len(axes))
        if "velocity" in entry:
            entry["velocity"] = turned(velocity, axes, signs)
        boundaries.append(entry)
    sides = [int(abs(n)) for n in turned(size, axes, signs)]
    still = {"rho": 1.0, "u": [0.0] * len(axes)}
    collision = {"name": "regularized" if make("lattices", lattice).isotropy > 2 else "mrt"}
    return closed(lattice, sides, boundaries, initial=still, collision=collision)


def flow(tables, axes, signs):
    """rho and u as (x, y(, z)[, component]), turned back."""
    cluster = Cluster(tables).start().run(9)
    fields = cluster.fields("rho", "u")
    D = len(axes)
    rho, u = (fields[k].reshape(*tables["domain"]["size"][::-1], -1) for k in ("rho", "u"))
    both = np.concatenate([rho, u], axis=-1).transpose(*range(D)[::-1], D)
    both = both.transpose(*axes, D)  # the axis that a has become is read as a again
    for a in range(D):
        both = np.flip(both, a) if signs[a] < 0 else both
    back = [signs[a] * both[..., 1 + axes[a]] for a in range(D)]
    return np.stack([both[..., 0], *back], axis=-1)


TURNS = {2: ((1, 0), (-1, 1)), 3: ((1, 2, 0), (1, -1, 1))}


@pytest.mark.parametrize("lattice", [n for n in names("lattices") if n != "D3Q13"])
def test_every_orientation_gives_the_same_flow(lattice):
    D = make("lattices", lattice).D
    chosen = [name for name in NAMES if defined(name, lattice)]
    for first in range(0, len(chosen), 2 * D) if lattice in ("D2Q9", "D3Q19") else [0]:
        some = [chosen[(first + k) % len(chosen)] for k in range(2 * D)]
        faces = [axis + side for side in "-+" for axis in "xyz"[:D]]
        entries = [
            (name, face, [0.01 + 0.002 * k, -0.02, 0.015][:D])
            for k, (name, face) in enumerate(zip(some, faces, strict=True))
        ]
        plain, size = (tuple(range(D)), (1,) * D), (6, 5, 7)[:D]
        one, other = (
            flow(turned_box(lattice, size, entries, *turn), *turn) for turn in (plain, TURNS[D])
        )
        assert np.abs(one[..., 1:]).max() > 0.01
        assert np.abs(one - other).max() < 1e-12


@pytest.mark.parametrize("name", ON_SITE)
def test_uniform_flow_passes_unchanged(name):
    """Whatever is given: the velocity, or the density."""
    u = [0.01, 0.05]
    for given in ({}, {"rho": 1.02}) if "rho" in find("boundaries", name).model_fields else ({},):
        ends = [table("zou_he", "y-", D=2, velocity=u), table(name, "y+", D=2, **given)]
        ends = [e | ({"velocity": u} if "velocity" in e else {}) for e in ends]
        if given:
            u = [0.0, 0.05]  # along the face it is zero
            ends[0]["velocity"] = u
        case = closed("D2Q9", [5, 6], ends, initial={"rho": 1.02, "u": u})
        case["domain"]["periodic"] = [True, False]
        fields = Cluster(case).start().run(20).fields("rho", "u")
        assert np.abs(fields["rho"] - 1.02).max() < 1e-13
        assert np.abs(fields["u"] - u).max() < 1e-13
