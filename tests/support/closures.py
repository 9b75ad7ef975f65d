"""Tables of closures: parameters in the range of the flows of the tests."""

from mpilbm.core.registry import find

REQUIRED = {
    "power_law": {"consistency": 0.003, "index": 0.7},
    "carreau": {"viscosity_0": 0.1, "viscosity_inf": 0.005, "time": 500, "index": 0.4},
    "bingham": {"yield_stress": 1e-5, "plastic_viscosity": 0.02, "exponent": 1e4},
    "herschel_bulkley": {
        "yield_stress": 1e-5,
        "consistency": 0.01,
        "index": 0.8,
        "exponent": 1e4,
    },
}


def closure_table(name: str, **fields) -> dict:
    """The table of a closure with its required keys; those of a plug-in have defaults."""
    return {"name": name} | REQUIRED.get(name, {}) | fields


def lattice_of(name: str) -> str:
    """The lattice with the fewest directions on which a closure is defined."""
    return "D2Q9" if 2 in find("closures", name).dimensions else "D3Q19"
