"""Tables of binary fluids with the free-energy coupling."""

from mpilbm.registry import make
from support.coupled import box_of, walled
from support.slabs import PRECISIONS

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
