"""How finely the cells of a case resolve its flow, if it is of a kind that the validation has."""

from collections.abc import Sequence

import numpy as np

from mpilbm.case.model import Case
from mpilbm.case.starts import inlets
from mpilbm.core.units import reynolds
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundaries.wall_model import WallModel
from mpilbm.run.proposal.scheme import Resolution

SPANS = 0.5  # share of the cross-section above which bodies span the box


def resolution(case: Case, speed: float, finer: float = 1.0) -> Resolution | None:
    """The resolution in cells that are `finer` times shorter; None for flows of other kinds.

    The kinds are 3D flows from an inlet. Past bodies inside the box the length is their longest
    side; through a passage, which is a body that reaches beyond the box or walls alone, it is the
    shortest side of the box across the inlet. Masks, scans, and bodies that span the box, such as
    packings, are neither. `speed`: the largest one, in lattice units. Walls are modelled if the
    bodies, or the faces of a passage without bodies, have a wall model.
    """
    _, inlet = next(inlets(case), ("", None))
    walls = any(isinstance(boundary, Wall) for boundary in case.boundaries)
    if case.dimensions < 3 or inlet is None or case.scalars or not (walls or case.bodies):
        return None
    axis = "xyz".index(inlet.where[0][0])
    across = [n for k, n in enumerate(case.domain.size) if k != axis]
    nu = case.fluids[0].viscosity
    if not case.bodies or _reaches_beyond(case):
        length = float(min(across))
        flat = not case.bodies
        faces = [wall for wall in case.boundaries if isinstance(wall, Wall)]
        modelled = _modelled(faces if flat else [body.boundary for body in case.bodies])
        number = reynolds(nu, length, speed)
        return Resolution("internal", number, length * finer, flat, modelled=modelled)
    lower, upper = _corners(case)
    if not lower.size:
        return None
    sides = upper.max(axis=0) - lower.min(axis=0)
    if np.prod(np.delete(sides, axis)) > SPANS * np.prod(across):
        return None
    length = float((upper - lower).max())
    narrow = float((upper - lower).min())
    modelled, number = (
        _modelled([body.boundary for body in case.bodies]),
        reynolds(nu, length, speed),
    )
    return Resolution("external", number, length * finer, narrow=narrow * finer, modelled=modelled)


def _modelled(walls: Sequence[Condition]) -> bool:
    """Whether all walls have a wall model."""
    return all(isinstance(wall, WallModel) for wall in walls)


def _reaches_beyond(case: Case) -> bool:
    """Whether a body with a surface reaches beyond the box."""
    lower, upper = _corners(case)
    return bool(lower.size and ((lower < 0) | (upper > np.array(case.domain.size))).any())


def _corners(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners of the bodies, (n, 3); empty if one of them has no surface."""
    shapes = [body.shape for body in case.bodies if body.shape and body.shape.has_surface]
    if len(shapes) < len(case.bodies):
        return np.empty(0), np.empty(0)
    lower, upper = zip(*(shape.bounds() for shape in shapes), strict=True)
    return np.array(lower, float), np.array(upper, float)
