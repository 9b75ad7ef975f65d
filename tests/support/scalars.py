"""Tables of flows that carry scalars, and their evaluation."""

import numpy as np

from support.slabs import PRECISIONS, Cluster, box


def carried(label="T", diffusivity=0.02, **more) -> dict:
    """The table of a scalar that is a wave in x and y."""
    wave = {"value": "0.5 + 0.3*cos(2*pi*x/nx)*sin(2*pi*y/ny)"}
    return {"label": label, "diffusivity": diffusivity, "initial": wave} | more


def closed(dimensions: int) -> dict:
    """A box with walls along the last axis, and a wall of a given value at its lower end."""
    last = "xyz"[dimensions - 1]
    periodic = [True] * (dimensions - 1) + [False]
    return {
        "domain": {"size": [6, 5, 9][-dimensions:], "periodic": periodic},
        "boundary": [{"name": "bounce_back", "where": [f"{last}-", f"{last}+"]}],
    }


def flow(lattice="D2Q9", layout="ab", precision="double", scalars=None, **tables) -> dict:
    """Tables of a small flow that carries scalars; it is periodic by default."""
    scalars = [carried()] if scalars is None else scalars
    more = {"layout": {"name": layout}, "precision": PRECISIONS[precision], "scalar": scalars}
    return box(lattice, **more | tables)


def setting(name: str, dimensions: int) -> dict:
    """Tables of walls, bodies and forces by name."""
    last, down = "xyz"[dimensions - 1], [0.0] * (dimensions - 1) + [-1e-4]
    buoyancy = {"gravity": down, "T": {"beta": 1.0, "reference": 0.5}}
    if name == "periodic":
        return {}
    if name == "buoyant":
        return {"buoyancy": buoyancy, "force": {"name": "guo", "value": [1e-5] * dimensions}}
    ends = [
        {"name": "value", "where": [f"{last}-"], "value": "1 + 0.1*sin(2*pi*x/nx)"},
        {"name": "robin", "where": [f"{last}+"], "h": 0.05, "ambient": 0.2},
    ]
    walls = closed(dimensions) | {"buoyancy": buoyancy}
    walls["scalar"] = [carried(boundary=ends)]
    if name == "body":
        centre = [3.0, 2.5, 4.5][-dimensions:]
        shape = {"name": "sphere", "centre": centre, "radius": 1.4}
        one = {"shape": shape, "boundary": {"name": "interpolated"}}
        walls["body"] = [one | {"scalar": {"T": {"value": 1.2}}}]
    return walls


def scalar_state(cluster: Cluster, label="T") -> np.ndarray:
    """The populations of a scalar, (planes, Q, rows, nx), zero in solids."""

    def read(solver):
        state = solver.read_state(label, 0, solver.slab.planes)
        return np.where(solver.solid(0, solver.slab.planes)[:, None], 0, state)

    return np.concatenate(cluster.each(read))
