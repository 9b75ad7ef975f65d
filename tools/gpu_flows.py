"""Flows that tools/gpu_check compares between GPU and CPU."""

from mpilbm.core.registry import find, make, names
from mpilbm.physics.boundary_capabilities import Beyond
from mpilbm.view.bench import box


def tables(
    lattice, size, setting="periodic", layout="ab", precision="float32/float32", **more
) -> dict:
    """A standard box of `mpilbm bench`, or a ball in a channel with a force."""
    ball, setting = setting == "ball", "periodic" if setting == "ball" else setting
    collision = "trt" if make("layouts", layout).populations else "regularized"
    collision = collision if make("lattices", lattice).isotropy >= 4 else "mrt"
    case = box(setting, size, lattice, collision, layout, precision)
    if ball:
        D, end = len(size), "xyz"[len(size) - 1]
        case["domain"]["periodic"][-1] = False
        ends = [{"name": "equilibrium", "where": [end + "-"], "velocity": [0] * (D - 1) + [0.03]},
                {"name": "equilibrium", "where": [end + "+"], "rho": 1.0}]  # fmt: skip
        shape = {"name": "sphere", "centre": [n / 2 for n in size], "radius": min(size) / 4}
        case |= {"boundary": ends, "force": {"name": "guo", "value": [1e-5] * D}}
        case["body"] = [{"label": "ball", "shape": shape, "boundary": {"name": "bounce_back"}}]
    return case | more


def carrying():
    """(name, tables) of flows that carry scalars, around a ball of a given value or that conducts.

    Two scalars react with each other.
    """
    conjugate = {"diffusivity": 0.1, "capacity": 3.0}
    on_ball = {
        "value": ("interpolated", {"T": {"value": 1.0}}),
        "flux": ("bounce_back", {"T": {"flux": 1e-4}, "c": {"h": 0.01, "ambient": 1.0}}),
        "conjugate": ("bounce_back", {"T": {"conjugate": conjugate}}),
    }
    wave = {"value": "0.5 + 0.3*cos(2*pi*x/nx)*sin(2*pi*y/ny)"}
    ends = [{"name": "value", "where": ["z-"], "value": "1 + 0.001*x*(nx - x)/nx"},
            {"name": "outflow", "where": ["z+"]}]  # fmt: skip
    scalars = [
        {"label": "T", "diffusivity": 0.02, "initial": wave},
        {"label": "c", "diffusivity": 0.01, "initial": wave, "source": "-0.001*c*T"},
    ]
    scalars = [scalar | {"boundary": ends} for scalar in scalars]
    buoyancy = {"gravity": [0, 0, -1e-4], "T": {"beta": 1.0, "reference": 0.5}}
    for kind, (wall, scalar) in on_ball.items():
        for layout, precision in (
            ("ab", "float32/float32"),
            ("aa", "float64/float64"),
            ("esopull", "float32/float16"),
        ):
            if kind == "conjugate" and precision == "float32/float16":
                continue  # refused: the capacity does not fit 16 bits
            case = tables("D3Q19", (66, 18, 14), "ball", layout, precision)
            body = {**case["body"][0], "boundary": {"name": wall}, "scalar": scalar}
            more = {"scalar": scalars, "buoyancy": buoyancy, "body": [body]}
            yield f"scalar {kind} {layout} {precision}", case | more


