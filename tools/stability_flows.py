"""The flows of tools/stability_map, as tables of a case."""

from itertools import product
from math import pi

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError

SIZES = {("vortex", 2): 128, ("vortex", 3): 64, ("cavity", 2): 64, ("cavity", 3): 32,
         ("large", 2): 256, ("large", 3): 128, ("body", 2): 8, ("body", 3): 8}  # fmt: skip
LENGTHS = {("vortex", 2): 10.0, ("vortex", 3): 20 / (2 * pi), ("cavity", 2): 30.0,
           ("cavity", 3): 30.0, ("body", 2): 20.0, ("body", 3): 20.0}  # fmt: skip
PEAK = {"vortex": 2.0, "large": 2.0, "cavity": 1.5, "body": 3.0}


def tables_of(setting: str, variant: dict, n: int, speed: float, re_cell: float, until: float):
    """The tables of the case of a point, and the number of steps."""
    D = int(variant["lattice"][1])
    kind = "vortex" if setting == "large" else setting
    steps = round(until * LENGTHS[kind, D] * n / speed)
    sides = [10 * n, 4 * n, 4 * n][:D] if kind == "body" else [n] * D
    tables = {
        "lattice": {"name": variant["lattice"]},
        "domain": {"size": sides, "periodic": [kind == "vortex"] * D},
        "fluid": {"viscosity": speed / re_cell},
        "collision": {"name": variant["collision"]},
        "layout": {"name": "ab"},
        "run": {"steps": steps},
        "backend": {"name": variant["backend"]},
    }
    if variant["closure"]:
        tables["collision"]["closure"] = {"name": variant["closure"]}
    if variant["collision"] == "entropic":
        tables["precision"] = {"intrinsics": True}
    if kind == "cavity":
        *walls, lid = [axis + side for axis in "xyz"[:D] for side in "-+"]
        slide = {"name": "bounce_back", "where": [lid], "velocity": [speed] + [0] * (D - 1)}
        tables["boundary"] = [slide, {"name": "bounce_back", "where": walls}]
    elif kind == "body":
        tables |= past_a_body(speed, n, D)
    else:
        tables["initial"] = shear_layers(speed) if D == 2 else taylor_green(speed)
    return tables, steps


def taylor_green(speed: float) -> dict:
    """The 3D vortex with its pressure."""
    cosines = "(cos(4*pi*x/nx) + cos(4*pi*y/ny))*(cos(4*pi*z/nz) + 2)"
    return {
        "rho": f"1 + 3*{speed}**2/16*{cosines}",
        "u": [f"{speed}*sin(2*pi*x/nx)*cos(2*pi*y/ny)*cos(2*pi*z/nz)",
              f"-{speed}*cos(2*pi*x/nx)*sin(2*pi*y/ny)*cos(2*pi*z/nz)", 0],
    }  # fmt: skip


def shear_layers(speed: float) -> dict:
    """Two shear layers, 1/80 of the box thick, with a perturbation that rolls them up."""
    return {
        "u": [f"{speed}*tanh(80*(0.25 - abs(y/ny - 0.5)))",
              f"{0.05 * speed}*sin(2*pi*(x/nx + 0.25))"],
    }  # fmt: skip


def past_a_body(speed: float, n: int, D: int) -> dict:
    """A channel with a cylinder or a sphere of n cells diameter, slightly off the middle."""
    along = [speed] + [0] * (D - 1)
    walls = [axis + side for axis in "yz"[: D - 1] for side in "-+"]
    shape = {"name": "cylinder" if D == 2 else "sphere", "radius": n / 2}
    shape["centre"] = [3 * n, 2 * n + 0.5, 2 * n][:D]
    return {
        "initial": {"u": along},
        "boundary": [
            {"name": "equilibrium", "where": ["x-"], "velocity": along},
            {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
            {"name": "bounce_back", "where": walls},
        ],
        "body": [{"label": "body", "shape": shape, "boundary": {"name": "bounce_back"}}],
    }


def variants(lattices, collisions, closures, backend: str) -> list[dict]:
    """All registered combinations of lattice, collision and closure."""
    found = []
    for closure, lattice, collision in product(closures, lattices, collisions):
        one = {"lattice": lattice, "collision": collision, "closure": closure, "backend": backend}
        try:
            parse_case(tables_of("vortex", one, 8, 0.1, 10, 1)[0])
        except CaseError:  # not defined on this lattice, or supports no closure
            continue
        found.append(one)
    return found
