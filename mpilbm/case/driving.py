"""The constant force that drives a flow, and the friction velocity of a channel that it drives.

    u_tau^2 = G h / rho,  y+ = y u_tau / nu

G is the constant force per volume along the channel, and h the volume of the fluid divided by the
area of its no-slip walls: half the distance of two walls, or the distance from a wall to a mirror.
rho = 1. [Pope, Turbulent Flows, 2000, eq. 7.13 and 7.25]
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from mpilbm.case.model import Case
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import FaceFlow

AXES = "xyz"


class NotDriven(ValueError):
    """The flow is not driven by one constant force; the message says where, what and the fix."""


def driving(case: Case) -> tuple[int, float]:
    """The axis and the force per volume G along it, in lattice units.

    G is the sum of the body force, of cs2 rho_jump / n for a pressure jump between periodic faces,
    and of cs2 (rho_lower - rho_upper) / L for densities given at opposite faces; n is the side of
    the box, and L the distance between the places at which the densities hold. Raises NotDriven if
    a part of G is a formula, if G has no component or several, if a velocity is given at a face, or
    for coupled fluids.
    """
    if not case.single_fluid:
        raise NotDriven("the case has a [coupling]; allowed: one fluid without a coupling")
    force = case.fluids[0].force
    total = [0.0] * case.dimensions
    if force is not None:
        for axis, value in zip(range(case.dimensions), force.value, strict=False):
            total[axis] += _number(value, "force.value")
    places = [(", ".join(boundary.where), boundary) for boundary in case.boundaries]
    places += [(f"body '{body.label}'", body.boundary) for body in case.bodies]
    for where, boundary in places:
        velocity = getattr(boundary, "velocity", None)
        if velocity is not None and (isinstance(velocity, str) or any(velocity)):
            raise NotDriven(
                f"'{boundary.name}' at {where} has a velocity; allowed: walls at rest, and a "
                "density at faces; remove the velocity, or give rho in its place"
            )
    for boundary in case.boundaries:
        if boundary.joins_faces:
            axis = AXES.index(boundary.where[0][0])
            jump = _number(getattr(boundary, "rho_jump", 0.0), f"{boundary.name}.rho_jump")
            total[axis] += float(case.lattice.cs2) * jump / case.domain.size[axis]
    for axis in range(case.dimensions):
        total[axis] += _between_faces(case, axis)
    found = [axis for axis, value in enumerate(total) if value]
    if len(found) != 1:
        along = "no axis" if not found else " and ".join(AXES[axis] for axis in found)
        raise NotDriven(
            f"the flow is driven along {along}; allowed: a constant force or pressure difference "
            "along one axis, such as force.value = [1e-6, 0, 0]; run the case once for each axis"
        )
    return found[0], total[found[0]]


def _number(value: Any, key: str) -> float:
    if isinstance(value, int | float):
        return float(value)
    found = f"is {value!r}" if isinstance(value, str) else "has values of cells, points or times"
    raise NotDriven(f"{key} {found}; allowed: a number, constant in space and time")


def _between_faces(case: Case, axis: int) -> float:
    """cs2 (rho_lower - rho_upper) / L; 0 if the two faces have no density."""
    ends: dict[str, Boundary] = {}
    for boundary in case.boundaries:
        if getattr(boundary, "rho", None) is not None:
            ends |= {face[1]: boundary for face in boundary.where if face[0] == AXES[axis]}
    if len(ends) < 2:
        return 0.0
    lower, upper = (
        _number(getattr(ends[side], "rho", None), f"{ends[side].name}.rho") for side in "-+"
    )
    length = case.domain.size[axis] - sum(each.wall_at == "node" for each in ends.values()) / 2
    return float(case.lattice.cs2) * (lower - upper) / length


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
    if case.bodies or not case.single_fluid:
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
    return [
        face
        for boundary in case.boundaries
        if boundary.mirrors
        for face in boundary.where
        if face[0] == AXES[normal]
    ]
