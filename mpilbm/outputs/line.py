"""Fields of the cells along a line: VTKHDF files that ParaView and PyVista open directly."""

from typing import ClassVar

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.outputs.images.output import BetweenPoints, box_problems, ends_of
from mpilbm.outputs.images.part import Part, cell_of, of_box


@register("outputs", "line")
class Line(BetweenPoints):
    """Fields of the cells along a line as `line_<label>_<step>.vtkhdf`.

    The line goes from `from` to `to`, parallel to an axis, and the file contains the cells that it
    passes through. Fields and units are those of a `snapshot`, and `line_<label>.vtkhdf.series` is
    the time series.
    """

    files: ClassVar[tuple[str, ...]] = ("line_<label>_<step>.vtkhdf", "line_<label>.vtkhdf.series")

    def part(self, case: Case) -> Part:
        """The cells along the line."""
        pairs = zip(*ends_of(self), case.domain.size, strict=True)
        ends = [(a, b) if a != b else (cell_of(a, n), cell_of(a, n) + 1) for a, b, n in pairs]
        low, high = zip(*ends, strict=True)
        return of_box(case, low, high, (1,) * case.dimensions)

    def part_problems(self, case: Case) -> list[str]:
        """Ends outside of the box, and a line that is not parallel to an axis."""
        low, high = ends_of(self)
        pairs = zip(low, high, case.domain.size, strict=False)
        ends = [(min(a, n - 0.5) if a == b else a, b) for a, b, n in pairs]
        if len(low) == len(high) == case.dimensions:
            low = tuple(a for a, _ in ends)
        found = box_problems(case, low, high, (1,) * case.dimensions)
        along = sum(a != b for a, b in zip(*ends_of(self), strict=False))
        if not found and along != 1:
            found.append(
                f"to: differs from `from` along {along} axes; allowed: one, a line is parallel to "
                "an axis"
            )
        return found
