"""The body whose surface a file of triangles describes."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core import quantity
from mpilbm.core.files import file_state
from mpilbm.core.registry import register
from mpilbm.core.units import LENGTH
from mpilbm.model.case import Case
from mpilbm.model.findings import Finding
from mpilbm.solids import Floats
from mpilbm.solids.periodic_images import counted
from mpilbm.solids.shapes import Corners, Flow, Shape
from mpilbm.solids.shares import SMALL, share_behind
from mpilbm.solids.surfaces import examine, findings, read, triangles
from mpilbm.solids.surfaces.nearest import divided, from_surface
from mpilbm.solids.surfaces.surface import Surface
from mpilbm.solids.surfaces.triangles import Triangles

AWAY = 1.5  # cells; distances beyond are not computed
NEAR = 0.87  # cells from the centre of a cell to its corners
LARGEST = 1e9  # cells, with positions to 1e-7


@dataclass(frozen=True, eq=False)
class Loaded:
    """A surface in the box, a sentence on how it was repaired (or an empty one), and if closed."""

    surface: Surface
    repaired: str
    closed: bool

    @cached_property
    def pieces(self) -> Floats:
        """The triangles, divided for `from_surface`."""
        return divided(self.surface.corners)


@register("shapes", "mesh")
class Mesh(Shape):
    """Body bounded by the triangles of an STL, OBJ or PLY file.

    The surface must be closed; the orientation of its triangles does not matter. A cell is solid if
    a line from its centre crosses the surface an odd number of times, so overlapping parts cut
    holes into each other and must be united before. Points and links are compared with the
    triangles in double precision.

    Give one of `scale`, `length` and `unit`. In 2D the body is the section of the surface by the
    plane z = const through the anchor. A surface that reaches through a periodic face continues at
    the opposite face.

    With `thin` the surface is a wall also where it lies between two fluid cells: a link that
    crosses it is a link to the body, on both sides. So sheets thinner than a cell stop the flow,
    and the surface may be open, such as a plate of a single layer of triangles; then no cell is
    solid. Not for the layout `indirect`, coupled fluids, and surfaces that reach a free-slip face.
    """

    file: str = Field(description="file.stl, .obj or .ply", examples=["car.stl"])
    scale: float | None = Field(
        None, gt=0, description="cells per length unit of the file", examples=[0.5]
    )
    length: Annotated[float | None, quantity.LENGTH] = Field(
        None, gt=0, description="longest side of the bounding box in the file", examples=[200]
    )
    unit: Literal["m", "cm", "mm", "um", "in", "ft"] | None = Field(
        None, description="unit of the file, with [units]"
    )
    rotate: Annotated[tuple[float, float, float], quantity.ANGLE] = Field(
        (0.0, 0.0, 0.0), description="degrees about x, then y, then z", examples=[[0, 0, 90]]
    )
    at: Annotated[tuple[float, ...], quantity.LENGTH] = Field(
        description="position of the anchor", examples=[[120, 64, 32]]
    )
    anchor: Literal["centre", "bottom", "origin"] = Field(
        "centre",
        description="point of the body at `at`: centre of the bounding box, centre of its lowest "
        "side (z in 3D, y in 2D), or origin of the file",
    )
    invert: bool = Field(False, description="whether the fluid is inside the surface, as in a pipe")
    repair: bool = Field(
        False, description="whether to close an open surface, and to remove repeated triangles"
    )
    thin: bool = Field(
        False, description="whether the surface is a wall between fluid cells, too, for thin sheets"
    )

    @property
    def roughness(self) -> float:
        """The roughness of flat triangles on a surface of revolution, with 36 or more around it."""
        return 0.1

    def files(self) -> list[Path]:
        """The file of the surface."""
        return [Path(self.file)]

    @property
    def cuts(self) -> bool:
        """Whether the surface is a wall between fluid cells."""
        return self.thin

    def resolved(self, case: Case) -> Self:
        """The shape with the full path of its file and with `scale`; checks the surface."""
        for problem in self.problems(case):
            raise ValueError(problem)
        path = (case.directory / self.file).absolute()
        scale = self.scale or self.length
        try:
            if self.unit:
                if case.units is None:
                    raise ValueError(
                        f"has unit = '{self.unit}', but the case has no [units]; add [units], or "
                        "give scale or length in cells"
                    )
                scale = float(case.units.to_lattice(findings.METRES[self.unit], LENGTH))
            if self.length:
                scale = self.length / _longest_side(path, file_state(path), self.repair, self.thin)
            found = self.model_copy(
                update={"file": str(path), "scale": scale, "length": None, "unit": None}
            )
            found._require_fit(case, findings.Given(self.scale, self.length, self.unit))
            if self.invert and not found.loaded.closed:
                fix = "remove invert, or set repair = true"
                raise ValueError(f"is open, so that it has no outside to invert; {fix}")
        except ValueError as error:
            raise ValueError(f"'{self.file}' {error}") from None
        return found

    def _require_fit(self, case: Case, given: findings.Given) -> None:
        """Raise ValueError for a surface that is far away, misses the plane, or is too large.

        given: the size in the case. A sheet with `thin` may be large, as it continues beyond the
        box.
        """
        largest = float(np.abs(self.surface.corners).max())
        if not largest < LARGEST:  # for positions in double precision
            raise ValueError(
                f"extends to coordinates of {largest:.3g} cells; allowed: below {LARGEST:g}; "
                "compare the unit of the file with scale, length or unit, or change `at`"
            )
        z = self.surface.corners[2]
        if len(self.at) == 2 and not z.min() < 0 < z.max():
            raise ValueError(
                f"has no section with the plane of the case: relative to this plane it extends "
                f"from z = {z.min():.4g} to {z.max():.4g} cells; choose another anchor"
            )
        sides = [b - a for a, b in zip(*self._sides(), strict=True)]
        problem = findings.too_large(sides, case.domain.size, given)
        if problem and not self.thin:
            raise ValueError(problem)

    @property
    def loaded(self) -> Loaded:
        """The surface in cell coordinates."""
        path = Path(self.file)
        placing = float(self.scale or 1), self.rotate, self.at, self.anchor
        return _load(path, file_state(path), self.repair, self.thin, placing)

    @property
    def surface(self) -> Surface:
        """The triangles in cell coordinates."""
        return self.loaded.surface

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """An odd number of intersections on the line from the point towards -x.

        False for an open surface.
        """
        if not self.loaded.closed:
            return np.zeros(np.broadcast_shapes(*(np.shape(a) for a in (x, y, z))), bool)
        return self.surface.inside(x, y, 0.0 if z is None else z) ^ self.invert

    def distance(self, points: NDArray[Any], step: NDArray[Any]) -> Floats:
        """Return q of the first intersection of each link with the surface.

        Where a link touches the surface without crossing it, q follows from bisection.
        """
        missing = ((0, 3 - len(points)), (0, 0))
        q = self.surface.first(np.pad(points, missing), np.pad(step, missing))
        none = np.flatnonzero(np.isnan(q))
        if none.size:
            q[none] = super().distance(points[:, none], step[:, none])
        return q

    def first(self, points: NDArray[Any], step: NDArray[Any]) -> Floats:
        """Return q of the first intersection of each link with the surface; nan without one."""
        missing = ((0, 3 - len(points)), (0, 0))
        return self.surface.crossing(np.pad(points, missing), np.pad(step, missing))

    def share(self, points: NDArray[Any]) -> Floats:
        """From the plane through the nearest point of the surface, normal to the way to it.

        In 2D from the planes of Shape.share.
        """
        if len(points) == 2:
            return super().share(points)
        solid = np.broadcast_to(self.inside(*points), points.shape[1:])
        away = from_surface(self.loaded.pieces, points, NEAR)
        far = np.sqrt((away**2).sum(axis=0))
        near = np.flatnonzero(np.isfinite(far))
        side = np.where(solid[near], -1.0, 1.0)
        normal = side * away[:, near] / np.maximum(far[near], SMALL)
        found = solid.astype(float)
        found[near] = share_behind(side * far[near], normal)
        return found

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """To the nearest triangle; in 2D that of Shape.signed_distance."""
        if len(points) == 2:
            return super().signed_distance(points)
        solid = np.broadcast_to(self.inside(*points), points.shape[1:])
        away = np.nan_to_num(from_surface(self.loaded.pieces, points, AWAY), nan=AWAY)
        found: Floats = np.where(solid, -1.0, 1.0) * np.sqrt((away**2).sum(axis=0))
        return found

    def bounds(self) -> Corners:
        """The bounding box; infinite if the fluid is inside."""
        if self.invert:
            return (-inf,) * len(self.at), (inf,) * len(self.at)
        return self._sides()

    def _sides(self) -> Corners:
        lower, upper = self.surface.lower.min(axis=1), self.surface.upper.max(axis=1)
        return tuple(lower[: len(self.at)].tolist()), tuple(upper[: len(self.at)].tolist())

    def frontal_area(self, axis: int, domain: Any) -> float | None:
        """The share of lines that meet the surface, in cells^2; None if the fluid is inside."""
        if self.invert:
            return None
        return examine.frontal_area(self.surface, axis, *counted(self._sides(), domain))

    def problems(self, case: Case) -> list[str]:
        """Errors: wrong number of entries, or not exactly one of scale, length and unit."""
        problems = self.wrong_lengths(case, "at")
        given = [key for key in ("scale", "length", "unit") if getattr(self, key) is not None]
        if len(given) != 1:
            problems.append(
                f"has {' and '.join(given) or 'no size'}; give one of scale (cells per length unit "
                "of the file), length (of the longest side) and unit (with [units])"
            )
        return problems

    def problems_in_cells(self, case: Case) -> list[str]:
        """Sheets that fall between the cells, or what `thin` does not allow."""
        if self.thin:
            return findings.refused(case, self._sides())
        return findings.sheets(self._parts(case))

    def findings(self, case: Case, where: str, flow: Flow) -> list[Finding]:
        """Thin and overlapping parts, resolution, blockage and y+; see surfaces/findings.py."""
        body = findings.Body(where, self._sides(), self.invert, self.loaded.repaired)
        parts = None if self.thin else self._parts(case)
        return findings.of_surface(case, body, parts, self.frontal_area, flow)

    def _parts(self, case: Case) -> examine.Parts:
        return _examined(self, file_state(Path(self.file)), tuple(case.domain.size))


@lru_cache(maxsize=16)
def _triangles(path: Path, state: tuple[int, ...], repair: bool, thin: bool) -> Triangles:
    return read.read(path, repair, thin)


def _longest_side(path: Path, state: tuple[int, ...], repair: bool, thin: bool) -> float:
    """The longest side of the bounding box in the file; ValueError if it is 0."""
    side = triangles.longest_side(_triangles(path, state, repair, thin).vertices)
    if not side:
        raise ValueError("is a single point; allowed: a surface; export it again")
    return side


@lru_cache(maxsize=256)
def _load(path: Path, state: tuple[int, ...], repair: bool, thin: bool, placing: tuple) -> Loaded:
    found = _triangles(path, state, repair, thin)
    vertices = triangles.placed(found.vertices, *placing)
    corners = np.ascontiguousarray(vertices[found.faces].transpose(2, 1, 0))
    return Loaded(Surface(corners), found.repaired, found.closed)


@lru_cache(maxsize=16)
def _examined(shape: Mesh, state: tuple[int, ...], size: tuple[int, ...]) -> examine.Parts:
    return examine.examine(shape.surface, size, shape.invert)