def flows():
    """(name, tables) of flows that are not among the standard boxes."""
    sizes = {"D2Q9": (67, 29), "D3Q19": (66, 18, 13), "D3Q27": (66, 18, 13)}
    for collision in names("collisions"):
        kind = find("collisions", collision)
        lattice = next(n for n in ("D3Q19", "D3Q27", "D2Q9") if n in (kind.lattices or sizes))
        case = tables(lattice, sizes[lattice], "periodic", "esopull")
        yield collision, case | {"collision": {"name": collision}}
    D3Q19 = sizes["D3Q19"]
    spin = ["-0.005*(y - 9)", "0.005*(x - 33)", 0]  # velocity of the ball's surface
    inlet = ["0.01*sin(t/9)", 0, "0.05*sin(pi*x/nx)*(1 - exp(-t/20))"]
    declares = {name: find("boundaries", name).declares for name in names("boundaries")}
    for name in (name for name, one in declares.items() if one.in_cells):
        for layout in ("ab", "aa", "esopull", "moments"):
            case = tables("D3Q19", D3Q19, "ball", layout)
            case["body"] = [body | {"boundary": {"name": name}} for body in case["body"]]
            yield f"boundary {name} {layout}", case
    for k, name in enumerate(name for name, one in declares.items() if not one.in_cells):
        layout = ("ab", "aa", "esopull", "moments", "indirect")[k % 5]
        case = tables("D3Q19", D3Q19, "ball", layout)
        fields = find("boundaries", name).model_fields
        needed = {key: of.examples[0] for key, of in fields.items() if of.is_required()}
        given = "velocity" in fields
        more = needed | ({"velocity": [0, 0, 0.02]} if given else {})
        ends = [
            {"name": "zou_he", "where": ["z-"], "velocity": inlet},
            {"name": name, "where": ["z+"]} | more,
        ]
        if find("boundaries", name).declares.beyond is Beyond.OPPOSITE_FACE:
            case["domain"]["periodic"][2] = True
            ends = [{"name": name, "where": ["z-", "z+"], "rho_jump": "1e-3*(1 + sin(t/9))"}]
        if not find("boundaries", name).declares.normal:
            wall = {"name": name} | ({"velocity": spin} if given else {})
            case["body"] = [body | {"boundary": wall} for body in case["body"]]
        yield f"boundary {name} {layout}", case | {"boundary": ends}
        if name == "interpolated":
            case["body"] = [body | {"boundary": wall | {"order": 2}} for body in case["body"]]
            yield "boundary interpolated order 2", case | {"boundary": ends}
    for layout, collision, closure in (
        ("esopull", "trt", "smagorinsky"),
        ("ab", "mrt", "smagorinsky"),
        ("moments", "regularized", "smagorinsky"),
        ("ab", "trt", "qr"),
        ("moments", "recursive_regularized", "qr"),
    ):
        case = tables("D3Q19", D3Q19, "ball", layout)
        table = {"name": collision, "closure": {"name": closure, "constant": 0.2}}
        yield f"{collision} {closure} {layout}", case | {"collision": table}
    fluids = {
        "power_law": {"consistency": 0.003, "index": 0.7},
        "carreau": {"viscosity_0": 0.1, "viscosity_inf": 0.005, "time": 500, "index": 0.4},
        "bingham": {"yield_stress": 1e-5, "plastic_viscosity": 0.02, "exponent": 1e4},
        "herschel_bulkley": {"yield_stress": 1e-5, "consistency": 0.01, "index": 0.8,
                             "exponent": 1e4},
    }  # fmt: skip
    for name, fields in fluids.items():
        case = tables("D3Q19", D3Q19, "ball", "ab")
        collision = {"name": "trt", "closure": {"name": name} | fields}
        yield f"trt {name}", case | {"collision": collision}
    waves = ["1e-5*(y - 9)*(z/nz)*(1 + t/100)", "1e-5*sin(2*pi*x/nx)", 0]
    for layout, collision in (("aa", "trt"), ("indirect", "trt"), ("moments", "regularized")):
        case = tables("D3Q19", D3Q19, "cavity", layout, collision={"name": collision})
        yield f"force by formulas {layout}", case | {"force": {"name": "guo", "value": waves}}
    yield from coupled(D3Q19)
    yield from at_blocks(D3Q19)
    yield from behind_sponges(D3Q19)
    case = tables("D3Q19", D3Q19, "periodic", "ab")
    start = case["initial"] | {"non_equilibrium": True, "iterate": 20}
    yield "initial state", case | {"initial": start}


