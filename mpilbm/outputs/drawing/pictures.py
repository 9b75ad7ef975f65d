"""What the output `picture` draws: a field in a plane, or an isosurface; in SI with [units]."""

from abc import abstractmethod

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.registry import Parameters
from mpilbm.core.units import TIME, field_unit
from mpilbm.outputs.drawing import SIGNED, Style, isosurface, png
from mpilbm.outputs.images.part import Part
from mpilbm.physics.lattices import AXES

UNITS = {
    "rho": "rho_0",
    "u": "cells/step",
    "vorticity": "1/step",
    "q_criterion": "1/step^2",
    "pressure": "rho_0 cells^2/step^2",
}
MOST = 256**3  # points of an isosurface, which rank 0 keeps in memory
Limits = tuple[float, float] | None
Fields = dict[str, np.ndarray]  # (z, y, x[, components])


class Isosurface(Parameters):
    """The surface on which a field has a value: |u|, the size of the vorticity, others as they are.

    With [units] the value is in SI.
    """

    field: str = Field(description="a field of the picture", examples=["q_criterion"])
    value: float = Field(description="its value on the surface", examples=[1e-5])
    stride: int = Field(
        1, gt=0, description="every how many cells along each axis a value is used", examples=[2]
    )

    def points(self, case: Case) -> tuple[int, ...]:
        """The number of values along x, y, z."""
        return tuple(-(-n // self.stride) for n in case.domain.size)


class Drawing:
    """What a picture shows.

    fields            the fields that it needs
    planes, rows, x   the cells along z, y, x (in 2D along y, one row, and x) at which it needs them
    limits            the values at the ends of the colours; None: those of each picture
    """

    fields: tuple[str, ...]
    planes: np.ndarray
    rows: np.ndarray
    x: np.ndarray

    def __init__(self, case: Case, stem: str, field: str, limits: Limits):
        self.case, self.stem, self.field, self.limits = case, stem, field, limits
        self.cell, self.length = (case.units.cell, "m") if case.units else (1.0, "cells")

    def require(self) -> None:
        """CommandError if it cannot be drawn here; on rank 0 before the first step."""

    @abstractmethod
    def content(self, step: int, values: Fields, solid: np.ndarray) -> bytes:
        """The PNG file; may raise DrawingFailed."""

    def title(self, step: int) -> str:
        """The title of the case, or of the files, and the time."""
        units = self.case.units
        time = f"{units.to_si(step, TIME):.4g} s" if units else f"step {step}"
        return f"{self.case.title or self.stem}, {time}"

    def label(self, name: str, normal: str = "") -> str:
        """The name and unit of a field; of the vorticity the component `normal`, or its size."""
        unit = field_unit(self.case.units, name)[1]
        unit = unit or UNITS.get("rho" if name.startswith("rho") else name) or "1"
        vorticity = f"vorticity_{normal}" if normal else "vorticity"
        shown = {"u": "|u|", "vorticity": vorticity}.get(name, name)
        return f"{shown} ({unit})"

    def scalar(self, name: str, values: np.ndarray, normal: str = "") -> np.ndarray:
        """A field as a scalar in the units of the picture.

        Of the vorticity the component `normal`, of other vectors the size.
        """
        if values.ndim == 4 and name == "vorticity" and normal:
            values = values[..., AXES.index(normal)]
        elif values.ndim == 4:
            values = np.linalg.norm(values.astype(float), axis=-1)
        return values * field_unit(self.case.units, name)[0]


class PlaneDrawing(Drawing):
    """A field in a plane, drawn by Matplotlib, which is checked with the case."""

    def __init__(self, case: Case, stem: str, field: str, limits: Limits, normal: str, part: Part):
        super().__init__(case, stem, field, limits)
        self.fields, self.normal = (field,), normal
        along = (part.planes, part.rows, part.x)
        self.planes, self.rows, self.x = (np.arange(each.begin, each.end) for each in along)

    def content(self, step: int, values: Fields, solid: np.ndarray) -> bytes:
        """The PNG file of the plane."""
        case, name, normal = self.case, self.field, self.normal
        across = 1 if case.dimensions == 2 else "zyx".index(normal)
        kept = [axis for axis in "xyz" if axis != normal]
        sizes = [case.domain.size[AXES.index(axis)] * self.cell for axis in kept]
        style = Style(
            title=self.title(step),
            axes=(f"{kept[0]} ({self.length})", f"{kept[1]} ({self.length})"),
            label=self.label(name, "" if case.dimensions == 2 else normal),
            extent=(0, sizes[0], 0, sizes[1]),
            limits=self.limits,
            contour=0.0 if name == "phi" else None,
            signed=name in SIGNED and name not in case.labels,
        )
        found = self.scalar(name, values[name], normal)
        return png(found.squeeze(across), solid.squeeze(across), style)


class SurfaceDrawing(Drawing):
    """An isosurface, coloured by a field, drawn by PyVista."""

    def __init__(self, case: Case, stem: str, field: str, limits: Limits, surface: Isosurface):
        super().__init__(case, stem, field, limits)
        self.surface = surface
        self.fields = tuple(dict.fromkeys((surface.field, field)))
        self.x, self.rows, self.planes = (np.arange(0, n, surface.stride) for n in case.domain.size)

    def require(self) -> None:
        """CommandError if no picture can be drawn on this machine."""
        isosurface.require_drawing(f"{self.case.path}: output 'picture': surface")

    def content(self, step: int, values: Fields, solid: np.ndarray) -> bytes:
        """The PNG file of the surface and the bodies."""
        surface, colour, length = self.surface, self.field, self.length
        value = f"{self.label(surface.field).partition(' (')[0]} = {surface.value:g}"
        return isosurface.png(
            self.scalar(surface.field, values[surface.field]),
            self.scalar(colour, values[colour]),
            solid,
            value=surface.value,
            spacing=self.cell * surface.stride,
            title=f"{self.title(step)}, {value}",
            axes=(f"x ({length})", f"y ({length})", f"z ({length})"),
            label=self.label(colour),
            limits=self.limits,
        )
