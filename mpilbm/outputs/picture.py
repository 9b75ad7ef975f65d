"""Pictures of a plane during the run, and a film of them."""

from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from mpilbm.drawing.plane import Style, png
from mpilbm.outputs import Context
from mpilbm.outputs.core.fields import field_problems
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.images.part import Part, cell_of, of_box
from mpilbm.outputs.images.values import SOLID, at_nodes
from mpilbm.outputs.pictures import film
from mpilbm.parallel.agree import on_root
from mpilbm.physics.lattices import AXES
from mpilbm.quantity import LENGTH
from mpilbm.registry import register
from mpilbm.solver.fields.point_fields import PointFields, point_bytes, point_roles
from mpilbm.storage.files import whole
from mpilbm.units import TIME, field_unit

if TYPE_CHECKING:
    from mpilbm.case.case import Case

BYTES = 200_000  # of a picture, about
UNITS = {"rho": "rho_0", "u": "cells/step", "vorticity": "1/step", "q_criterion": "1/step^2"}


@register("outputs", "picture")
class Picture(Scheduled):
    """A picture of a field in a plane as `picture_<label>_<step>.png`, drawn during the run.

    Of u the speed |u| is shown, of the vorticity its component normal to the plane, other fields as
    they are. The plane is normal to `normal` at `position`; in 2D it is the box. The values of the
    plane are computed behind the time steps, collected on rank 0, and drawn there in a thread by
    Matplotlib (extra `plot`). Solid cells are grey. phi has a line at 0.

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
        return found

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

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """Those of the values at listed cells."""
        return point_roles(case, (self.field,))

    def device_bytes(self, case: "Case", planes: int) -> int:
        """The list of cells and their values."""
        part = self.part(case)
        cells = min(planes, part.planes.count) * part.rows.count * part.x.count
        return point_bytes(case, (self.field,), cells)

    def disk_bytes(self, case: "Case", times: int) -> int:
        """The pictures, and a film of about the same size."""
        return times * BYTES * (2 if self.film else 1)

    def open(self, context: Context) -> "PictureWriter":
        """The writer of a run."""
        return PictureWriter(self, context)


class PictureWriter:
    """Each rank computes the values of its cells; a thread of rank 0 draws."""

    def __init__(self, output: Picture, context: Context):
        self.output, self.context = output, context
        self.stem = f"picture_{output.label_in(context.case)}"
        self.part = output.part(context.case)
        begin, end = self.part.own_planes(context.slab)
        axes = [np.arange(begin, end)]
        axes += [np.arange(each.begin, each.end) for each in (self.part.rows, self.part.x)]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        self.points = PointFields(context.solver.diagnostics, (output.field,), nodes)
        cut = (slice(None), self.part.rows.cells, self.part.x.cells)
        own = [at_nodes(context, SOLID, {}, k, k + 1)[cut].reshape(-1) for k in range(begin, end)]
        solid = np.concatenate([*own, np.empty(0, bool)])
        parts = context.comm.gather(solid)
        self.solid = None if parts is None else self._flat(np.concatenate(parts))
        self._pool: ThreadPoolExecutor | None = None
        self._drawn: Future[None] | None = None

    def _flat(self, values: np.ndarray) -> np.ndarray:
        """Values of the plane as (rows, columns[, components]) of the picture."""
        shaped = values.reshape(*self.part.shape, *values.shape[1:])
        axis = next(k for k, n in enumerate(self._normal) if n)
        return shaped.squeeze(axis)

    @property
    def _normal(self) -> tuple[bool, bool, bool]:
        """Which of z, y, x is normal to the plane; in 2D the one row between y and x."""
        if self.context.case.dimensions == 2:
            return False, True, False
        return tuple(axis == self.output.normal for axis in "zyx")  # type: ignore[return-value]

    def write(self, step: int) -> None:
        """Enqueue the values of this step; the picture is drawn when they are known. Collective."""
        self.points.prepare()
        values = self.points.start()

        def complete() -> None:
            parts = self.context.comm.gather(values()[self.output.field])
            on_root(self.context.comm, self._draw, step, parts)

        self.context.samples.add(complete)

    def _draw(self, step: int, parts: list[np.ndarray]) -> None:
        """Have a thread draw; waits for the previous picture, whose error it raises."""
        self._finish_drawing()
        self._pool = self._pool or ThreadPoolExecutor(1, "mpilbm-picture")
        values = self._scalar(self._flat(np.concatenate(parts)))
        self._drawn = self._pool.submit(self._save, step, values)

    def _finish_drawing(self) -> None:
        drawn, self._drawn = self._drawn, None
        if drawn is not None:
            drawn.result()

    def _scalar(self, values: np.ndarray) -> np.ndarray:
        unit, _ = field_unit(self.context.case.units, self.output.field)
        if values.ndim == 3 and self.output.field == "vorticity":
            values = values[..., AXES.index(self.output.normal)]
        elif values.ndim == 3:
            values = np.linalg.norm(values.astype(float), axis=-1)
        return values * unit

    def _save(self, step: int, values: np.ndarray) -> None:
        assert self.solid is not None
        path = self.context.directory / f"{self.stem}_{step:09d}.png"
        content = png(values, self.solid, self._style(step))
        with whole(path, "wb") as file:
            file.write(content)

    def _style(self, step: int) -> Style:
        case, name = self.context.case, self.output.field
        units = case.units
        cell, length = (units.cell, "m") if units else (1.0, "cells")
        time = f"{units.to_si(step, TIME):.4g} s" if units else f"step {step}"
        flat = case.dimensions == 2
        kept = [axis for axis in "xyz" if axis != self.output.normal]
        sizes = [case.domain.size[AXES.index(axis)] * cell for axis in kept]
        unit = field_unit(units, name)[1] or UNITS.get("rho" if name.startswith("rho") else name)
        shown = {"u": "|u|", "vorticity": "vorticity" + f"_{self.output.normal}" * (not flat)}
        return Style(
            title=f"{case.title or self.stem}, {time}",
            axes=(f"{kept[0]} ({length})", f"{kept[1]} ({length})"),
            label=f"{shown.get(name, name)} ({unit or '1'})",
            extent=(0, sizes[0], 0, sizes[1]), limits=self.output.range,
            contour=0.0 if name == "phi" else None,
        )  # fmt: skip

    def close(self) -> None:
        """Complete the last picture, and make the film; on rank 0."""
        if self._pool is None:
            return
        self._finish_drawing()
        self._pool.shutdown()
        self._pool = None
        kind = film.ending() if self.output.film else None
        pictures = sorted(self.context.directory.glob(f"{self.stem}_[0-9]*.png"))
        if kind and pictures:
            path = self.context.directory / f"{self.stem}{kind}"
            try:
                film.write_film(path, pictures)
            except (OSError, RuntimeError) as error:
                reason = str(error).strip().partition("\n")[0]
                self.context.say(f"warning: {path.name} could not be made: {reason}")
