"""Cases of each lattice, layout, collision and precision, with different boundaries."""

from mpilbm.core.registry import find, make, names
from support import pairs
from support.slabs import PRECISIONS, box


def walls(lattice):
    """A closed box with a sliding lid and a body across the slabs."""
    D = make("lattices", lattice).D
    faces = [f"{axis}{side}" for axis in "xyz"[:D] for side in "-+"]
    lid, size = faces.pop(), [7, 6, 13][-D:]
    return {
        "domain": {"size": size},
        "boundary": [
            {"name": "bounce_back", "where": faces},
            {"name": "bounce_back", "where": [lid], "velocity": [0.05, 0.02, 0][:D]},
        ],
        "body": [ball(D, size)],
    }


def ball(D, size):
    shape = {"name": "sphere", "centre": [n / 2 for n in size], "radius": 2.2}
    return {"label": "ball", "shape": shape, "boundary": {"name": "bounce_back"}}


def forced(lattice):
    """A periodic box with a body force and a moving body."""
    D = make("lattices", lattice).D
    body = ball(D, [5, 4, 13][-D:])
    body["boundary"]["velocity"] = [0.01, 0.03, 0.02][:D]
    return {"force": {"name": "guo", "value": [1e-4, -2e-4, 3e-4][:D]}, "body": [body]}


def through(lattice):
    """Inflow and outflow through the faces normal to the axis along which slabs are split."""
    D = make("lattices", lattice).D
    axis = "xyz"[D - 1]
    ends = [{"velocity": [0.01, 0, 0.05][-D:]}, {"rho": 1.0}]
    boundaries = [{"name": "equilibrium", "where": [f"{axis}-"]} | ends[0],
                  {"name": "equilibrium", "where": [f"{axis}+"]} | ends[1]]  # fmt: skip
    size = [5, 4, 13][-D:]
    return {
        "domain": {"size": size, "periodic": [True] * (D - 1) + [False]},
        "boundary": boundaries,
    }


SETTINGS = {"periodic": lambda lattice: {}, "walls": walls, "forced": forced, "through": through}
OPTIONS = {
    "lattice": list(names("lattices")),
    # "auto" has the text of the layout that it chooses (laws/test_chosen_layouts.py)
    "layout": [name for name in names("layouts") if name != "auto"],
    "collision": list(names("collisions")),
    "setting": list(SETTINGS),
    "precision": list(PRECISIONS),
}


def defined(choice: dict) -> bool:
    """Whether a combination exists.

    Layouts of moments require a collision whose populations follow from moments up to the second
    order, and staggered lattices a dense layout; "mixed" is a storage of layouts of moments."""
    layout, lattice = make("layouts", choice["layout"]), make("lattices", choice["lattice"])
    collision = make("collisions", choice["collision"])
    whole = layout.populations or collision.second_order or collision.recursive
    found = layout.dense or not lattice.staggered
    precision = PRECISIONS[choice.get("precision", "single")]
    found = found and precision["storage"] in layout.storages
    return whole and found and pairs.defined(choice["lattice"], choice["collision"])


def small(choice: dict) -> dict:
    """A combination with the smallest text: D2Q9, and a collision of few terms."""
    whole = make("layouts", choice["layout"]).populations
    return choice | {"lattice": "D2Q9", "collision": "trt" if whole else "regularized"}


# The cases of laws/test_slabs_and_layouts.py, which compares the C text with the equations: each
# pair of a layout, a setting and a precision; each lattice and each collision.
# physics/test_collision_laws.py has the equations of all pairs of a lattice and a collision,
# layouts/test_layouts.py the addresses of all pairs of a lattice and a layout.
LAW_CASES = pairs.every_value(OPTIONS, defined, ("layout", "setting", "precision"))

# Cases for devices, whose macros depend on layout, setting and precision: each pair of these, and
# each name once. Files with the same cases share texts and C kernels in the cache.
NAMES_ONCE = pairs.cover(LAW_CASES, ())
DEVICE_CASES = NAMES_ONCE + [small(choice) for choice in LAW_CASES if choice not in NAMES_ONCE]


def tables(lattice, layout, collision, setting, precision, **more):
    case = box(
        lattice,
        **SETTINGS[setting](lattice),
        layout={"name": layout},
        collision={"name": collision},
        precision=PRECISIONS[precision],
        **more,
    )
    if "force" in case:
        case["force"]["name"] = (make("collisions", collision).forces or ["guo"])[0]
    return case


MODELS = [  # (force, equilibrium) that layouts of moments can store
    (force, equilibrium)
    for force in names("forcing")
    for equilibrium in names("equilibria")
    if find("forcing", force).second_order and find("equilibria", equilibrium).second_order
]


def with_model(lattice, force, equilibrium, **choice):
    """The forced box with another force and equilibrium."""
    case = tables(lattice, setting="forced", **choice)
    case["force"]["name"], case["collision"]["equilibrium"] = force, {"name": equilibrium}
    return case
