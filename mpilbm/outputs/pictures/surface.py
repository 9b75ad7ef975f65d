"""What the output `picture` draws of an isosurface."""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from mpilbm.core.registry import Parameters
from mpilbm.outputs.drawing.isosurface import png, require_drawing
from mpilbm.outputs.pictures.names import label_of, length_unit, scalar, time_of

if TYPE_CHECKING:
    from mpilbm.case.case import Case

MOST = 256**3  # points, which rank 0 keeps in memory


class Isosurface(Parameters):
    """The surface on which a field has a value: |u|, the size of the vorticity, others as they are.

    With [units] the value is in SI.
    """

    field: str = Field(description="a field of the picture", examples=["q_criterion"])
    value: float = Field(description="its value on the surface", examples=[1e-5])
    stride: int = Field(
        1, gt=0, description="every how many cells along each axis a value is used", examples=[2]
    )

    def points(self, case: "Case") -> tuple[int, ...]:
        """The number of values along x, y, z."""
        return tuple(-(-n // self.stride) for n in case.domain.size)


class SurfaceDrawing:
    """An isosurface, coloured by a field; see writer.Drawing.

    `limits`: the values at the ends of the colours; None: those of each picture.
    """

    def __init__(
        self,
        case: "Case",
        stem: str,
        field: str,
        limits: tuple[float, float] | None,
        surface: Isosurface,
    ):
        self.case, self.stem, self.field, self.limits = case, stem, field, limits
        self.surface = surface
        self.fields = tuple(dict.fromkeys((surface.field, field)))
        self.x, self.rows, self.planes = (np.arange(0, n, surface.stride) for n in case.domain.size)

    def require(self) -> None:
        """CommandError if no picture can be drawn on this machine."""
        require_drawing(f"{self.case.path}: output 'picture': surface")

    def content(self, step: int, values: dict[str, np.ndarray], solid: np.ndarray) -> bytes:
        """The picture; values (z, y, x[, components])."""
        case, surface, colour = self.case, self.surface, self.field
        cell, length = length_unit(case)
        value = f"{label_of(case, surface.field).partition(' (')[0]} = {surface.value:g}"
        return png(
            scalar(case, surface.field, values[surface.field]),
            scalar(case, colour, values[colour]),
            solid,
            value=surface.value,
            spacing=cell * surface.stride,
            title=f"{case.title or self.stem}, {time_of(case, step)}, {value}",
            axes=(f"x ({length})", f"y ({length})", f"z ({length})"),
            label=label_of(case, colour),
            limits=self.limits,
        )
