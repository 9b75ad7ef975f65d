"""Many spheres from a file; in 2D discs."""

from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.solids import Floats
from mpilbm.solids.shapes import Corners, Shape
from mpilbm.solids.sphere_packing import STEP, SphereBins, read_spheres

LARGEST = 1e15  # coordinates and radii in cells


@register("shapes", "spheres")
class Spheres(Shape):
    """The union of spheres from a CSV file with the rows x, y, z, r; in 2D discs, x, y, r.

    A sphere has the centre at + scale (x, y, z) and the radius scale r, in cells. The first row may
    hold the names of the columns. Spheres may overlap. The distance of the wall on each link is
    exact: the first root of the quadratic equations of the spheres near the link.
    """

    file: str = Field(
        description="file of the spheres, relative to the folder of the case",
        examples=["packing.csv"],
    )
    scale: float = Field(1, gt=0, description="cells per length unit of the file", examples=[20])
    at: Annotated[tuple[float, ...] | None, LENGTH] = Field(
        None, description="position of the origin of the file; none: 0", examples=[[16, 0, 0]]
    )

    _bins: SphereBins | None = PrivateAttr(None)

    def files(self) -> list[Path]:
        """The file of the spheres."""
        return [Path(self.file)]

    def resolved(self, case: Any) -> Self:
        """The shape with the spheres of its file. Raises ValueError for an invalid file."""
        path = (case.directory / self.file).absolute()
        try:
            rows = read_spheres(path, case.dimensions).T
        except ValueError as error:
            raise ValueError(f"'{self.file}' {error}") from None
        at = np.zeros(case.dimensions) if self.at is None else np.array(self.at)
        found = self.model_copy(update={"file": str(path)})
        if at.size == case.dimensions:  # else `problems` reports it
            found._bins = self._placed(rows, at)
        return found

    def _placed(self, rows: Floats, at: Floats) -> SphereBins:
        """The spheres in cells, from the rows of the file, (D + 1, n).

        Raises ValueError for numbers above LARGEST, whose squares and products may overflow.
        """
        with np.errstate(over="ignore"):
            centres, radii = rows[:-1] * self.scale + at[:, None], rows[-1] * self.scale
        wrong = (np.abs([*centres, radii]) > LARGEST).any(axis=0)
        if wrong.any():
            k = int(np.argmax(wrong))
            centre = ", ".join(f"{x:g}" for x in centres[:, k])
            raise ValueError(
                f"'{self.file}': sphere {k + 1} has the centre {centre} and the radius "
                f"{radii[k]:g} in cells; allowed: at most {LARGEST:g}; correct scale = "
                f"{self.scale:g}, at, or the row"
            )
        return SphereBins(centres, radii)

    @property
    def bins(self) -> SphereBins:
        """The spheres."""
        if self._bins is None:
            raise ValueError("the file of the spheres is not read yet; call resolved(case)")
        return self._bins

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """|x - centre|^2 <= radius^2 of any sphere; memory is bounded for any number of spheres."""
        points = [np.asarray(p, np.float64) for p in ((x, y) if z is None else (x, y, z))]
        shape = np.broadcast_shapes(*(p.shape for p in points))
        axes = _axes(points, len(shape))
        if axes is None:
            flat = np.stack([np.broadcast_to(p, shape).reshape(-1) for p in points])
            return self.bins.inside(flat).reshape(shape)
        solid = self.bins.inside_grid([p.reshape(-1) for p in points])
        order = np.argsort(axes, kind="stable")
        return solid.transpose(order).reshape(shape)

    def distance(self, points: NDArray[Any], step: NDArray[Any]) -> Floats:
        """The first root of the quadratic equations of the spheres near each link."""
        if (np.abs(step) > STEP).any():
            return super().distance(points, step)
        return self.bins.distance(points, step)

    def bounds(self) -> Corners:
        """The corners of a box around all spheres."""
        return self.bins.bounds

    def problems(self, case: Any) -> list[str]:
        """Errors: wrong number of entries."""
        return [] if self.at is None else self.wrong_lengths(case, "at")


def _axes(points: list[Floats], dimensions: int) -> list[int] | None:
    """The axis along which each coordinate ascends, if these differ; None if it is no such grid."""
    found = []
    for p in points:
        long = [axis - p.ndim + dimensions for axis, n in enumerate(p.shape) if n > 1]
        if len(long) > 1 or p.size == 0 or (np.diff(p.reshape(-1)) <= 0).any():
            return None
        found.append(long[0] if long else -1)
    known = [axis for axis in found if axis >= 0]
    return found if len(set(known)) == len(known) else None
