"""Rigid rotation of a wall."""

from math import hypot
from typing import Annotated

from pydantic import Field, field_validator

from mpilbm.core.quantity import ANGULAR_VELOCITY, LENGTH
from mpilbm.core.registry import Parameters

AXIS = (0.0, 0.0, 1.0)


class Rotation(Parameters):
    """A rigid rotation: u = omega x (x - centre), omega = rate axis / |axis|.

    In 2D the axis is z: u = rate (-(y - c_y), x - c_x), anticlockwise for a positive rate.
    """

    centre: Annotated[tuple[float, ...], LENGTH] = Field(
        min_length=2, max_length=3, description="a point on the axis", examples=[[32, 32]]
    )
    rate: Annotated[float, ANGULAR_VELOCITY] = Field(
        description="angular velocity; positive: anticlockwise if the axis points to the viewer",
        examples=[0.001],
    )
    axis: tuple[float, float, float] = Field(
        AXIS, description="direction of the axis, for 3D", examples=[[0, 0, 1]]
    )

    @field_validator("axis")
    @classmethod
    def _direction(cls, axis: tuple[float, float, float]) -> tuple[float, float, float]:
        if not hypot(*axis) > 0:
            raise ValueError("has length 0; give a direction such as [0, 0, 1]")
        return axis

    def problem(self, dimensions: int) -> str:
        """A sentence if the number of entries or the axis does not fit a case; else empty."""
        if len(self.centre) != dimensions:
            found = len(self.centre)
            return f"centre: found {found} entries; allowed: {dimensions} in {dimensions}D"
        if dimensions == 2 and self.axis[:2] != (0, 0):
            return f"axis: found {list(self.axis)}; allowed in 2D: [0, 0, 1] or [0, 0, -1]"
        return ""

    def velocity(self) -> tuple[float | str, ...]:
        """The components of u as formulas of x, y (and z)."""
        length = hypot(*self.axis)
        wx, wy, wz = (self.rate * part / length for part in self.axis)
        x, y, *rest = [f"({a} - {c!r})" for a, c in zip("xyz", self.centre, strict=False)]
        if not rest:
            return _sum((-wz, y)), _sum((wz, x))
        (z,) = rest
        return _sum((wy, z), (-wz, y)), _sum((wz, x), (-wx, z)), _sum((wx, y), (-wy, x))


def _sum(*terms: tuple[float, str]) -> float | str:
    """The formula of a sum of products; a number if all factors are 0."""
    return " + ".join(f"({factor!r})*{place}" for factor, place in terms if factor) or 0.0
