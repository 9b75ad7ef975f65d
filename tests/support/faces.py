"""Boxes with any registered boundary on any face."""

from pydantic import ValidationError

from mpilbm.physics.boundary_capabilities import Beyond
from mpilbm.registry import find, make, names
from support.slabs import PRECISIONS, box


def on_faces() -> list[str]:
    """All boundaries of a single face, those first that know their normal."""
    declares = {name: find("boundaries", name).declares for name in names("boundaries")}
    alone = [name for name, one in declares.items() if one.beyond is not Beyond.OPPOSITE_FACE]
    return sorted(alone, key=lambda name: not declares[name].normal)


def table(name: str, *faces: str, D: int, **given) -> dict:
    """A [[boundary]]; with a velocity where it needs a value and none is given."""
    try:
        find("boundaries", name)(**given)
    except ValidationError:
        given = {"velocity": [0.01, 0.02, 0.03][:D]}
    return {"name": name, "where": list(faces)} | given


def closed(lattice: str, size, boundaries, **tables) -> dict:
    """A box without periodic axes, in double precision unless it says otherwise."""
    tables = {"precision": PRECISIONS["double"], "collision": {"name": "regularized"}} | tables
    domain = {"size": size, "periodic": [False] * make("lattices", lattice).D}
    return box(lattice, size=size, domain=domain, boundary=boundaries, **tables)
