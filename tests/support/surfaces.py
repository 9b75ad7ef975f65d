"""Files of surfaces, and the links that lead into a body."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import trimesh

from mpilbm.core.registry import make

DIRECTIONS = np.array([c for c in np.ndindex(3, 3, 3) if c != (1, 1, 1)]) - 1


def write_ball(path, subdivisions: int = 3) -> None:
    """A sphere of radius 1 around the origin."""
    trimesh.creation.icosphere(subdivisions).export(path)


def write(path, vertices, faces) -> None:
    """Any triangles."""
    trimesh.Trimesh(np.array(vertices, float), faces, process=False).export(path)


def case_of(folder, size, **more):
    """What a shape asks of a case."""
    domain = SimpleNamespace(size=tuple(size), periodic=(False,) * len(size))
    found = {"directory": Path(folder), "units": None, "dimensions": len(size), "domain": domain}
    return SimpleNamespace(**(found | more))


def mesh(folder, size, **keys):
    """A resolved mesh."""
    return make("shapes", {"name": "mesh"} | keys).resolved(case_of(folder, size))


def cells(shape, size) -> np.ndarray:
    """The solid cells of a box, indexed by x, y(, z), found in blocks as by `solids`."""
    axes = [np.arange(n) + 0.5 for n in size]
    grid = np.meshgrid(*axes[::-1], indexing="ij", sparse=True)
    return np.broadcast_to(shape.inside(*grid[::-1]), size[::-1]).T


def links(solid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and step, (3, n) each, of all links from fluid into solid cells inside a box."""
    points, steps = [], []
    padded = np.pad(solid, 1)
    for c in DIRECTIONS:
        there = np.roll(padded, tuple(-c), (0, 1, 2))[1:-1, 1:-1, 1:-1]
        start = np.argwhere(~solid & there).T + 0.5
        points.append(start)
        steps.append(np.repeat(c[:, None].astype(float), start.shape[1], 1))
    return np.concatenate(points, 1), np.concatenate(steps, 1)
