"""Tables of binary fluids with the free-energy coupling, and their flow in layers."""

import numpy as np

from mpilbm.core.registry import make
from support.coupled import box_of, walled
from support.slabs import PRECISIONS, Cluster

A, KAPPA = 0.02, 0.08
WIDTH = (2 * KAPPA / A) ** 0.5


def binary(lattice, phi, size, nu=(1 / 6, 1 / 6), **tables):
    """Tables of oil (phi = 1) and water (phi = -1) for an initial formula of phi."""
    fluids = [
        {"label": label, "viscosity": each, "initial": {"rho": f"(1 {sign} 0.999999*({phi}))/2"}}
        for label, sign, each in zip(("oil", "water"), "+-", nu, strict=True)
    ]
    coupling = {"name": "free_energy", "a": A, "kappa": KAPPA, "gamma": 0.8}
    return box_of(lattice, size, fluid=fluids, coupling=coupling) | tables


def waves(lattice, wetting=None, precision="double", **tables):
    """Oil and water of different viscosities in a closed box with a ball; a force on the oil."""
    D = make("lattices", lattice).D
    phi = "sin(2*pi*x/nx)*cos(2*pi*y/ny)"
    found = binary(lattice, phi, [9, 8, 13][-D:], (0.1, 0.3))
    force = {"name": "guo", "value": ["1e-4*t", "1e-4*sin(2*pi*x/nx)", 0][:D]}
    found["fluid"][0]["force"] = force
    return found | walled(lattice, wetting) | {"precision": PRECISIONS[precision]} | tables


def sharp_layers(n, inner, outer, push):
    """u at the cells between walls; the fluid of viscosity `inner` fills the middle half."""
    y, H, h = np.arange(n) + 0.5 - n / 2, n / 2, n / 4
    beyond = push * (H**2 - np.maximum(abs(y), h) ** 2) / (2 * outer)
    return beyond + push * (h**2 - np.minimum(abs(y), h) ** 2) / (2 * inner)


def layered_flow(n, inner, outer, width=2.0, **coupling):
    """Return |u - u_sharp| / |u_sharp| of a steady flow of layers in n cells on D2Q9."""
    kappa = 0.004
    tables = binary(
        "D2Q9",
        f"tanh(({n / 4} - abs(y - ny/2))/{width})",
        [4, n],
        (inner, outer),
        coupling={"name": "free_energy", "kappa": kappa, "a": 2 * kappa / width**2} | coupling,
        boundary=[{"name": "bounce_back", "where": ["y-", "y+"]}],
    )
    tables["domain"]["periodic"] = [True, False]
    push = 0.01 / sharp_layers(n, inner, outer, 1.0).max()
    for fluid in tables["fluid"]:
        fluid["force"] = {"name": "guo", "value": [push, 0]}
    u = Cluster(tables).start().run(round(n**2 / min(inner, outer))).fields("u")["u"]
    exact = sharp_layers(n, inner, outer, push)
    return np.linalg.norm(u[:, 0, 0, 0] - exact) / np.linalg.norm(exact)
