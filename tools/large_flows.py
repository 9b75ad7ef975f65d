"""Large flows whose speed tools/many_gpus and tools/real_flows measure."""

import tomllib
from pathlib import Path
from typing import Any

from gpu_flows import tables

CASES = Path(__file__).parents[1] / "cases"
FLOAT, MIXED, HALF = "float32/float32", "float32/mixed", "float32/float16"
WALLS = {"name": "bounce_back"}


def boxes(size: int, layout: str, setting: str, precision: str, ranks: int) -> tuple[dict, dict]:
    """Tables of a box of size^3 cells on each of the ranks, and of one of them."""
    one = tables("D3Q19", (size,) * 3, setting, layout, precision)
    return tables("D3Q19", (size, size, size * ranks), setting, layout, precision), one


def channel(count: int, layout: str, scale: int) -> dict[str, Any]:
    """`count` spheres side by side in a channel of 1024 x 384 x 384 cells for each of them."""
    nx, ny, nz = 1024 // scale, 384 // scale, 384 // scale
    case = tables("D3Q19", (nx, ny, nz * count), "periodic", layout, FLOAT)
    case["domain"]["periodic"] = [False] * 3
    ends = [
        {"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0, 0]},
        {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
        WALLS | {"where": ["y-", "y+", "z-", "z+"]},
    ]
    spheres = [
        {"name": "sphere", "centre": [nx // 4, ny / 2, nz * (k + 0.5)], "radius": ny / 6}
        for k in range(count)
    ]
    body = [
        {"label": f"s{k}", "shape": shape, "boundary": WALLS} for k, shape in enumerate(spheres)
    ]
    start = {"rho": 1.0, "u": [0.05, 0, 0]}
    return case | {"boundary": ends, "body": body, "initial": start}


def ahmed(length: int) -> dict[str, Any]:
    """The Ahmed body of the shipped case, with `length` cells along it."""
    case = tomllib.loads((CASES / "ahmed.toml").read_text("utf-8"))
    factor = length // case["fluid"]["length"]
    case["domain"]["size"] = [n * factor for n in case["domain"]["size"]]
    case["fluid"]["length"] = length
    shape = case["body"][0]["shape"]
    shape |= {"length": length, "at": [x * factor for x in shape["at"]]}
    del case["output"]
    return case


def heated(size: int, ranks: int) -> dict[str, Any]:
    """A box with heat, between a hot and a cold wall."""
    case = tables("D3Q19", (size, size, size * ranks), "periodic", "ab", FLOAT)
    case["domain"]["periodic"] = [False, True, True]
    ends = [
        {"name": "value", "where": ["x-"], "value": 1.0},
        {"name": "value", "where": ["x+"], "value": 0.0},
    ]
    heat = {"label": "T", "diffusivity": 0.02, "initial": {"value": "1 - x/nx"}, "boundary": ends}
    buoyancy = {"gravity": [0, 0, -1e-6], "T": {"beta": 1.0, "reference": 0.5}}
    walls = [WALLS | {"where": ["x-", "x+"]}]
    return case | {"scalar": [heat], "buoyancy": buoyancy, "boundary": walls}


def two_fluids(size: int, ranks: int) -> dict[str, Any]:
    """Two fluids that separate, periodic."""
    case = tables("D3Q19", (size, size, size * ranks), "periodic", "ab", FLOAT)
    case = {key: case[key] for key in ("lattice", "domain", "layout", "precision", "run")}
    wave = "0.01*sin(2*pi*x/nx)*cos(2*pi*y/ny)"
    fluids = [
        {
            "label": label,
            "viscosity": 1 / 6,
            "initial": {"rho": f"{share} + {wave}"},
            "collision": {"name": "bgk"},
        }
        for label, share in (("oil", 0.7), ("water", 0.6))
    ]
    coupling = {"name": "shan_chen", "psi": "rho", "G": [[0, 1.9], [1.9, 0]]}
    return case | {"fluid": fluids, "coupling": coupling}


def free_memory(backend: str) -> None:
    """Return the memory that CuPy keeps for later arrays to the driver."""
    if backend == "cuda":
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()
