"""How many planes of its own a slab needs for the cells that boundaries read."""

from mpilbm.core.errors import CaseError
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Boundary, one_face_each
from mpilbm.physics.lattices import Lattice


def inward_step(lattice: Lattice, boundary: Boundary) -> tuple[int, int, int]:
    """(planes, rows, cells) from a cell to the next one along the normal; 2 planes if staggered."""
    plane, row, x = lattice.offset_of(boundary.normal(lattice.D))
    return lattice.volume * plane, lattice.volume * row, x


def planes_needed(case: Case) -> tuple[int, int, int]:
    """Smallest number of planes of the first slab, of inner slabs and of the last slab.

    With these, the cells that boundaries read inwards of the first and last plane are local.
    """
    slowest, needed = "xyz"[case.dimensions - 1], {"-": case.ghost, "+": case.ghost}
    for boundary in one_face_each(case.boundaries):
        inward = boundary.capabilities.inward
        if inward and boundary.where[0][0] == slowest:
            side = boundary.where[0][1]
            planes = max(map(abs, inward_step(case.lattice, boundary)))
            needed[side] = max(needed[side], min(1 + inward * planes, case.shape[0]))
    return needed["-"], case.ghost, needed["+"]


def require_planes(case: Case, slab: Slab) -> None:
    """Raise CaseError if a boundary reads cells that its rank does not hold.

    Cells inwards of a face must belong to the same rank. Cells along links may also belong to the
    neighbouring rank.
    """
    _require_behind(case, slab)
    slowest = "xyz"[case.dimensions - 1]
    for boundary in one_face_each(case.boundaries):
        inward = boundary.capabilities.inward
        if not inward or boundary.where[0][0] != slowest:
            continue
        planes = max(map(abs, inward_step(case.lattice, boundary)))
        needed = min(1 + inward * planes, case.shape[0])
        face = slab.begin == 0 if boundary.where[0][1] == "-" else slab.end == case.shape[0]
        if face and slab.planes < needed:
            raise CaseError(
                f"'{boundary.name}' at {boundary.where[0]} reads {counted(needed - 1, 'cell')} "
                f"inwards, and the rank there owns {counted(slab.planes, 'plane')} of "
                f"{case.shape[0]}; needed: {needed}; start at most "
                f"{counted(case.shape[0] // needed, 'rank')}",
                "boundary",
                case.path,
            )


def _require_behind(case: Case, slab: Slab) -> None:
    """Raise CaseError if the smallest slab has fewer planes than a boundary reads along links."""
    everywhere = (*case.boundaries, *(body.boundary for body in case.bodies))
    for boundary in everywhere:
        planes, fewest = case.shape[0], case.shape[0] // slab.ranks
        behind = boundary.capabilities.planes_behind
        if fewest >= behind:
            continue
        fix = f"start at most {counted(planes // behind, 'rank')}"
        raise CaseError(
            f"'{boundary.name}' reads {counted(behind, 'cell')} behind its links, and a "
            f"rank owns {counted(fewest, 'plane')} of {planes}; needed: {behind}; "
            f"{fix if planes >= behind else 'enlarge the box along that axis'}",
            "boundary",
            case.path,
        )
