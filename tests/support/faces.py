"""Tables of boxes with any registered boundary on any face."""

from pydantic import ValidationError

from mpilbm.core.registry import find, make, names
from mpilbm.physics.boundary_capabilities import Beyond
from support.slabs import PRECISIONS, box


def on_faces() -> list[str]:
    """The boundaries of a single face; those with a normal are first."""
    declares = {name: find("boundaries", name).declares for name in names("boundaries")}
    alone = [
        name
        for name, one in declares.items()
        if one.beyond is not Beyond.OPPOSITE_FACE and not one.in_cells
    ]
    return sorted(alone, key=lambda name: not declares[name].normal)


def table(name: str, *faces: str, D: int, **given) -> dict:
    """A [[boundary]] table with its required keys, and a velocity if that or a density must be."""
    cls = find("boundaries", name)
    needed = {key: of.examples[0] for key, of in cls.model_fields.items() if of.is_required()}
    given = needed | given
    try:
        cls(**given)
    except ValidationError:
        given |= {"velocity": [0.01, 0.02, 0.03][:D]}
    return {"name": name, "where": list(faces)} | given


def closed(lattice: str, size, boundaries, **tables) -> dict:
    """A box without periodic axes; the default precision is double."""
    tables = {"precision": PRECISIONS["double"], "collision": {"name": "regularized"}} | tables
    domain = {"size": size, "periodic": [False] * make("lattices", lattice).D}
    return box(lattice, size=size, domain=domain, boundary=boundaries, **tables)


NAMES = on_faces()


def four_faces(first: int, layout: str) -> dict:
    """Four boundaries on the faces of a 2D box with a body close to one of them."""
    chosen = [NAMES[(first + k) % len(NAMES)] for k in range(4)]
    faces = zip(chosen, ("y-", "y+", "x+", "x-"), strict=True)
    ball = {"name": "sphere", "centre": [3.5, 11], "radius": 1.2}
    return closed(
        "D2Q9",
        [8, 13],
        [table(name, face, D=2) for name, face in faces],
        layout={"name": layout},
        precision=PRECISIONS["single"],
        body=[{"shape": ball, "boundary": {"name": "bounce_back"}}],
    )
