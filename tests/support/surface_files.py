"""Cases with the output `surface`, and what its files contain."""

from itertools import pairwise

import h5py
import numpy as np

from support.slabs import PRECISIONS

FLUID = {
    "fluid": {"viscosity": 0.1},
    "collision": {"name": "trt", "magic": 3 / 16},
    "precision": PRECISIONS["double"],
    "backend": {"name": "cpu"},
}


def surface(every: int, **more) -> dict:
    """The table of the output."""
    return {"name": "surface", "every": every, "label": "wall"} | more


def ball_tables(shape: dict, steps: int = 20, **more) -> dict:
    """A flow around a body in a periodic box of 12 x 10 x 10 cells."""
    found = {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": [12, 10, 10], "periodic": [True] * 3},
        "force": {"name": "guo", "value": [1e-5, 2e-6, 0]},
        "initial": {"u": ["0.01*sin(2*pi*y/10)", 0, "0.01*cos(2*pi*x/12)"]},
        "body": [{"label": "ball", "shape": shape, "boundary": {"name": "bounce_back"}}],
        "run": {"steps": steps},
        "output": [surface(steps), {"name": "body_forces", "every": steps}],
    }
    return {key: value for key, value in (FLUID | found | more).items() if value is not None}


def read(directory, step: int, label: str = "wall") -> dict[str, np.ndarray]:
    """The values of facets, and their centres and areas, of one file."""
    with h5py.File(directory / f"surface_{label}_{step:09d}.vtkhdf") as file:
        group = file["VTKHDF"]
        found = {name: item[()] for name, item in group["CellData"].items()}
        kind = group["Polygons" if group["Polygons/NumberOfCells"][0] else "Lines"]
        offsets, ids = kind["Offsets"][()], kind["Connectivity"][()]
        points = group["Points"][()]
    facets = [points[ids[a:b]] for a, b in pairwise(offsets)]
    found["centre"] = np.array([each.mean(axis=0) for each in facets])
    found["area"] = np.array([_area(each) for each in facets])
    return found


def _area(corners: np.ndarray) -> float:
    """Half of the sum of cross products with the neighbours; the length of a line."""
    if len(corners) == 2:
        return float(np.linalg.norm(corners[1] - corners[0]))
    spans = corners[1:] - corners[0]
    return float(np.linalg.norm(np.cross(spans[:-1], spans[1:]).sum(axis=0)) / 2)


def integral(found: dict[str, np.ndarray], field: str = "force") -> np.ndarray:
    """The integral over all facets."""
    return found["area"] @ np.nan_to_num(found[field])
