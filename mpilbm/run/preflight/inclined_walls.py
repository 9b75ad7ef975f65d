"""Findings on wall models at inclined and curved walls of bodies: collision, closure and mass.

At plane ones `wall_model` returns the populations of the mirror image of the cell, rebuilt from the
second moments; the limits below were measured, see the manual, wall_model.
"""

from collections.abc import Iterator

from mpilbm.case.case_findings import is_closed
from mpilbm.case.model import Case
from mpilbm.core.units import counted
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding
from mpilbm.physics.boundaries.wall_model import WallModel

# Collisions with which the stress stayed within 15 % of the law for 400 steps (cumulant: 60).
# Others keep moments above the second order that do not follow from it; the mirror image has none.
MEASURED = ("recursive_regularized", "central_moment", "cumulant")


def findings(case: Case, inclined: int, curved: int) -> Iterator[Finding]:
    """Findings on cells at inclined walls with a wall model, of which `curved` at curved ones."""
    if not inclined:
        return
    bodies = (body for body in case.bodies if isinstance(body.boundary, WallModel))
    where = f"body.{next(bodies).label}.boundary"
    if curved:
        text = (
            f"wall_model has {counted(curved, 'cell')} at curved walls or next to edges, where the "
            "friction of the law acts on the cells 1.5 to 3.5 cells away. Steps of the wall add to "
            "it while the flow above slows down: measured at slopes between those of the axes and "
            "of the diagonals 1.4 to 1.6 times the law at first, 1.2 in boundary layers of 10 "
            "cells; compare with a finer grid"
        )
        yield Finding(NOTE, where, text)
    collision = case.fluids[0].collision
    if inclined > curved and collision.name not in MEASURED:
        text = (
            f"wall_model has {counted(inclined - curved, 'cell')} at inclined plane walls, where "
            "it rebuilds populations from their second moments, and found the collision "
            f"{collision.name}, with which the stress is not that of the law (measured, "
            "after 10 and 400 steps: trt 0.5 and 12 times, mrt 1.0 and 1.3, regularized 0.9 and "
            f"0.5); measured to suit: {', '.join(MEASURED)}"
        )
        yield Finding(SERIOUS, where, text)
    at = f"wall_model has {counted(inclined, 'cell')} at inclined or curved walls"
    if collision.closure is None:
        name = "qr" if case.dimensions == 3 else "smagorinsky"  # qr has no effect in 2D
        text = (
            f"{at}, and no closure: at high Reynolds numbers the flow along them may be unstable; "
            f'set collision.closure = {{name = "{name}"}}'
        )
        yield Finding(WARNING, where, text)
    if is_closed(case):
        text = (
            f"{at}, and the flow is closed: there the mass is not conserved (1e-3 in 5000 steps at "
            "plates, 0.6 % in 20 steps at a disc of radius 2.2 cells); the run reports a change "
            "above 0.1 %; use walls parallel to the faces of the cells, bounce_back, or an outlet "
            "with a given density"
        )
        yield Finding(WARNING, where, text)
