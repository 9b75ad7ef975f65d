"""Tables of bodies that conduct a scalar, and analytic solutions."""

from math import erf, sqrt

import numpy as np

from support.scalars import carried, flow
from support.slabs import Cluster


def conducting(shape: dict, diffusivity: float, capacity: float) -> dict:
    """The table of a body that conducts T."""
    material = {"diffusivity": diffusivity, "capacity": capacity}
    return {
        "shape": shape,
        "boundary": {"name": "bounce_back"},
        "scalar": {"T": {"conjugate": material}},
    }


def plate(begin: float, end: float, *material: float) -> dict:
    """A body between two planes along y."""
    return conducting({"name": "box", "lower": [-1, begin], "upper": [9, end]}, *material)


def layers(
    fluid: int, solid: int, material, ends=(), initial="0.3", D=0.1, lattice="D2Q5", **more
) -> Cluster:
    """A fluid at rest on a plate of a material, both so many cells high."""
    N = fluid + solid
    tables = {
        "domain": {"size": [2, N], "periodic": [True, False]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "body": [plate(0, solid, *material)],
        "initial": {},
    }
    scalar = carried(diffusivity=D, boundary=list(ends), initial={"value": initial})
    return Cluster(flow(scalars=[scalar | {"lattice": lattice}], **tables | more)).start()


def along_y(cluster: Cluster) -> np.ndarray:
    """T along y."""
    return cluster.fields("T")["T"][:, 0, 0]


def contact(y: np.ndarray, t: float, D: tuple[float, float], C: tuple[float, float]) -> np.ndarray:
    """T at time t of two half-spaces in contact at y = 0, at t = 0 with T = 0 (y < 0) and 1.

    The contact has T_i = e_1 / (e_0 + e_1) with the effusivities e = C sqrt(D), and T follows error
    functions on both sides.
    """
    e = [c * sqrt(d) for c, d in zip(C, D, strict=True)]
    middle = e[1] / (e[0] + e[1])
    side = (y > 0).astype(int)
    scaled = np.array([erf(abs(v) / (2 * sqrt(D[s] * t))) for v, s in zip(y, side, strict=True)])
    return middle + np.where(side == 1, 1 - middle, -middle) * scaled


def enthalpy_state(cluster: Cluster) -> np.ndarray:
    """The populations of T, (planes, Q, rows, nx); 0 in bodies that do not conduct it."""
    solids = [False, *(not body.conducts for body in cluster.case.scalars[0].bodies)]

    def read(solver):
        state = solver.read_state("T", 0, solver.slab.planes)
        solid = np.array(solids)[solver.context.geometry.solid]
        return np.where(solid[:, None], 0, state)

    return np.concatenate(cluster.each(read))


def cylinder(N: int, ratio: float, capacity: float) -> tuple[Cluster, np.ndarray]:
    """Conduction through a plane with a cylinder of radius N / 4.2, and the exact T.

    The conductivity of the cylinder is `ratio` times that of the fluid. With x, r from its centre,
    T = x (1 - (ratio - 1)/(ratio + 1) R^2/r^2) outside and T = 2 x / (ratio + 1) inside, given at
    the faces of the box.
    """
    R, k, c = N / 4.2, (ratio - 1) / (ratio + 1), N / 2
    outside = f"(x-{c})*(1 - {k * R * R}/((x-{c})**2 + (y-{c})**2))/{N}"
    scalar = carried(
        diffusivity=0.1,
        boundary=[{"name": "value", "where": ["x-", "x+", "y-", "y+"], "value": outside}],
        initial={"value": f"(x-{c})/{N}"},
    )
    shape = {"name": "sphere", "centre": [c, c], "radius": R}
    tables = flow(
        scalars=[scalar],
        domain={"size": [N, N], "periodic": [False, False]},
        boundary=[{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}],
        body=[conducting(shape, 0.1 * ratio / capacity, capacity)],
        initial={},
    )
    at = np.arange(N) + 0.5 - c
    x, y = np.meshgrid(at, at)
    rr = x**2 + y**2
    exact = np.where(rr < R * R, 2 / (ratio + 1), 1 - k * R * R / np.maximum(rr, 1e-9)) * x / N
    return Cluster(tables).start(), exact
