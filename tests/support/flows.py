"""Tables of small flows in double precision, and their evaluation."""

import numpy as np

from mpilbm.core.registry import names
from support.pairs import defined
from support.slabs import PRECISIONS


def first_lattice(collision: str) -> str:
    """The smallest lattice on which a collision is defined."""
    return next(lattice for lattice in names("lattices") if defined(lattice, collision))


def flow(lattice, collision, size, nu=0.1, **tables) -> dict:
    """Tables of a case in double precision."""
    case = {
        "lattice": {"name": lattice},
        "collision": {"name": collision} if isinstance(collision, str) else collision,
        "domain": {"size": size, "periodic": [True] * len(size)},
        "precision": PRECISIONS["double"],
        "fluid": {"viscosity": nu},
        "run": {"steps": 1},
    }
    return case | tables


def wave(lattice, collision, k, shear, nu=0.08, N=32) -> dict:
    """u = 0.001 shear sin(k.x 2 pi/N)."""
    phase = "+".join(f"{a}*{x}" for a, x in zip(k, "xyz", strict=False))
    u = [f"0.001*{s}*sin(2*pi*({phase})/{N})" for s in shear]
    size = [N if a else 2 for a in k]
    return flow(lattice, collision, size, nu, initial={"u": u})


def velocity(cluster) -> np.ndarray:
    return cluster.fields("u")["u"]


def relative(found, exact) -> float:
    """The relative error in the 2-norm."""
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)
