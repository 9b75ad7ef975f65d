"""Fields of the cells in a plane: VTKHDF files that ParaView and PyVista open directly."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.outputs.images.output import Strided
from mpilbm.outputs.images.part import Part, cell_of, of_box
from mpilbm.physics.lattices import AXES


@register("outputs", "plane")
class Plane(Strided):
    """Fields of the cells in a plane as `plane_<label>_<step>.vtkhdf`; in three dimensions.

    The plane is normal to the axis `normal`, and the file contains the cells that it cuts: cell k
    is between the positions k and k + 1. Fields and units are those of a `snapshot`, and
    `plane_<label>.vtkhdf.series` is the time series. `stride` applies within the plane.
    """

    normal: Literal["x", "y", "z"] = Field(description="axis normal to the plane", examples=["z"])
    position: Annotated[float, LENGTH] = Field(
        ge=0, description="position of the plane along this axis", examples=[16.5]
    )

    files: ClassVar[tuple[str, ...]] = (
        "plane_<label>_<step>.vtkhdf",
        "plane_<label>.vtkhdf.series",
    )

    def part(self, case: Case) -> Part:
        """The cells that the plane cuts."""
        size, axis = case.domain.size, AXES.index(self.normal)
        cell = cell_of(self.position, size[axis])
        low, high, stride = [0.0] * 3, list(map(float, size)), list(self.strides(case))
        low[axis], high[axis], stride[axis] = cell, cell + 1, 1
        return of_box(case, low, high, stride)

    def part_problems(self, case: Case) -> list[str]:
        """A plane in two dimensions or outside of the box, and a stride that does not fit."""
        if case.dimensions == 2:
            return ["normal: a plane requires three dimensions; use a snapshot or a line"]
        size = case.domain.size[AXES.index(self.normal)]
        if self.position > size:
            allowed = f"0 to {size}, the size of the box along {self.normal}"
            return [f"position: found {self.position:g}; allowed: {allowed}"]
        return self.stride_problems(case)
