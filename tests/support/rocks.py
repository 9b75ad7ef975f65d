"""Cases with a body of randomly scattered cells."""

import numpy as np

from mpilbm.core.registry import make
from support.settings import SETTINGS
from support.slabs import PRECISIONS, box

SIZE = (9, 6, 11)


def rock(path, D: int, seed: int = 3) -> dict:
    """A body of random cells with one solid plane, one fluid plane and one half solid plane."""
    solid = np.random.default_rng(seed).random(SIZE[-D:][::-1]) < 0.35
    solid[2], solid[5] = True, False
    solid[7] = np.arange(solid[7].size).reshape(solid[7].shape) > 4
    np.save(path / "rock.npy", solid)
    boundary = {"name": "bounce_back"}
    return {"label": "rock", "mask": str(path / "rock.npy"), "boundary": boundary}


def tables(path, lattice, layout, setting="periodic", precision="single", moving=False, **more):
    """Tables of a box of `support.settings` with a rock."""
    D = make("lattices", lattice).D
    case = box(lattice, SIZE[-D:], **SETTINGS[setting](lattice))
    case["domain"] = case["domain"] | {"size": list(SIZE[-D:])}
    stone = rock(path, D)
    if moving:
        stone["boundary"]["velocity"] = [0.02, 0.01, 0.03][:D]
    case["body"] = [*case.get("body", []), stone]
    return case | {"layout": layout, "precision": PRECISIONS[precision]} | more
