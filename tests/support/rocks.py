"""Boxes with a rock of scattered cells."""

import numpy as np

from mpilbm.registry import make
from support.settings import SETTINGS
from support.slabs import PRECISIONS, box

SIZE = (9, 6, 11)


def rock(path, D: int, seed: int = 3) -> dict:
    """A body of scattered cells, with a solid plane, one without solids, and one half solid."""
    solid = np.random.default_rng(seed).random(SIZE[-D:][::-1]) < 0.35
    solid[2], solid[5] = True, False
    solid[7] = np.arange(solid[7].size).reshape(solid[7].shape) > 4
    np.save(path / "rock.npy", solid)
    boundary = {"name": "bounce_back"}
    return {"label": "rock", "mask": str(path / "rock.npy"), "boundary": boundary}


def tables(path, lattice, layout, setting="periodic", precision="single", moving=False, **more):
    """A case of the laws of slabs, with a rock in it."""
    D = make("lattices", lattice).D
    case = box(lattice, SIZE[-D:], **SETTINGS[setting](lattice))
    case["domain"] = case["domain"] | {"size": list(SIZE[-D:])}
    stone = rock(path, D)
    if moving:
        stone["boundary"]["velocity"] = [0.02, 0.01, 0.03][:D]
    case["body"] = [*case.get("body", []), stone]
    return case | {"layout": layout, "precision": PRECISIONS[precision]} | more
