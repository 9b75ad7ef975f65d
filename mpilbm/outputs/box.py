"""Fields of a part of the box: VTKHDF files that ParaView and PyVista open directly."""

from typing import ClassVar

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.outputs.images.output import StridedBetweenPoints, box_problems, ends_of
from mpilbm.outputs.images.part import Part, of_box


@register("outputs", "box")
class Box(StridedBetweenPoints):
    """Fields of the cells between two corners as `box_<label>_<step>.vtkhdf`.

    `from` and `to` are opposite corners; cells that the faces cut are included. The file has the
    fields, units and origin of a `snapshot`, and `box_<label>.vtkhdf.series` is its time series.
    """

    files: ClassVar[tuple[str, ...]] = ("box_<label>_<step>.vtkhdf", "box_<label>.vtkhdf.series")

    def part(self, case: Case) -> Part:
        """The cells between the corners."""
        return of_box(case, *ends_of(self), self.strides(case))

    def part_problems(self, case: Case) -> list[str]:
        """Corners outside of the box, and a stride that does not fit."""
        found = self.stride_problems(case)
        return found or box_problems(case, *ends_of(self), self.strides(case))
