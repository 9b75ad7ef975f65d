"""The translation: a body moves without turning."""

from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field

from mpilbm.core.formulas.course import Course
from mpilbm.core.formulas.values import Value
from mpilbm.core.quantity import LENGTH, VELOCITY
from mpilbm.core.registry import register
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.physics.motions import Floats, Motion, Placement, wrong_formulas

FORMULAS = "one entry per dimension: numbers, or formulas of t, the time in steps"


@register("motions", "translation")
class Translation(Motion):
    """A body that moves without turning: x(t) = X + s(t), u = ds/dt.

    Give the velocity, or the displacement s from the place of the shape in the case. The velocity
    of a displacement is the derivative of its formula; it should be small at t = 0, such as that of
    20*(1 - cos(2*pi*t/4000)), where the fluid is at rest. The displacement of a velocity is its
    integral from t = 0, by Simpson's rule over each step.
    """

    velocity: Annotated[tuple[Value, ...] | None, VELOCITY] = Field(
        None, description=f"velocity, {FORMULAS}", examples=[["0.05*sin(2*pi*t/400)", 0, 0]]
    )
    displacement: Annotated[tuple[Value, ...] | None, LENGTH] = Field(
        None,
        description=f"displacement s, in place of the velocity, {FORMULAS}",
        examples=[["20*(1 - cos(2*pi*t/4000))", 0, 0]],
    )

    @cached_property
    def _courses(self) -> tuple[Course, ...]:
        return tuple(Course(each) for each in self.velocity or self.displacement or ())

    def placement(self, t: float | Floats, centre: Floats) -> Placement:
        """Without rotation; the origin is the centre of the shape."""
        s, u = np.zeros((*np.shape(t), 3)), np.zeros((*np.shape(t), 3))
        for k, course in enumerate(self._courses):
            if self.velocity is None:
                s[..., k], u[..., k] = course.at(t), course.slope(t)
            else:
                s[..., k], u[..., k] = course.integral(t), course.at(t)
        turned = np.broadcast_to(np.eye(3), (*np.shape(t), 3, 3))
        return Placement(turned, centre, centre + s, u, np.zeros_like(u), np.zeros(np.shape(t)))

    def problems(self, case: Case) -> list[str]:
        """Errors: neither or both of the vectors, a wrong number of entries, invalid formulas."""
        if (self.velocity is None) == (self.displacement is None):
            found = "neither" if self.velocity is None else "both"
            return [f"has {found} of velocity and displacement; give exactly one"]
        name = "velocity" if self.velocity is not None else "displacement"
        given = getattr(self, name)
        if len(given) != case.dimensions:
            axes = ", ".join("xyz"[: case.dimensions])
            found = counted(len(given), "entry")
            return [f"{name}: found {found}; allowed: {case.dimensions} ({axes})"]
        return [f"{name}.{'xyz'[k]}: {error}" for k, error in wrong_formulas(given)]
