"""Planes of the box and parts of them, and sums of the flow over their fluid cells."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.tables import Label
from mpilbm.core.errors import CaseError
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import Parameters
from mpilbm.core.units import counted
from mpilbm.outputs import Context
from mpilbm.outputs.images.part import cell_of
from mpilbm.parallel import on_root, together
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.point_fields import PointFields

LARGEST = 1e150  # radius whose square is finite
Point = tuple[float, ...]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sums = list[tuple[int, Floats]]  # number of the opening, and the sums of one plane of the box


class Opening(Parameters):
    """A plane normal to an axis, or the part of it in a rectangle or a disc.

    It consists of the cells at `position` whose centres are inside; solid cells do not count. The
    coordinates of points in the plane are those of the other axes in the order x, y, z.
    """

    label: Label = Field(description="name in columns and in `between`", examples=["in"])
    normal: Literal["x", "y", "z"] = Field(
        description="axis across the plane; flow along it is positive", examples=["x"]
    )
    position: Annotated[float, LENGTH] = Field(
        ge=0, description="place of the plane; that of its cells", examples=[0.5]
    )
    rectangle: Annotated[tuple[Point, Point] | None, LENGTH] = Field(
        None, description="two opposite corners in the plane", examples=[[[4, 4], [12, 8]]]
    )
    centre: Annotated[Point | None, LENGTH] = Field(
        None, description="centre of a disc in the plane", examples=[[16, 16]]
    )
    radius: Annotated[float | None, LENGTH] = Field(
        None, gt=0, description="radius of this disc", examples=[8]
    )

    @property
    def axis(self) -> int:
        """The number of the axis across the plane."""
        return AXES.index(self.normal)

    def nodes(self, case: Case, begin: int, end: int) -> Ints:
        """Its cells in the planes begin..end of the box, (n, 3): plane, row and x, ascending."""
        size = case.domain.size
        along = [np.arange(n) for n in size]
        along[self.axis] = np.array([cell_of(self.position, size[self.axis])])
        along[-1] = along[-1][(along[-1] >= begin) & (along[-1] < end)]
        mesh = [each.reshape(-1) for each in np.meshgrid(*reversed(along), indexing="ij")]
        inside = self._contains(np.delete(np.array(mesh)[::-1] + 0.5, self.axis, axis=0))
        rows = [np.zeros_like(mesh[0])] if case.dimensions == 2 else []
        return np.stack([mesh[0], *rows, *mesh[1:]], axis=1)[inside]

    def _contains(self, x: Floats) -> NDArray[np.bool_]:
        """Whether points in the plane, (D - 1, n), are inside."""
        if self.rectangle is not None:
            low, high = np.sort(np.array(self.rectangle), axis=0)[..., None]
            return ((x >= low) & (x <= high)).all(axis=0)
        if self.centre is not None and self.radius is not None:
            with np.errstate(over="ignore"):
                apart = ((x - np.array(self.centre)[:, None]) ** 2).sum(axis=0)
                return apart <= min(self.radius, LARGEST) ** 2
        return np.ones(x.shape[1], bool)

    def most_cells(self, case: Case, planes: int) -> int:
        """Upper bound of its cells on a rank with `planes` planes."""
        sizes = [*case.domain.size[:-1], planes]
        return prod(n for axis, n in enumerate(sizes) if axis != self.axis)

    def problems(self, case: Case) -> list[str]:
        """Why it is not a part of a plane of the box."""
        D, size = case.dimensions, case.domain.size
        if self.axis >= D:
            return [f"normal: found '{self.normal}' in 2D; allowed: x, y"]
        if self.position > size[self.axis]:
            most = f"0 to {size[self.axis]}, the size of the box along {self.normal}"
            return [f"position: found {self.position:g}; allowed: {most}"]
        if (self.centre is None) != (self.radius is None):
            return ["radius: a disc requires centre and radius; give both, or remove them"]
        is_part = self.rectangle is not None or self.centre is not None
        if self.rectangle is not None and self.centre is not None:
            return ["rectangle: found with a disc; give rectangle, or centre and radius"]
        for key, given in {"rectangle": self.rectangle or (), "centre": (self.centre,)}.items():
            wrong = [len(each) for each in given if each is not None and len(each) != D - 1]
            if wrong:
                others = ", ".join(axis for axis in AXES[:D] if axis != self.normal)
                found = counted(wrong[0], "coordinate")
                return [f"{key}: found a point of {found}; allowed: {others}"]
        if is_part and not len(self.nodes(case, 0, size[-1])):
            return ["contains no centre of a cell; enlarge rectangle or radius"]
        return []


class Openings:
    """Sums over the fluid cells of openings.

    `names`: the fields rho, u, pressure and all scalars. `where`: the key path of the openings.

    Each plane of the box (along z, in 2D along y) belongs to one rank, which adds its cells in
    double precision; rank 0 adds the planes in their order. The bits are those of one rank.
    """

    def __init__(
        self, planes: Sequence[Opening], names: Sequence[str], context: Context, where: str
    ):
        self.planes, self.names, self.where = planes, names, where
        self.case, self.comm, slab = context.case, context.comm, context.slab
        self.nodes = [each.nodes(self.case, slab.begin, slab.end) for each in planes]
        listed = np.concatenate(self.nodes) - [slab.begin, 0, 0]
        diagnostics = context.solver.diagnostics
        self.points = together(context.comm, PointFields, diagnostics, self.names, listed)
        ends = np.cumsum([len(each) for each in self.nodes])[:-1]
        self.places = np.split(np.arange(len(listed)), ends)
        self.fluid = ~self.points.solid
        on_root(self.comm, self._require_fluid, self.comm.gather([*map(self._cells, self.places)]))

    def _cells(self, places: Ints) -> int:
        return int(self.fluid[places].sum())

    def _require_fluid(self, cells: list[list[int]]) -> None:
        """CaseError for an opening without a fluid cell."""
        for opening, count in zip(self.planes, np.sum(cells, axis=0), strict=True):
            if not count:
                raise CaseError(
                    f"plane '{opening.label}' has no fluid cell; move it out of the solid",
                    self.where,
                    self.case.path,
                )

    def start(self) -> Callable[[], list[Sums] | None]:
        """Enqueue the fields of this rank's cells; the result gathers the sums. Collective."""
        self.points.prepare()
        found = self.points.start()
        return lambda: self.comm.gather(self._sums(found()))

    def _sums(self, fields: dict[str, np.ndarray]) -> Sums:
        """The sums of each plane of each opening over its fluid cells."""
        found: Sums = []
        for number, (opening, nodes, places) in enumerate(
            zip(self.planes, self.nodes, self.places, strict=True)
        ):
            fluid = self.fluid[places]
            at = {name: fields[name][places[fluid]].astype(float) for name in self.names}
            columns, planes = self._columns(opening, at), nodes[fluid, 0]
            first = np.flatnonzero(np.diff(planes, prepend=-1))
            found += [(number, part.sum(axis=0)) for part in np.split(columns, first)[1:]]
        return found

    def _columns(self, opening: Opening, at: dict[str, np.ndarray]) -> Floats:
        """1, u_n, rho u_n, p, (p + rho u.u / 2) u_n, and phi u_n of each scalar, of each cell.

        Where the momentum is rho_0 u, rho_0 = 1 replaces rho.
        """
        u, normal, p = at["u"], at["u"][:, opening.axis], at["pressure"]
        (per_momentum,) = self.case.fluids[0].collision.velocity([1.0], at["rho"])
        rho = 1 / (per_momentum + 0 * p)
        total = p + rho * (u**2).sum(axis=1) / 2
        scalars = [at[label] * normal for label in self.case.labels]
        return np.stack([0 * p + 1, normal, rho * normal, p, total * normal, *scalars], axis=1)

    def totals(self, parts: list[Sums]) -> list[list[float]]:
        """The sums over each opening, from those of all ranks; see `_columns`."""
        found: list[list[Floats]] = [[] for _ in self.planes]
        for number, sums in (each for part in parts for each in part):
            found[number].append(sums)
        return [np.cumsum(sums, axis=0)[-1].tolist() for sums in found]
