"""Speed, start-up, scaling and precision: `mpilbm bench` and `mpilbm precision`.

This module has the standard boxes as tables of a case: periodic, cavity, porous, duct.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

SETTINGS = ("periodic", "cavity", "porous", "duct")
SINGLE, DOUBLE = "float32/float32", "float64/float64"
# Tables [precision] of a case by their names compute/storage, as in the table of mpilbm precision.
PRECISIONS = {
    name: dict(zip(("compute", "storage"), name.split("/"), strict=True))
    for name in ("float32/float16", SINGLE, "float32/mixed", "float64/float32", DOUBLE)
}
# Their names in an earlier version, and in the files that it wrote.
EARLIER_PRECISIONS = {
    "half": "float32/float16",
    "single": SINGLE,
    "mixed_moments": "float32/mixed",
    "mixed": "float64/float32",
    "double": DOUBLE,
}
WAVES = {2: ["sin(2*pi*y/ny)", "cos(2*pi*x/nx)"]}
WAVES[3] = ["sin(2*pi*z/nz)", "cos(2*pi*x/nx)", "sin(2*pi*(x/nx + y/ny))"]
MASK = "rock.npy"
TILE = 64  # cells; a box is filled with copies of one rock of this size
RADIUS = 7.0  # cells
LONG = 100_000  # steps of the run that a box represents, which determine the layout `auto`


def box(
    setting: str,
    size: Sequence[int],
    lattice: str,
    collision: str = "trt",
    layout: str = "ab",
    precision: str = SINGLE,
) -> dict[str, Any]:
    """The tables of a case; initially the flow is a sum of waves.

    Settings: a periodic box; a cavity whose last face moves; a porous rock, whose mask must be in
    the folder of the case as `MASK`; a duct, periodic along its last axis, with a force along it
    [Januszewski & Kostur 2014, 4.2]. `size` holds the cells along x, y (and z).
    """
    D = len(size)
    tables: dict[str, Any] = {
        "title": f"{setting} box",
        "lattice": {"name": lattice},
        "domain": {"size": list(size), "periodic": [setting not in ("cavity", "duct")] * D},
        "fluid": {"viscosity": 0.02},
        "collision": {"name": collision},
        "precision": PRECISIONS[precision],
        "layout": {"name": layout},
        "initial": {"rho": 1.0, "u": [f"0.05*{wave}" for wave in WAVES.get(D, ())]},
        "run": {"steps": LONG},
    }
    tables["domain"]["periodic"][-1] = setting != "cavity"
    return tables | _extra(setting, D)


def _extra(setting: str, D: int) -> dict[str, Any]:
    """The tables of boundaries, force and bodies of a standard box."""
    faces = [axis + side for axis in "xyz"[:D] for side in "-+"]
    walls = {"name": "bounce_back"}
    if setting == "cavity":
        lid = walls | {"where": faces[-1:], "velocity": [0.05, *[0] * (D - 1)]}
        return {"boundary": [walls | {"where": faces[:-1]}, lid]}
    if setting == "duct":
        force = {"name": "guo", "value": [0] * (D - 1) + [1e-6]}
        return {"force": force, "boundary": [walls | {"where": faces[:-2]}]}
    if setting == "porous":
        force = {"name": "guo", "value": [1e-5] + [0] * (D - 1)}
        return {"force": force, "body": [{"label": "rock", "mask": MASK, "boundary": walls}]}
    return {}


def rock(
    shape: Sequence[int], radius: float = RADIUS, porosity: float = 0.62, seed: int = 1
) -> np.ndarray:
    """A mask of solid cells: random spheres until the fluid fraction is `porosity` or less.

    The spheres overlap and are periodic at all faces; in 2D they are discs.
    """
    random = np.random.default_rng(seed)
    solid = np.zeros(shape, bool)
    centres = [np.arange(n) + 0.5 for n in shape]
    cells = 0
    while 1 - cells / solid.size > porosity:
        # distance to the nearest periodic image, along each axis
        apart = [
            (centre - at + n / 2) % n - n / 2
            for centre, at, n in zip(centres, random.uniform(0, shape), shape, strict=True)
        ]
        near = [np.flatnonzero(np.abs(distance) < radius) for distance in apart]
        squares = (distance[mine] ** 2 for distance, mine in zip(apart, near, strict=True))
        block, inside = np.ix_(*near), sum(np.ix_(*squares)) < radius**2
        cells += int(np.count_nonzero(inside & ~solid[block]))
        solid[block] |= inside
    return solid


def tiled_rock(shape: Sequence[int], porosity: float) -> np.ndarray:
    """A rock of at most `TILE` cells a side, repeated over a box: the same pores in any box."""
    tile = rock(tuple(min(n, TILE) for n in shape), porosity=porosity)
    return tile[np.ix_(*(np.arange(n) % TILE for n in shape))]