def at_blocks(size):
    """(name, tables) of flows past a block that turns near a moving ball, or has a wall model."""
    block = {"label": "block", "shape": {"name": "box", "lower": [9, 4, 3], "upper": [17, 9, 8]}}
    cut = {"name": "box", "lower": [12, 3, 2], "upper": [20, 6, 9]}
    notched = block | {"shape": {"name": "difference", "of": [block["shape"], cut]}}
    turns = {"name": "rotation", "axis": [0, 0, 1], "rate": 0.01}
    goes = {"name": "translation", "velocity": ["0.02*sin(t/20)", 0, 0.01]}
    for layout in ("ab", "aa", "esopull", "moments"):
        case, boundary = tables("D3Q19", size, "ball", layout), {"name": "partially_saturated"}
        pairs = (block, turns), (case["body"][0], goes)
        bodies = [body | {"motion": motion, "boundary": boundary} for body, motion in pairs]
        yield f"bodies that move {layout}", case | {"body": bodies}
        if layout in ("ab", "moments"):
            field = [notched | {"motion": turns, "boundary": boundary}]
            yield f"a body that moves by a field of distances {layout}", case | {"body": field}
    falls = {"name": "free", "density": 1.5, "gravity": [1e-4, 0, 0], "rate": [0, 0.001, 0.002]}
    for layout in ("ab", "aa", "moments"):
        case, boundary = tables("D3Q19", size, "cavity", layout), {"name": "partially_saturated"}
        shape = {"name": "sphere", "centre": [20, 9, 6.4], "radius": 4}
        ball = {"label": "ball", "shape": shape, "motion": falls, "boundary": boundary}
        yield f"a free body {layout}", case | {"body": [ball]}
        egg = {"name": "tilted_ellipsoid", "centre": [26, 9, 6.5], "radii": [4, 3, 2.5]}
        egg |= {"rotate": [20, 30, 40]}
        pair = (notched, 0.05), ({"label": "egg", "shape": egg}, -0.05)  # they meet
        towards = [(body, falls | {"velocity": [u, 0, 0]}) for body, u in pair]
        bodies = [body | {"motion": motion, "boundary": boundary} for body, motion in towards]
        yield f"free bodies of any shape {layout}", case | {"body": bodies}
    for layout in ("ab", "moments", "indirect"):
        wall = {"name": "wall_model", "law": "spalding"}
        case = tables("D3Q19", size, "ball", layout)
        bodies = [body | {"boundary": wall} for body in (block, case["body"][0])]
        yield f"wall models at bodies {layout}", case | {"body": bodies}


def behind_sponges(size):
    """(name, tables) of flows whose inlet starts with a ramp and whose outlet follows a sponge."""
    inlet = {"name": "equilibrium", "where": ["z-"], "velocity": [0.01, 0, 0.04], "ramp": 30}
    outlet = {"name": "characteristic", "where": ["z+"], "rho": 1.0, "relaxation": 0.01}
    sponge = {"where": ["z+"], "thickness": 4, "viscosity": 0.1}
    for layout in ("ab", "aa", "esopull", "moments", "indirect"):
        case = tables("D3Q19", size, "ball", layout)
        force = case["force"] | {"ramp": 20}
        more = {"boundary": [inlet, outlet], "sponge": [sponge], "force": force}
        yield f"sponge and ramps {layout}", case | more


def coupled(size):
    """Flows of coupled fluids, with wetting walls."""
    wave = "0.01*sin(2*pi*x/nx)*cos(2*pi*y/ny)"
    models = {
        "shan_chen one": ({"name": "shan_chen", "G": -4.5}, None, "ab"),
        "shan_chen two": (
            {"name": "shan_chen", "psi": "rho", "G": [[0, 1.9], [1.9, 0]]},
            {"oil": 0.7, "water": 0.6},
            "esopull",
        ),
        "free_energy": (
            {"name": "free_energy", "a": 0.02, "kappa": 0.04, "gamma": 0.8},
            {"oil": 0.5 * 0.6, "water": 0.5 * 1.4},
            "aa",
        ),
    }
    for name, (coupling, shares, layout) in models.items():
        case = tables("D3Q19", size, "cavity", layout, collision={"name": "bgk"})
        case = {key: case[key] for key in ("lattice", "domain", "layout", "run")}
        fluid = {"viscosity": 1 / 6}
        start = {label: {"rho": f"{share} + {wave}"} for label, share in (shares or {}).items()}
        several = [fluid | {"label": label, "initial": rho} for label, rho in start.items()]
        alone = {"fluid": fluid, "initial": {"rho": f"0.7 + {wave}"}}
        case |= {"fluid": several} if several else alone
        faces = [axis + side for axis in "xyz" for side in "-+"]
        walls = {"name": "bounce_back", "where": faces}
        yield name, case | {"coupling": coupling, "boundary": [walls]}
