"""Minimal replacements of cases with only the attributes that the geometry reads."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mpilbm.core.registry import make
from mpilbm.physics.boundaries import Condition
from support.slabs import fitting_size


class Wall(Condition):
    """A boundary without a name: `kind` is its structure, `given_numbers` its values."""

    where: tuple[str, ...] = ()  # of any names
    kind: str
    given_numbers: dict[str, Any]

    def __init__(self, *where, kind="wall", **values):
        super().__init__(where=where, kind=kind, given_numbers=values)

    @property
    def precedence(self):
        """As in the list of boundaries."""
        return ()

    def structure(self):
        return {"name": self.kind}

    def values(self):
        return self.given_numbers


def body(boundary, mask=None, label="ball", **shape):
    shape = make("shapes", shape) if shape else None
    return SimpleNamespace(label=label, shape=shape, mask=mask, boundary=boundary, motion=None)


def make_case(lattice, size, periodic="", boundaries=None, bodies=(), directory="."):
    """A case; `periodic` names the periodic axes, other faces share two default boundaries."""
    axes = "xyz"[: len(size)]
    free = [axis for axis in axes if axis not in periodic]
    if boundaries is None:
        lower = Wall(*(axis + "-" for axis in free), kind="wall")
        upper = Wall(*(axis + "+" for axis in free), kind="moving", u=0.1)
        boundaries = (upper, lower) if len(free) == 2 else (lower, upper)
        boundaries = boundaries if free else ()
    closed = tuple(axis in periodic for axis in axes)
    nx, ny, *nz = size = tuple(fitting_size(lattice.name, size, closed))
    nx //= lattice.volume
    return SimpleNamespace(
        lattice=lattice,
        dimensions=len(size),
        shape=(nz[0], ny, nx) if nz else (ny, 1, nx),
        domain=SimpleNamespace(size=size, periodic=closed),
        boundaries=boundaries,
        bodies=bodies,
        path=Path("a.toml"),
        directory=Path(directory),
        ghost=1,
        scalars=(),
    )
