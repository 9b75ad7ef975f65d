"""SI values of the lattice units."""

from typing import Self

from pydantic import Field, model_validator

from mpilbm.case.tables.values import Scale
from mpilbm.registry import Parameters
from mpilbm.units import Units


class UnitsTable(Parameters):
    """SI values of the lattice units: side of a cell in m, step in s, rho = 1 in kg/m^3.

    `velocity`, the speed of one cell per step in m/s, may be given in place of `step`.
    """

    cell: Scale = Field(description="side of a cell", examples=[0.001])
    step: Scale | None = Field(
        None, description="duration of a step; or give velocity", examples=[5e-5]
    )
    velocity: Scale | None = Field(
        None, description="speed of one cell per step; or give step", examples=[20]
    )
    density: Scale = Field(description="density of rho = 1", examples=[998])

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Either step or velocity."""
        if (self.step is None) == (self.velocity is None):
            found = "neither" if self.step is None else "both"
            raise ValueError(
                f"has {found} of step and velocity; give one: the duration of a step in s, or the "
                "speed of one cell per step in m/s"
            )
        return self

    def checked(self) -> Units:
        """The units, whichever of `step` and `velocity` is given."""
        if self.step is not None:
            return Units(self.cell, self.step, self.density)
        assert self.velocity is not None  # by _one_way
        return Units(self.cell, self.cell / self.velocity, self.density)
