"""The flows of tools/stability_map, as tables of a case."""

from itertools import product
from math import pi

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.model.collision_label import parts_of

SIZES = {("vortex", 2): 128, ("vortex", 3): 64, ("cavity", 2): 64, ("cavity", 3): 32,
         ("large", 2): 256, ("large", 3): 128, ("body", 2): 8, ("body", 3): 8,
         ("road", 2): 12, ("road", 3): 12}  # fmt: skip
LENGTHS = {("vortex", 2): 10.0, ("vortex", 3): 20 / (2 * pi), ("cavity", 2): 30.0,
           ("cavity", 3): 30.0, ("body", 2): 20.0, ("body", 3): 20.0,
           ("road", 2): 30.0, ("road", 3): 30.0}  # fmt: skip
SIDES = {("body", 2): (10, 4), ("body", 3): (10, 4, 4), ("road", 2): (6, 4), ("road", 3): (6, 2, 2)}
PEAK = {"vortex": 2.0, "large": 2.0, "cavity": 1.5, "body": 3.0, "road": 3.0}
RE_CELL = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384)
HIGH = (10_000, 100_000, 1_000_000)  # with 8 or 12 cells along the body Re = 8e4 to 1.2e7


def levels(setting: str) -> tuple[int, ...]:
    """The grid Reynolds numbers at which a flow is run."""
    return RE_CELL + HIGH if setting in ("body", "road") else RE_CELL


def tables_of(setting: str, variant: dict, n: int, speed: float, re_cell: float, until: float):
    """The tables of the case of a point, and the number of steps."""
    D = int(variant["lattice"][1])
    kind = "vortex" if setting == "large" else setting
    steps = round(until * LENGTHS[kind, D] * n / speed)
    sides = [n * side for side in SIDES.get((kind, D), (1,) * D)]
    name, parameters, _ = parts_of(variant["collision"])
    tables = {
        "lattice": {"name": variant["lattice"]},
        "domain": {"size": sides, "periodic": [kind == "vortex"] * D},
        "fluid": {"viscosity": speed / re_cell},
        "collision": {"name": name} | parameters,
        "layout": {"name": "ab"},
        "run": {"steps": steps},
        "backend": {"name": variant["backend"]},
    }
    if variant["closure"]:
        tables["collision"]["closure"] = {"name": variant["closure"]}
    if name == "entropic":
        tables["precision"] = {"intrinsics": True}
    if kind == "cavity":
        *walls, lid = [axis + side for axis in "xyz"[:D] for side in "-+"]
        slide = {"name": "bounce_back", "where": [lid], "velocity": [speed] + [0] * (D - 1)}
        tables["boundary"] = [slide, {"name": "bounce_back", "where": walls}]
    elif kind == "body":
        tables |= past_a_body(speed, n, D)
    elif kind == "road":
        tables |= above_a_road(speed, n, D)
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


def above_a_road(speed: float, n: int, D: int) -> dict:
    """A block of n cells length, n/4 above a road that moves with the fluid, as in a wind tunnel.

    It is n/2 high and, in 3D, n/2 wide and slightly off the middle.
    """
    along = [speed] + [0] * (D - 1)
    up = "xyz"[D - 1]
    lower, upper = [2 * n, n / 4], [3 * n, 3 * n / 4]
    if D == 3:
        lower.insert(1, 3 * n / 4 + 1)
        upper.insert(1, 5 * n / 4 + 1)
    mirrors = [f"{up}+", *(["y-", "y+"] if D == 3 else [])]
    block = {"name": "box", "lower": lower, "upper": upper}
    return {
        "initial": {"u": along},
        "boundary": [
            {"name": "equilibrium", "where": ["x-"], "velocity": along},
            {"name": "characteristic", "where": ["x+"], "rho": 1.0, "relaxation": 0.01},
            {"name": "free_slip", "where": mirrors},
            {"name": "bounce_back", "where": [f"{up}-"], "velocity": along},
        ],
        "body": [{"label": "body", "shape": block, "boundary": {"name": "bounce_back"}}],
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
