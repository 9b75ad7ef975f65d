"""Small boxes of coupled fluids, and their state as arrays."""

import numpy as np

from mpilbm.core.registry import make
from support.slabs import PRECISIONS, Cluster

WET = {"water": 0.1, "oil": 0.6}


def box_of(lattice, size, **tables) -> dict:
    """Tables of a periodic box; the default coupling is shan_chen with G = -5."""
    D = make("lattices", lattice).D
    case = {
        "lattice": {"name": lattice},
        "domain": {"size": size, "periodic": [True] * D},
        "fluid": {"viscosity": 1 / 6},
        "coupling": {"name": "shan_chen", "G": -5.0},
        "precision": PRECISIONS["double"],
        "run": {"steps": 9},
    }
    return case | tables


def one_fluid(lattice, **tables) -> dict:
    """Tables of one fluid with two phases."""
    size = [9, 7, 13][-make("lattices", lattice).D :]
    rho = "0.7 + 0.3*sin(2*pi*x/nx) + 0.2*cos(2*pi*y/ny)"
    return box_of(lattice, size, initial={"rho": rho}) | tables


def two_fluids(lattice, force="guo", **tables) -> dict:
    """Water and oil with different collisions and viscosities; a variable force on the water."""
    D, size = make("lattices", lattice).D, [9, 8, 13]
    value = ["1e-3*sin(2*pi*y/ny)", "1e-4*t", 0][:D]
    water = {"rho": "0.6 + 0.3*sin(2*pi*x/nx)", "u": ["0.02*cos(2*pi*y/ny)", 0.01, 0][:D]}
    oil = {"rho": "0.5 - 0.3*sin(2*pi*x/nx) + 0.1*cos(2*pi*y/ny)"}
    fluids = [
        {"label": "water", "viscosity": 1 / 6, "initial": water},
        {"label": "oil", "viscosity": 0.05, "collision": {"name": "trt"}, "initial": oil},
    ]
    fluids[0]["force"] = {"name": force, "value": value}
    coupling = {"name": "shan_chen", "G": 1.2, "psi": "rho", "force": force}
    return box_of(lattice, size[-D:], fluid=fluids, coupling=coupling) | tables


def walled(lattice, wetting=WET) -> dict:
    """Half-way and full-way walls, and a ball across the slabs; `wetting` of walls and ball."""
    D, size = make("lattices", lattice).D, [9, 8, 13]
    faces = [axis + side for axis in "xyz"[:D] for side in "-+"]
    given = {"wetting": wetting} if wetting else {}
    shape = {"name": "sphere", "centre": [n / 2 for n in size[-D:]], "radius": 2.2}
    return {
        "domain": {"size": size[-D:]},
        "boundary": [
            {"name": "bounce_back", "where": faces[:3]} | given,
            {"name": "full_way", "where": faces[3:]},
        ],
        "body": [{"label": "ball", "shape": shape, "boundary": {"name": "bounce_back"} | given}],
    }


def solid(cluster: Cluster) -> np.ndarray:
    return np.concatenate(cluster.each(lambda s: s.solid(0, s.slab.planes)))


def raw(cluster: Cluster) -> dict:
    """{label: post-collision populations of the fluid, (planes, Q, rows, nx)}."""
    labels = [group.label for group in cluster.solvers[0].state_groups]
    return {
        label: np.concatenate(
            cluster.each(lambda s, label=label: s.read_state(label, 0, s.slab.planes))
        )
        for label in labels
    }


def state(cluster: Cluster) -> np.ndarray:
    """The arrays of `raw` for all fluids in one, (fluids, planes, Q, rows, nx), zero in solids."""
    whole = np.stack(list(raw(cluster).values()))
    return np.where(solid(cluster)[None, :, None], 0, whole)


def restored(tables, slabs, found: dict, step: int, kept: dict) -> Cluster:
    """A cluster that continues from `raw` and `kept` of another one."""
    cluster = Cluster(tables, slabs)

    def write(s):
        for label, values in found.items():
            s.write_state(label, 0, values[s.slab.begin : s.slab.end], step)
        s.resume(step)
        for each in s.entry_states:
            cells, values = kept[each.label]
            each.write(values[np.isin(cells, each.cells)])

    cluster.each(write)
    return cluster
