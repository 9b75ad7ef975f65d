"""Flows of generalised Newtonian fluids in channels and pipes, and their exact profiles."""

import numpy as np

from support.closures import closure_table
from support.slabs import PRECISIONS, Cluster

SPEED = 0.04  # scale of the largest velocity


def viscosity(closure: dict, g):
    """nu of the shear rate g > 0, as in the docstrings of the closures, within the limits."""
    name, index = closure["name"], closure.get("index", 1)
    nu = (
        closure.get("consistency", closure.get("plastic_viscosity")) * g ** (index - 1)
        if name != "carreau"
        else closure["viscosity_inf"]
        + (closure["viscosity_0"] - closure["viscosity_inf"])
        * (1 + (closure["time"] * g) ** closure.get("a", 2)) ** ((index - 1) / closure.get("a", 2))
    )
    if "yield_stress" in closure:
        nu = nu - closure["yield_stress"] * np.expm1(-closure["exponent"] * g) / g
    low, high = closure.get("viscosity_min", 1e-3), closure.get("viscosity_max", 3.0)
    return np.clip(nu, low, high)


def shear_of_stress(closure: dict, stress):
    """The shear rate at a stress / rho, by bisection."""
    low, high = np.full_like(stress, -60.0), np.full_like(stress, 20.0)
    for _ in range(60):
        x = (low + high) / 2
        small = viscosity(closure, np.exp(x)) * np.exp(x) < stress
        low, high = np.where(small, x, low), np.where(small, high, x)
    return np.exp((low + high) / 2)


def profile(closure: dict, G: float, distance, radius: float, per: int):
    """u(r) = integral of gamma(G s / per) from r to the wall; per = 1 channel, 2 pipe.

    Gauss-Legendre quadrature with 16 points in each of 31 intervals, 10 of them in the plug.
    """
    points, weights = np.polynomial.legendre.leggauss(16)
    found = []
    for r in np.ravel(distance):
        kink = min(max(closure.get("yield_stress", 0) * per / G, r), radius)
        edges = np.r_[np.linspace(r, kink, 11), np.linspace(kink, radius, 21)]
        half = np.diff(edges)[:, None] / 2
        s = edges[:-1, None] + half * (points + 1)
        found.append(np.sum(half * weights * shear_of_stress(closure, G * s / per)))
    return np.reshape(found, np.shape(distance))


def scaled(name: str, R: float, speed: float = SPEED, **fields) -> tuple[dict, float]:
    """A closure and a force per mass of the same flow for each radius R: diffusive scaling.

    Times are proportional to R^2 and velocities to 1/R, so that viscosities do not change; R = 8
    has the given speed.
    """
    g = speed * 8 / R**2  # a shear rate of the flow
    nu = fields.pop("nu", 0.05)
    index, part = fields.get("index", 0.5), fields.pop("plug", 0.4)
    per = fields.pop("per", 1)
    consistency = nu * g ** (1 - index)
    tables = {
        "power_law": {"consistency": consistency, "index": index},
        "carreau": {"viscosity_0": 4 * nu, "viscosity_inf": nu / 4, "time": 4 / g, "index": index},
        "bingham": {"plastic_viscosity": nu, "exponent": fields.get("sharp", 1000) / g},
        "herschel_bulkley": {
            "consistency": consistency,
            "index": index,
            "exponent": fields.get("sharp", 1000) / g,
        },
    }
    stress = nu * g * 2  # at the wall
    table = closure_table(name, **tables[name])
    if "exponent" in table:
        table["yield_stress"] = part * stress
    table |= {key: fields[key] for key in ("viscosity_min", "viscosity_max") if key in fields}
    return table, stress * per / R


def channel(closure: dict, G: float, H: int, lattice="D2Q9", collision="trt", **more) -> dict:
    """Tables of a channel of H cells between half-way walls, driven by a force."""
    D = 2 if lattice.startswith("D2") else 3
    return {
        "lattice": {"name": lattice},
        "collision": {"name": collision, "closure": closure},
        "domain": {"size": [2, H, 2][:D], "periodic": [True, False, True][:D]},
        "precision": PRECISIONS["double"],
        "fluid": {"viscosity": 0.05},
        "force": {"name": "guo", "value": [G, 0, 0][:D]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "run": {"steps": 1},
    } | more


def pipe(closure: dict, G: float, R: float) -> dict:
    """Tables of a pipe of radius R along x with an interpolated wall, driven by a force.

    The wall does not conserve the mass; with this equilibrium the flow does not depend on it.
    """
    n = int(np.ceil(2 * R)) + 3
    centre = [1, n / 2, n / 2]
    return {
        "lattice": {"name": "D3Q19"},
        "collision": {
            "name": "trt",
            "closure": closure,
            "equilibrium": {"name": "incompressible"},
        },
        "domain": {"size": [2, n, n], "periodic": [True] * 3},
        "precision": PRECISIONS["double"],
        "fluid": {"viscosity": 0.05},
        "force": {"name": "guo", "value": [G, 0, 0]},
        "body": [
            {
                "label": "wall",
                "boundary": {"name": "interpolated"},
                "shape": {
                    "name": "difference",
                    "of": [
                        {"name": "box", "lower": [-1, -1, -1], "upper": [3, n + 1, n + 1]},
                        {"name": "cylinder", "centre": centre, "radius": R, "axis": "x"},
                    ],
                },
            }
        ],
        "run": {"steps": 1},
    }


def steady(tables: dict, u: np.ndarray, tolerance: float = 1e-7) -> np.ndarray:
    """u_x(z, y) of the steady state: the relative change in 100 steps is below the tolerance.

    u: the expected profile u_x(z, y) or u_x(y), from which the run starts.
    """
    D, nx = len(tables["domain"]["size"]), tables["domain"]["size"][0]
    start = np.zeros((*u.shape, nx, D) if D == 2 or u.ndim == 2 else (2, *u.shape, nx, D))
    start[..., 0] = u[..., None]
    components = [start[..., 0], *([0] * (D - 1))]
    cluster, before = Cluster(tables | {"initial": {"u": components}}).start(), u
    for _ in range(600):
        found = cluster.run(100).fields("u")["u"][..., 0, 0]
        if np.abs(found - before).max() <= tolerance * np.abs(u).max():
            break
        before = found
    return found


def channel_error(closure: dict, G: float, H: int, **more) -> float:
    """The relative L2 error of the steady profile in a channel of H cells."""
    exact = profile(closure, G, np.abs(np.arange(H) + 0.5 - H / 2), H / 2, 1)
    u = steady(channel(closure, G, H, **more), exact).reshape(-1, H)[0]
    return float(np.linalg.norm(u - exact) / np.linalg.norm(exact))


def pipe_error(closure: dict, G: float, R: float) -> float:
    """The relative L2 error of the steady profile in a pipe of radius R."""
    tables = pipe(closure, G, R)
    y = np.arange(tables["domain"]["size"][1]) + 0.5 - tables["domain"]["size"][1] / 2
    r = np.hypot(y, y[:, None])
    exact = np.where(r < R, profile(closure, G, np.minimum(r, R), R, 2), 0)
    u = steady(tables, exact)[r < R]
    return float(np.linalg.norm(u - exact[r < R]) / np.linalg.norm(exact[r < R]))
