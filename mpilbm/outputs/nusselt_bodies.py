"""Nusselt numbers of bodies: the tables `body` of the output `nusselt`."""

from math import nan
from typing import Annotated

from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.tables import Label
from mpilbm.core.quantity import AREA, LENGTH
from mpilbm.core.registry import Parameters


class BodyNumber(Parameters):
    """The Nusselt number of a body: `nusselt_<label>` = rate length / (area D difference)."""

    label: Label = Field(description="label of the body", examples=["ball"])
    length: Annotated[float, LENGTH] = Field(
        gt=0, description="length of Nu, such as the diameter", examples=[20]
    )
    area: Annotated[float | None, AREA] = Field(
        None, gt=0, description="3D: the surface of the body in the fluid", examples=[1256]
    )
    perimeter: Annotated[float | None, LENGTH] = Field(
        None, gt=0, description="2D: its length in place of an area", examples=[62.8]
    )
    difference: float | None = Field(
        None,
        description="value of the body - value of the fluid far away; without it: that of the "
        "output",
        examples=[1.0],
    )

    def problems(self, case: Case, scalar: int) -> list[str]:
        """An unknown body, one whose flux is not known, and a surface of another dimension."""
        labels = [body.label for body in case.bodies]
        if self.label not in labels:
            return [f"found '{self.label}'; allowed: {', '.join(labels) or 'none'}"]
        if case.scalars[scalar].bodies[labels.index(self.label)].conducts:
            return [f"'{self.label}' conducts the scalar: its flux is not known; remove it here"]
        needed, other = ("area", "perimeter")[:: 1 if case.dimensions == 3 else -1]
        if getattr(self, needed) is None or getattr(self, other) is not None:
            return [f"'{self.label}': in {case.dimensions}D give {needed}, and not {other}"]
        if self.difference == 0:
            return [f"'{self.label}': difference is 0, so that Nu is not defined; give another"]
        return []

    def number(self, rate: float, diffusivity: float, difference: float) -> float:
        """Nu of a flux into the fluid; `difference` if it has none of its own."""
        surface, difference = self.area or self.perimeter, self.difference or difference
        return rate * self.length / ((surface or nan) * diffusivity * difference)
