"""Cases whose planes differ in computational cost."""

import numpy as np

from mpilbm.case.case import parse_case
from support.slabs import box


def tables(path, layout, D=3, filling=(0.0, 0.6)):
    """Tables of a box; `filling` is the solid fraction of its lower and upper half."""
    size = (8, 6, 17)[-D:] if D == 3 else (8, 17)
    planes = size[-1]
    solid = np.random.default_rng(4).random(size[::-1])
    share = np.where(np.arange(planes) < planes // 2, *filling)
    solid = solid < share.reshape(-1, *[1] * (D - 1))
    np.save(path / "rock.npy", solid)
    case = box("D3Q19" if D == 3 else "D2Q9", size)
    rock = {"label": "rock", "mask": str(path / "rock.npy"), "boundary": {"name": "bounce_back"}}
    return case | {"body": [rock], "layout": layout, "collision": {"name": "regularized"}}


def typed(tables):
    return parse_case(tables, "test.toml")
