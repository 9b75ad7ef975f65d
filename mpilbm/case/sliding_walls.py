"""Findings on walls that move along themselves, with fluid that moves with them.

In a uniform flow along a half-way wall a wave along the wall grows at small viscosities; shear and
the viscosity damp it. Two limits are of linear analysis on D2Q9 (tests/laws/test_outflow_walls.py):

    u > Collision.fastest_wall nu    a wave of two cells grows by 1 to 9 % a step
    u^2 > 2 nu                       a wave of three cells, with every collision, by 0.04 to 0.8 %;
                                     the wave begins to grow at u^2 of 2 to 10 nu

The first is reported for every wall. The second is so small in sheared flows that it is reported
only where the fluid moves with the wall from the start, or where an inlet gives its speed: a road
below a car.
"""

from collections.abc import Iterator
from math import sqrt

from mpilbm.case.checks import norm
from mpilbm.case.model import Case, Fluid
from mpilbm.case.starts import inlets
from mpilbm.case.velocity_bounds import fastest, speed_along
from mpilbm.model.findings import WARNING, Finding
from mpilbm.physics.boundary_capabilities import FaceFlow, Reads

SQUARED = 2.0  # u^2 / nu above which fluid that moves with a half-way wall is unstable
ALONG = 0.5  # speed of the fluid, relative to that of the wall, from which it moves with it


def flow_along_walls(case: Case) -> Iterator[Finding]:
    """Walls that return each population along its link and move along themselves too fast."""
    for fluid in case.fluids:
        nu, collision = fluid.viscosity, fluid.collision
        for k, boundary in enumerate(case.boundaries):
            back = boundary.capabilities.reads is Reads.SAME_LINK
            back = back or boundary.capabilities.uses_distance
            for face in boundary.where if back and boundary.wall_velocity is not None else ():
                speed, when = speed_along(case, boundary, face)
                if speed > collision.fastest_wall * nu:
                    most = collision.fastest_wall
                    unless = f" with the collision {collision.name} unless its omega_bulk is 1"
                    fix = "set it, or use"
                elif speed**2 > SQUARED * nu and moves_along(case, fluid, speed):
                    most = sqrt(SQUARED / nu)
                    unless, fix = "", "use"
                else:
                    continue
                text = (
                    f"{face} moves along itself at {speed:.3g}{when}, {speed / nu:.3g} viscosities"
                    f"; above {most:.3g} fluid that moves with a wall of the kind "
                    f"'{boundary.name}' is unstable{unless}; {fix} the boundary wall_model or "
                    "full_way with this velocity"
                )
                yield Finding(WARNING, f"boundary.{k}.velocity", text)


def moves_along(case: Case, fluid: Fluid, speed: float) -> bool:
    """Whether the fluid has the speed of a wall at the start, or an inlet gives it."""
    found = [fastest(case, boundary)[0] for _, boundary in inlets(case)]
    if fluid.initial.uniform:
        found.append(norm(fluid.initial.u))
    return max(found, default=0) > ALONG * speed


def nodes_along_outlets(case: Case) -> Iterator[Finding]:
    """On-site faces that move along themselves and meet an outlet.

    In a uniform flow the velocity in the cells of the edge was 1.4 to 3.6 times that of the flow
    with `guo` and `regularized` (D2Q9, nu = 1e-5 and 0.1), and `zou_he` failed at nu = 1e-5.
    """
    outlets = [
        (face, each.name)
        for each in case.boundaries
        if each.face_flow is FaceFlow.FREE
        for face in each.where
    ]
    for k, boundary in enumerate(case.boundaries):
        closed = boundary.on_site and boundary.face_flow is FaceFlow.CLOSED
        for face in boundary.where if closed else ():
            speed, when = fastest(case, boundary)
            beside = [f"{other} ('{name}')" for other, name in outlets if other[0] != face[0]]
            if speed and beside:
                text = (
                    f"{face} moves along itself at {speed:.3g}{when} and meets {beside[0]}: in the "
                    f"cells of the edge '{boundary.name}' makes the velocity up to 3.6 times as "
                    "large; use the boundary wall_model, full_way or equilibrium with this velocity"
                )
                yield Finding(WARNING, f"boundary.{k}.velocity", text)
