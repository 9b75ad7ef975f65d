"""What the output `picture` draws of a plane."""

from typing import TYPE_CHECKING

import numpy as np

from mpilbm.outputs.drawing.colours import SIGNED
from mpilbm.outputs.drawing.plane import Style, png
from mpilbm.outputs.pictures.names import label_of, length_unit, scalar, time_of
from mpilbm.physics.lattices import AXES

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.outputs.images.part import Part


class PlaneDrawing:
    """A field in a plane; see writer.Drawing.

    part     the cells of the plane, whose axis `normal` is normal to it
    limits   the values at the ends of the colours; None: those of each picture
    """

    def __init__(
        self,
        case: "Case",
        stem: str,
        field: str,
        limits: tuple[float, float] | None,
        normal: str,
        part: "Part",
    ):
        self.case, self.stem, self.normal, self.limits = case, stem, normal, limits
        self.field = field
        self.fields: tuple[str, ...] = (field,)
        planes, rows, x = (np.arange(each.begin, each.end)
                           for each in (part.planes, part.rows, part.x))  # fmt: skip
        self.planes, self.rows, self.x = planes, rows, x

    def require(self) -> None:
        """Matplotlib is checked with the case."""

    def content(self, step: int, values: dict[str, np.ndarray], solid: np.ndarray) -> bytes:
        """The picture; values (z, y, x[, components])."""
        found = scalar(self.case, self.field, values[self.field], self.normal)
        axis = 1 if self.case.dimensions == 2 else "zyx".index(self.normal)
        return png(found.squeeze(axis), solid.squeeze(axis), self._style(step))

    def _style(self, step: int) -> Style:
        case, name, normal = self.case, self.field, self.normal
        cell, length = length_unit(case)
        kept = [axis for axis in "xyz" if axis != normal]
        sizes = [case.domain.size[AXES.index(axis)] * cell for axis in kept]
        direction = "" if case.dimensions == 2 else normal
        return Style(
            title=f"{case.title or self.stem}, {time_of(case, step)}",
            axes=(f"{kept[0]} ({length})", f"{kept[1]} ({length})"),
            label=label_of(case, name, direction),
            extent=(0, sizes[0], 0, sizes[1]), limits=self.limits,
            contour=0.0 if name == "phi" else None,
            signed=name in SIGNED and name not in case.labels,
        )  # fmt: skip
