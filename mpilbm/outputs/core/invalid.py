"""What is wrong with a state that ends a run, and where."""

from typing import TYPE_CHECKING, NamedTuple

from mpilbm.parallel.slabs import Slab

if TYPE_CHECKING:
    from mpilbm.case.case import Case


class Bad(NamedTuple):
    """What is wrong with a state, how it was before, and changes of the case against it."""

    what: str
    before: str
    advice: str


def place_text(case: "Case", slab: Slab, plane: int, cell: tuple[int, int] | None) -> str:
    """A local plane of a slab, or the cell (row, x) in it, and the rank that owns it."""
    letter, place = "y" if case.dimensions == 2 else "z", slab.begin + plane
    owner = f"rank {slab.rank}, which owns {letter} = {slab.begin} to {slab.end - 1}"
    if cell is None:
        return f"{letter} = {place} on {owner}"
    row, x = cell[0], case.lattice.x(place, *cell)
    found = (x, place) if case.dimensions == 2 else (x, row, place)
    return f"cell ({', '.join(map(str, found))}) on {owner}"
