"""Cases that sample the forces on bodies, and the sampled values."""

import numpy as np

from mpilbm.core.registry import make, names
from support.pairs import defined
from support.slabs import PRECISIONS, Cluster, box

LAYOUTS = [{"name": n} for n in names("layouts")] + [{"name": "indirect", "streaming": "ab"}]
OUTPUT = {"name": "body_forces", "every": 1}
FORCE = [2e-5, -1e-5, 3e-5]
STILL = {"name": "guo", "value": [0, 0]}


def bodies(D: int, boundary) -> list[dict]:
    """Two bodies: one at periodic faces, one that two slabs share, both with fluid on all sides."""
    block = {"name": "box", "lower": [0, 2, 2][:D], "upper": [2, 5, 5][:D]}
    ball = {"name": "sphere", "centre": [5.0, 4.0, 5.0][:D], "radius": 1.8}
    return [
        {"label": "block", "shape": block, "boundary": boundary},
        {"label": "ball", "shape": ball, "boundary": boundary},
    ]


def flow(lattice: str, boundary=None, **more) -> dict:
    """Tables of a driven flow around `bodies`; `more` replaces tables."""
    D = make("lattices", lattice).D
    known = ("regularized", *names("collisions"))
    collision = next(name for name in known if defined(lattice, name))
    tables = {
        "size": [9, 8, 8] if D == 3 else [9, 8],
        "collision": {"name": collision},
        "force": {"name": "guo", "value": FORCE[:D]},
        "precision": PRECISIONS["double"],
        "body": bodies(D, boundary or {"name": "bounce_back"}),
        "output": [OUTPUT],
    }
    return box(lattice, **(tables | more))


def by_plane(solver) -> np.ndarray:
    """The sums of the next step of each plane and body, (planes, bodies, columns)."""
    sums = solver.exchanged.start()()
    found = np.zeros((solver.slab.planes, len(solver.case.needs.weighed), sums.shape[1]))
    found[tuple(solver.exchanged.groups.T)] = sums
    return found


def sample(cluster: Cluster) -> np.ndarray:
    """Force and torque of each body, (bodies, D + 3 or 1)."""
    parts = cluster.each(by_plane)
    return np.cumsum(np.concatenate(parts), axis=0)[-1]


SPIN = {"name": "bounce_back", "velocity": ["-0.01*(y-6.2)", "0.01*(x-6.4)"]}


def rotor(layout: str, boundary: str = "bounce_back") -> dict:
    """Tables of a rotating disc in a periodic box."""
    disc = {"name": "sphere", "centre": [6.4, 6.2], "radius": 3.3}
    body = [{"label": "rotor", "shape": disc, "boundary": SPIN | {"name": boundary}}]
    return flow("D2Q9", size=[13, 12], body=body, layout={"name": layout})


def rows(path) -> list[dict[str, float]]:
    """The rows of a CSV file as {name of the column without unit: value}."""
    header, *lines = path.read_text().splitlines()
    columns = [name.split()[0] for name in header.split(",")]
    return [dict(zip(columns, map(float, line.split(",")), strict=True)) for line in lines]
