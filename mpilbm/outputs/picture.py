"""Pictures of a plane or a surface during the run, and a film of them."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from math import ceil, prod
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.errors import FileSystemError
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.drawing import film, isosurface
from mpilbm.outputs.drawing.isosurface import DrawingFailed
from mpilbm.outputs.drawing.pictures import (
    MOST,
    Drawing,
    Isosurface,
    PlaneDrawing,
    SurfaceDrawing,
)
from mpilbm.outputs.images import SOLID, at_nodes, field_problems
from mpilbm.outputs.images.part import Part, cell_of, of_box
from mpilbm.parallel import on_root
from mpilbm.physics.lattices import AXES
from mpilbm.solids.moving_bodies import FIELDS_OF_BODIES
from mpilbm.solids.moving_cells import PlacedBodies
from mpilbm.solver.fields.point_fields import PointFields, point_bytes, point_roles
from mpilbm.storage import whole

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
        description="rho, u, pressure, vorticity, q_criterion, a scalar, a field of the coupling "
        "or of moving bodies",
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
    free: ClassVar[tuple[str, ...]] = ("film",)

    def problems(self, case: Case) -> list[str]:
        """Unknown fields, planes outside of the box, an empty range, missing packages."""
        found = super().problems(case)
        found += [line.replace("fields:", "field:") for line in field_problems((self.field,), case)]
        if case.dimensions == 2 and (self.normal != "z" or self.position is not None):
            shows = "in two dimensions the picture shows the box"
            found.append(f"normal: {shows}; remove normal and position")
        elif case.dimensions == 3:
            size = case.domain.size[AXES.index(self.normal)]
            if self.position is not None and self.position > size:
                allowed = f"0 to {size}, the size of the box along {self.normal}"
                found.append(f"position: found {self.position:g}; allowed: {allowed}")
        if self.range is not None and not self.range[0] < self.range[1]:
            found.append(f"range: found {list(self.range)}; allowed: the lower value first")
        if not find_spec("matplotlib"):
            found.append("requires matplotlib, which is not installed; pip install 'mpilbm[plot]'")
        elif self.film and film.ending() is None:
            found.append(film.MISSING)
        return found + (self._surface_problems(self.surface, case) if self.surface else [])

    def _surface_problems(self, surface: Isosurface, case: Case) -> list[str]:
        """A surface in 2D, next to a plane, of an unknown field or of too many cells."""
        lines = field_problems((surface.field,), case)
        found = [line.replace("fields:", "surface.field:") for line in lines]
        plane = self.model_fields_set & {"normal", "position"}
        if case.dimensions == 2:
            found.append("surface: in two dimensions the picture shows the box; remove surface")
        elif plane:
            keys = " and ".join(sorted(plane))
            found.append(f"{keys}: the picture shows a surface, not a plane; give either of them")
        points = surface.points(case)
        if min(points) < 2:
            most = f"at most {min(case.domain.size) - 1}, two values along each axis"
            found.append(f"surface.stride: found {surface.stride}; allowed: {most}")
        elif prod(points) > MOST:
            least = ceil((prod(case.domain.size) / MOST) ** (1 / 3))
            most = f"at most {MOST:,}, which one process keeps"
            fix = f"choose surface.stride = {least} or more"
            found.append(f"surface: of {prod(points):,} cells; allowed: {most}; {fix}")
        if not find_spec("pyvista"):
            found.append(f"surface: {isosurface.MISSING}")
        return found

    def part(self, case: Case) -> Part:
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

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernels of the values at listed cells."""
        return point_roles(case, self._fields)

    def device_bytes(self, case: Case, planes: int) -> int:
        """The list of cells and their values."""
        if self.surface:
            nx, ny, _ = self.surface.points(case)
            cells = nx * ny * (planes // self.surface.stride + 1)
        else:
            part = self.part(case)
            cells = min(planes, part.planes.count) * part.rows.count * part.x.count
        return point_bytes(case, self._fields, cells)

    def disk_bytes(self, case: Case, times: int) -> int:
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
        return PictureWriter(drawing, context, self.film)


class PictureWriter:
    """Each rank computes the values of its cells; a thread of rank 0 draws.

    The files are `<stem>_<step>.png`, and `<stem>.mp4` with `with_film`. A picture that cannot be
    drawn is left out, with one warning; the run continues.
    """

    def __init__(self, drawing: Drawing, context: Context, with_film: bool):
        self.drawing, self.context, self.with_film = drawing, context, with_film
        self.stem = drawing.stem
        on_root(context.comm, drawing.require)
        slab = context.slab
        mine = drawing.planes[(drawing.planes >= slab.begin) & (drawing.planes < slab.end)]
        axes = mine - slab.begin, drawing.rows, drawing.x
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        self.points = PointFields(context.solver.diagnostics, drawing.fields, nodes)
        cut = np.ix_(drawing.rows, drawing.x)
        own = [at_nodes(context, SOLID, {}, k, k + 1)[0][cut].reshape(-1) for k in axes[0]]
        parts = context.comm.gather(np.concatenate([*own, np.empty(0, bool)]))
        self.solid = None if parts is None else self._shaped(np.concatenate(parts))
        self._pool: ThreadPoolExecutor | None = None
        self._drawn: Future[None] | None = None
        self._warned = False
        if context.comm.rank == 0:
            context.rows.append(self)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Values of all nodes as (planes, rows, x[, components])."""
        drawing = self.drawing
        size = len(drawing.planes), len(drawing.rows), len(drawing.x)
        return values.reshape(*size, *values.shape[1:])

    def write(self, step: int) -> None:
        """Enqueue the values of this step; the picture is drawn when they are known. Collective."""
        self.points.prepare()
        values, placed = self.points.start(), self.context.placed_bodies

        def complete() -> None:
            mine = values()
            parts = self.context.comm.gather({name: mine[name] for name in self.drawing.fields})
            on_root(self.context.comm, self._draw, step, placed, parts)

        self.context.samples.add(complete)

    def _draw(self, step: int, placed: PlacedBodies, parts: list[dict[str, np.ndarray]]) -> None:
        """Have a thread draw; waits for the previous picture, whose error it raises."""
        self._finish_drawing()
        self._pool = self._pool or ThreadPoolExecutor(1, "mpilbm-picture")
        names = self.drawing.fields
        gathered = {name: np.concatenate([part[name] for part in parts]) for name in names}
        values = {name: self._shaped(each) for name, each in gathered.items()}
        self._drawn = self._pool.submit(self._save, step, placed, values)

    def _finish_drawing(self) -> None:
        if self._drawn is None:
            return
        try:
            self._drawn.result()
        except DrawingFailed as error:
            if not self._warned:
                self.context.say(
                    f"warning: {self.stem}: a picture could not be drawn: {error}; further "
                    "failures are not reported"
                )
            self._warned = True
        self._drawn = None

    def sync(self) -> None:
        """Wait until all pictures are on the disk; in any thread. OSError if one cannot be."""
        drawn = self._drawn
        if drawn is not None:
            with suppress(DrawingFailed):
                drawn.result()

    def _save(self, step: int, placed: PlacedBodies, values: dict[str, np.ndarray]) -> None:
        assert self.solid is not None
        drawing, solid = self.drawing, self.solid
        if drawing.field not in FIELDS_OF_BODIES:  # which are shown in place of the bodies
            solid = placed.added(solid, drawing.planes, drawing.rows, drawing.x)
        content = drawing.content(step, values, solid)
        with whole(self.context.directory / f"{self.stem}_{step:09d}.png", "wb") as file:
            file.write(content)

    def close(self) -> None:
        """Complete the last picture; make the film unless a file has failed. On rank 0."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        with pool:  # ends the thread
            self._finish_drawing()
        failed = isinstance(self.context.error, FileSystemError)
        kind = film.ending() if self.with_film and not failed else None
        pictures = sorted(self.context.directory.glob(f"{self.stem}_[0-9]*.png"))
        if kind and pictures:
            path = self.context.directory / f"{self.stem}{kind}"
            try:
                film.write_film(path, pictures)
            except (OSError, RuntimeError) as error:
                reason = str(error).strip().partition("\n")[0]
                self.context.say(f"warning: {path.name} could not be made: {reason}")
