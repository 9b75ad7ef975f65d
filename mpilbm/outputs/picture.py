"""Pictures of a plane or a surface during the run, and a film of them."""

from importlib.util import find_spec
from math import ceil, prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.outputs import Context
from mpilbm.outputs.core.fields import field_problems
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.drawing.isosurface import MISSING
from mpilbm.outputs.images.part import Part, cell_of, of_box
from mpilbm.outputs.pictures import film
from mpilbm.outputs.pictures.plane import PlaneDrawing
from mpilbm.outputs.pictures.surface import MOST, Isosurface, SurfaceDrawing
from mpilbm.outputs.pictures.writer import Drawing, PictureWriter
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.point_fields import point_bytes, point_roles

if TYPE_CHECKING:
    from mpilbm.case.case import Case

BYTES = 200_000  # of a picture, about


@register("outputs", "picture")
class Picture(Scheduled):
    """A picture of a field in a plane or on a surface as `picture_<label>_<step>.png`.

    Of u the speed |u| is shown, of the vorticity its component normal to the plane, other fields as
    they are. The plane is normal to `normal` at `position`; in 2D it is the box. The values are
    computed behind the time steps, collected on rank 0, and drawn there in a thread by Matplotlib
    (extra `plot`). Solid cells are grey. phi has a line at 0. phi, q_criterion and the vorticity
    have colours that are white at 0 if both signs occur and a given `range` is symmetric.

    With `surface`, in 3D, the picture shows the surface on which a field has a value, coloured by
    `field`, and the bodies. PyVista draws it without a display (extra `volume`). If a drawing fails
    during the run, the run continues with a warning.

    With `film` all pictures in the folder with this label become `picture_<label>.mp4` when the run
    ends or stops (12 per second; extra `film`; without imageio-ffmpeg a GIF). Give a `range`, so
    that the colours do not change from picture to picture. With [units] axes, time and values are
    in SI.
    """

    field: str = Field(
        "u",
        description="rho, u, vorticity, q_criterion, or a field of the coupling",
        examples=["phi"],
    )
    normal: Literal["x", "y", "z"] = Field(
        "z", description="axis normal to the plane; in 2D z", examples=["y"]
    )
    position: Annotated[float, LENGTH] | None = Field(
        None, ge=0, description="position of the plane; without it: the middle", examples=[16.5]
    )
    range: tuple[float, float] | None = Field(
        None,
        description="values at the ends of the colours; without it: those of each picture",
        examples=[[0, 0.1]],
    )
    surface: Isosurface | None = Field(
        None,
        description="an isosurface in place of the plane",
        examples=[{"field": "q_criterion", "value": 1e-5}],
    )
    film: bool = Field(False, description="also make a film of the pictures")

    files: ClassVar[tuple[str, ...]] = (
        "picture_<label>_<step>.png",
        "picture_<label>.mp4",
        "picture_<label>.gif",
    )

    def problems(self, case: "Case") -> list[str]:
        """Unknown fields, planes outside of the box, an empty range, missing packages."""
        found = super().problems(case)
        found += [line.replace("fields:", "field:") for line in field_problems((self.field,), case)]
        if case.dimensions == 2 and (self.normal != "z" or self.position is not None):
            found.append("normal: in two dimensions the picture shows the box; remove normal and "
                         "position")  # fmt: skip
        elif case.dimensions == 3:
            size = case.domain.size[AXES.index(self.normal)]
            if self.position is not None and self.position > size:
                found.append(f"position: found {self.position:g}; allowed: 0 to {size}, the size "
                             f"of the box along {self.normal}")  # fmt: skip
        if self.range is not None and not self.range[0] < self.range[1]:
            found.append(f"range: found {list(self.range)}; allowed: the lower value first")
        if not find_spec("matplotlib"):
            found.append("requires matplotlib, which is not installed; pip install 'mpilbm[plot]'")
        elif self.film and film.ending() is None:
            found.append(film.MISSING)
        return found + (self._surface_problems(self.surface, case) if self.surface else [])

    def _surface_problems(self, surface: Isosurface, case: "Case") -> list[str]:
        """A surface in 2D, next to a plane, of an unknown field or of too many cells."""
        found = [line.replace("fields:", "surface.field:")
                 for line in field_problems((surface.field,), case)]  # fmt: skip
        plane = self.model_fields_set & {"normal", "position"}
        if case.dimensions == 2:
            found.append("surface: in two dimensions the picture shows the box; remove surface")
        elif plane:
            found.append(f"{' and '.join(sorted(plane))}: the picture shows a surface, not a "
                         "plane; give either of them")  # fmt: skip
        points = surface.points(case)
        if min(points) < 2:
            found.append(f"surface.stride: found {surface.stride}; allowed: at most "
                         f"{(min(case.domain.size) - 1)}, two values along each axis")  # fmt: skip
        elif prod(points) > MOST:
            least = ceil((prod(case.domain.size) / MOST) ** (1 / 3))
            found.append(f"surface: of {prod(points):,} cells; allowed: at most {MOST:,}, which "
                         f"one process keeps; choose surface.stride = {least} or more")  # fmt: skip
        if not find_spec("pyvista"):
            found.append(f"surface: {MISSING}")
        return found

    free: ClassVar[tuple[str, ...]] = ("film",)

    def part(self, case: "Case") -> Part:
        """The cells of the plane."""
        size = case.domain.size
        low, high = [0.0] * len(size), list(map(float, size))
        if case.dimensions == 3:
            axis = AXES.index(self.normal)
            place = size[axis] / 2 if self.position is None else self.position
            cell = cell_of(place, size[axis])
            low[axis], high[axis] = cell, cell + 1
        return of_box(case, low, high, (1,) * len(size))

    @property
    def _fields(self) -> tuple[str, ...]:
        """The fields whose values it needs."""
        return (self.surface.field, self.field) if self.surface else (self.field,)

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """Those of the values at listed cells."""
        return point_roles(case, self._fields)

    def device_bytes(self, case: "Case", planes: int) -> int:
        """The list of cells and their values."""
        if self.surface:
            nx, ny, _ = self.surface.points(case)
            cells = nx * ny * (planes // self.surface.stride + 1)
        else:
            part = self.part(case)
            cells = min(planes, part.planes.count) * part.rows.count * part.x.count
        return point_bytes(case, self._fields, cells)

    def disk_bytes(self, case: "Case", times: int) -> int:
        """The pictures, and a film of about the same size."""
        return times * BYTES * (2 if self.film else 1)

    def open(self, context: Context) -> "PictureWriter":
        """The writer of a run."""
        case, stem = context.case, f"picture_{self.label_in(context.case)}"
        shown = case, stem, self.field, self.range
        drawing: Drawing = (
            SurfaceDrawing(*shown, self.surface)
            if self.surface
            else PlaneDrawing(*shown, self.normal, self.part(case))
        )
        return PictureWriter(drawing, context, stem, self.film)
