"""The constant force per volume that drives the flow of a case, if it has one along one axis."""

from typing import Any

from mpilbm.case.model import Case
from mpilbm.physics.boundaries import Boundary

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
    if case.coupling:
        raise NotDriven("the case has a [coupling]; allowed: one fluid without a coupling")
    force = case.fluids[0].force
    total = [0.0] * case.dimensions
    if force is not None:
        for axis, value in zip(range(case.dimensions), force.value, strict=False):
            total[axis] += _number(value, "force.value")
    for where, boundary in _owned(case):
        _refuse_velocity(where, boundary)
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
    """A number of the case; NotDriven for a formula or a file."""
    if isinstance(value, int | float):
        return float(value)
    found = f"is {value!r}" if isinstance(value, str) else "has values of cells, points or times"
    raise NotDriven(f"{key} {found}; allowed: a number, constant in space and time")


def _owned(case: Case) -> list[tuple[str, Boundary]]:
    """(faces or body, boundary) of all boundaries."""
    faces = [(", ".join(boundary.where), boundary) for boundary in case.boundaries]
    return faces + [(f"body '{body.label}'", body.boundary) for body in case.bodies]


def _refuse_velocity(where: str, boundary: Boundary) -> None:
    """NotDriven for an inlet or a moving wall."""
    velocity = getattr(boundary, "velocity", None)
    if velocity is not None and (isinstance(velocity, str) or any(velocity)):
        raise NotDriven(
            f"'{boundary.name}' at {where} has a velocity; allowed: walls at rest, and a density "
            "at faces; remove the velocity, or give rho in its place"
        )


def _between_faces(case: Case, axis: int) -> float:
    """cs2 (rho_lower - rho_upper) / L; 0 if the two faces have no density."""
    ends: dict[str, Boundary] = {}
    for boundary in case.boundaries:
        if getattr(boundary, "rho", None) is not None:
            ends |= {face[1]: boundary for face in boundary.where if face[0] == AXES[axis]}
    if len(ends) < 2:
        return 0.0
    lower, upper = (_number(getattr(ends[side], "rho", None), f"{ends[side].name}.rho")
                    for side in "-+")  # fmt: skip
    length = case.domain.size[axis] - sum(each.wall_at == "node" for each in ends.values()) / 2
    return float(case.lattice.cs2) * (lower - upper) / length
