"""The rotation: a body turns about an axis that is at rest."""

from functools import cached_property
from math import hypot
from typing import Annotated

import numpy as np
from pydantic import Field

from mpilbm.core.formulas.course import Course
from mpilbm.core.formulas.values import Value
from mpilbm.core.quantity import ANGULAR_VELOCITY, LENGTH, RADIANS
from mpilbm.core.registry import register
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.physics.motions import Floats, Motion, Placement, wrong_formulas

AXIS = (0.0, 0.0, 1.0)


@register("motions", "rotation")
class Rotation(Motion):
    """A body that turns about an axis: x(t) = p + R(angle) (X - p), u = omega x (x - p).

    R turns by the angle about the axis through the point p, anticlockwise if the axis points to the
    viewer (Rodrigues' formula). Give the rate, or the angle from the shape as it is in the case; in
    2D the axis is z. The rate of an angle is the derivative of its formula, the angle of a rate its
    integral from t = 0, by Simpson's rule over each step.
    """

    axis: tuple[float, float, float] = Field(
        AXIS, description="direction of the axis, for 3D", examples=[[0, 0, 1]]
    )
    rate: Annotated[Value | None, ANGULAR_VELOCITY] = Field(
        None,
        description="angular velocity: number, or formula of t, the time in steps",
        examples=[0.001],
    )
    angle: Annotated[Value | None, RADIANS] = Field(
        None,
        description="angle, in place of the rate: number, or formula of t, the time in steps",
        examples=["0.5*sin(2*pi*t/4000)"],
    )
    point: Annotated[tuple[float, ...] | None, LENGTH] = Field(
        None,
        description="a point of the axis; without it: the centre of the shape",
        examples=[[32, 32, 32]],
    )

    @cached_property
    def _course(self) -> Course:
        given = self.angle if self.rate is None else self.rate
        assert given is not None, "problems() reports a motion without rate and angle"
        return Course(given)

    def placement(self, t: float | Floats, centre: Floats) -> Placement:
        """With the point of the axis as the origin, which stays where it is."""
        point = centre if self.point is None else np.append(self.point, [0.0, 0.0])[:3]
        k = np.array(self.axis) / hypot(*self.axis)
        if self.rate is None:
            angle, rate = self._course.at(t), self._course.slope(t)
        else:
            angle, rate = self._course.integral(t), self._course.at(t)
        cross = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
        sine, versine = np.sin(angle)[..., None, None], (1 - np.cos(angle))[..., None, None]
        turned = np.eye(3) + sine * cross + versine * (cross @ cross)
        still = np.zeros((*np.shape(t), 3))
        return Placement(turned, point, point + still, still, rate[..., None] * k, angle)

    def problems(self, case: Case) -> list[str]:
        """Errors: neither or both of rate and angle, an axis or a point that does not fit."""
        if (self.rate is None) == (self.angle is None):
            given = "neither" if self.rate is None else "both"
            return [f"has {given} of rate and angle; give exactly one"]
        name = "rate" if self.rate is not None else "angle"
        found = [f"{name}: {error}" for _, error in wrong_formulas((getattr(self, name),))]
        if not hypot(*self.axis) > 0:
            found.append("axis: found length 0; give a direction such as [0, 0, 1]")
        elif case.dimensions == 2 and self.axis[:2] != (0, 0):
            axis = list(self.axis)
            found.append(f"axis: found {axis}; allowed in 2D: [0, 0, 1] or [0, 0, -1]")
        if self.point is not None and len(self.point) != case.dimensions:
            entries = counted(len(self.point), "entry")
            found.append(f"point: found {entries}; allowed: {case.dimensions}")
        return found
