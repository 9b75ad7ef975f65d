"""Channels between no-slip walls, and the friction velocity that follows from the driving force.

    u_tau^2 = G h / rho,  y+ = y u_tau / nu

G is the constant force per volume along the channel, see driving.py, and h the volume of the fluid
divided by the area of its no-slip walls: half the distance of two walls, or the distance from a
wall to a mirror. rho = 1. [Pope, Turbulent Flows, 2000, eq. 7.13 and 7.25]
"""

from dataclasses import dataclass
from math import sqrt

from mpilbm.case.driving import AXES, NotDriven, driving
from mpilbm.case.model import Case
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import FaceFlow

FIRST = 0.5  # distance of the first cell centre from a half-way wall


@dataclass(frozen=True)
class WallAt:
    """A no-slip wall at a face of the box, in lattice units.

    face       such as "y-"
    position   along the normal of the face
    velocity   of the wall
    """

    face: str
    position: float
    velocity: tuple[float, ...]


@dataclass(frozen=True)
class ForcedChannel:
    """A channel that a constant force drives along the axis `along`; see the module's docstring."""

    normal: int
    along: int
    h: float
    u_tau: float
    viscosity: float

    @property
    def re_tau(self) -> float:
        """u_tau h / nu."""
        return self.u_tau * self.h / self.viscosity

    @property
    def first_y_plus(self) -> float:
        """y+ of the cell centres next to a half-way wall."""
        return FIRST * self.u_tau / self.viscosity


def walls_across(case: Case, normal: int) -> list[WallAt]:
    """The no-slip walls with constant velocities at the faces normal to an axis."""
    found = []
    for side, end in (("-", 0.0), ("+", float(case.domain.size[normal]))):
        face = AXES[normal] + side
        for boundary in case.boundaries:
            if face in boundary.where and _is_wall(boundary):
                inside = 0.5 if boundary.wall_at == "node" else 0.0
                given = getattr(boundary, "velocity", None) or (0.0,) * case.dimensions
                if not isinstance(given, str) and all(isinstance(v, int | float) for v in given):
                    at = end + (inside if side == "-" else -inside)
                    found.append(WallAt(face, at, tuple(map(float, given))))
    return found


def _is_wall(boundary: Boundary) -> bool:
    closed = boundary.face_flow is FaceFlow.CLOSED
    return closed and not boundary.mirrors and not boundary.joins_faces


def forced_channel(case: Case) -> ForcedChannel | None:
    """The channel of a case without bodies; None if it has another geometry or no such force."""
    if case.bodies or case.coupling or len(case.fluids) > 1:
        return None
    try:
        along, force = driving(case)
    except NotDriven:
        return None
    walls = {axis: walls_across(case, axis) for axis in range(case.dimensions)}
    closed = [axis for axis, found in walls.items() if found]
    if len(closed) != 1 or closed[0] == along:
        return None
    (normal,) = closed
    if len(walls[normal]) + len(_mirrors(case, normal)) != 2:
        return None
    low, high = 0.0, float(case.domain.size[normal])
    for wall in walls[normal]:
        low, high = (wall.position, high) if wall.face[1] == "-" else (low, wall.position)
    h = (high - low) / len(walls[normal])
    u_tau = sqrt(abs(force) * h)
    return ForcedChannel(normal, along, h, u_tau, case.fluids[0].viscosity)


def _mirrors(case: Case, normal: int) -> list[str]:
    """The faces normal to an axis that mirror the flow."""
    return [face for boundary in case.boundaries if boundary.mirrors
            for face in boundary.where if face[0] == AXES[normal]]  # fmt: skip
