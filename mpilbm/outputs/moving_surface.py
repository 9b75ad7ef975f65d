"""The pressure on the surfaces of moving bodies, where they are at the step of a file."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from mpilbm.case.case import Case
from mpilbm.core.units import PRESSURE
from mpilbm.outputs import Context, facets
from mpilbm.outputs.facet_files import FacetFiles
from mpilbm.outputs.facets import Facets, Floats, Ints
from mpilbm.outputs.images.vtkhdf import Arrays, topology
from mpilbm.parallel import on_root, together
from mpilbm.solids import Flags
from mpilbm.solids.moving_bodies import MovingBody
from mpilbm.solids.moving_cells import PlacedBodies
from mpilbm.solids.shapes.mesh import Mesh
from mpilbm.solids.surface_net import facets_of
from mpilbm.solver.fields.point_fields import PointFields

FIELD = "pressure"
HEIGHTS = 1.0, 2.0  # cells above a facet at which the pressure is sampled
ENOUGH = 0.5  # of the weights of the cells around a point, those of cells that are known


def surface_of(body: MovingBody) -> Facets:
    """The facets of a body in the coordinates in which its shape is given, 2D as (n, k, 2).

    Triangles of a mesh, or those of a net over another shape, see solids/surface_net.py.
    """
    shape = body.case.bodies[body.number].shape
    if isinstance(shape, Mesh):
        return facets.of_mesh(shape, body.case.domain, everywhere=True)
    D = body.case.dimensions
    corners = facets_of(body.shape, body.size) + body.middle[:D]
    return Facets(corners, facets.normals(corners))


def _falls(case: Case) -> tuple[Floats, Flags]:
    """By how much the pressure falls over the box along each axis, and where this is not known.

    Both (D,). It is the jump at the faces of a pressure_jump, and known if it is a number.
    """
    fall, unknown = np.zeros(case.dimensions), np.zeros(case.dimensions, bool)
    for boundary in (each for each in case.boundaries if each.joins_faces):
        axis, jump = "xyz".index(boundary.where[0][0]), boundary.values().get("rho_jump")
        if isinstance(jump, int | float):
            fall[axis] = float(case.lattice.cs2) * jump
        else:
            unknown[axis] = True
    return fall, unknown


@dataclass(frozen=True, eq=False)
class Stencil:
    """Points at which the pressure is interpolated between the centres of cells.

    cells    int64 (m,), the numbers of all cells that are used, ascending; plane after plane
    places   int64 (points, 2^D), of the cells around each point among these
    weights  float64 (points, 2^D), 0 for a cell beyond a face
    added    float64 (points, 2^D), to the pressure of a cell beyond the faces of a pressure_jump
    """

    cells: Ints
    places: Ints
    weights: Floats
    added: Floats

    @classmethod
    def around(cls, points: Floats, case: Case) -> "Stencil":
        """The stencil of points (n, D) in cells, which continue at periodic faces."""
        D, n = case.dimensions, np.array(case.domain.size)
        low = np.floor(points - 0.5).astype(np.int64)
        part = points - 0.5 - low
        fall, ends = _falls(case)
        wraps = np.array(case.domain.periodic[:D]) & ~ends
        numbers, weights, added = [], [], []
        for corner in np.ndindex(*(2,) * D):
            at = low + corner
            weight = np.where(corner, part, 1 - part).prod(axis=1)
            beyond = ~wraps & ((at < 0) | (at >= n))
            weights.append(np.where(beyond.any(axis=1), 0, weight))
            added.append(-(at // n) @ fall)
            numbers.append(np.ravel_multi_index(tuple((at % n).T[::-1]), tuple(n[::-1])))
        cells, places = np.unique(np.stack(numbers, axis=1), return_inverse=True)
        places = places.reshape(len(points), -1)
        return cls(cells, places, np.stack(weights, axis=1), np.stack(added, axis=1))

    def centres(self, case: Case) -> Floats:
        """The centres of the cells, (m, D)."""
        along = np.unravel_index(self.cells, case.domain.size[::-1])[::-1]
        return np.stack(along, axis=1).astype(np.float64) + 0.5

    def at_points(self, values: Floats, known: Flags) -> Floats:
        """The values at the points, from those of the cells (m,) where they are known; else nan.

        known: (points, 2^D), for the cells around each point.
        """
        weights = self.weights * known
        total = weights.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (weights * (values[self.places] + self.added)).sum(axis=1) / total
        return np.where(total >= ENOUGH, mean, np.nan)


class MovingSurfaceWriter:
    """Rank 0 has the facets; each rank computes the pressure in its cells near them.

    numbers: of the bodies in the case.
    """

    def __init__(self, context: Context, stem: str, numbers: tuple[int, ...]):
        self.context, self.case, self._files = context, context.case, FacetFiles(context, stem)
        self._numbers, self._open = numbers, False
        self._facets: list[Facets] = []
        self._datasets: Arrays = {}
        self._owner = np.zeros(0, np.int64)  # of each point of the file, among the bodies
        self._stencil: Stencil | None = None  # those of the last step, on rank 0
        self._values: Arrays = {}
        on_root(context.comm, self._prepare)

    def _chosen(self, placed: PlacedBodies) -> list[int]:
        """The places of the bodies of this output among the moving bodies."""
        return [k for k, body in enumerate(placed.bodies) if body.number in self._numbers]

    def _prepare(self) -> None:
        """Compute the facets of all bodies, which move with them."""
        placed = self.context.placed_bodies
        bodies = [placed.bodies[k] for k in self._chosen(placed)]
        self._facets = [surface_of(body) for body in bodies]
        corners = [each.corners for each in self._facets]
        self._datasets = topology(corners, 1.0)
        numbers, counts = [body.number for body in bodies], [len(each) for each in corners]
        self._datasets["CellData/body"] = np.repeat(numbers, counts).astype(np.int32)
        kind = "Lines" if self.case.dimensions == 2 else "Polygons"
        self._owner = np.zeros(len(self._datasets["Points"]), np.int64)
        ends = [each.shape[0] * each.shape[1] for each in corners]
        of_corners = np.repeat(np.arange(len(bodies)), ends)
        self._owner[self._datasets[f"{kind}/Connectivity"]] = of_corners

    def write(self, step: int) -> None:
        """Enqueue the pressure of this step; the file is written when it is known. Collective."""
        context = self.context
        if self._open:  # keep the values of one step only
            context.samples.settle()
        self._open, placed = True, context.placed_bodies
        cells = on_root(context.comm, self._sampled, placed)
        fields = together(context.comm, self._fields, cells)
        fields.prepare()
        solid, values = fields.solid, fields.start()
        context.samples.add(partial(self._complete, step, placed, solid, values))

    def _sampled(self, placed: PlacedBodies) -> Ints:
        """The cells around points above all facets, those of HEIGHTS one after another."""
        points = []
        for height in HEIGHTS:
            for k, each in zip(self._chosen(placed), self._facets, strict=True):
                at = placed.moved(k, each.centres) + height * placed.turned(k, each.normal)
                points.append(at)
        self._stencil = Stencil.around(np.concatenate(points), self.case)
        return self._stencil.cells

    def _fields(self, cells: Ints) -> PointFields:
        """The pressure in those of the cells that this rank has."""
        slab, shape = self.context.slab, self.case.domain.size
        row = int(np.prod(shape[:-1]))
        mine = cells[(cells >= slab.begin * row) & (cells < slab.end * row)]
        plane, rest = np.divmod(mine, row)
        nodes = np.stack([plane - slab.begin, *np.divmod(rest, shape[0])], axis=1)
        return PointFields(self.context.solver.diagnostics, (FIELD,), nodes)

    def _complete(
        self,
        step: int,
        placed: PlacedBodies,
        solid: np.ndarray,
        values: Callable[[], dict[str, np.ndarray]],
    ) -> None:
        """Gather the pressure of all ranks, and begin the file; collective."""
        parts = self.context.comm.gather((values()[FIELD], solid))
        self._open = False
        on_root(self.context.comm, self._fill, placed, parts)
        found = self._values
        shapes = {path: (each.shape, each.dtype) for path, each in found.items()}
        self._files.write(step, shapes, lambda: found)

    def _fill(self, placed: PlacedBodies, parts: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Compute all datasets of the file."""
        assert self._stencil is not None
        values, solid = (np.concatenate(each) for each in zip(*parts, strict=True))
        known = self._known(self._stencil, placed, ~solid)
        near, far = self._stencil.at_points(values.astype(float), known).reshape(2, -1)
        pressure = np.where(np.isfinite(far), 2 * near - far, near)
        units, found = self.case.units, dict(self._datasets)
        points, chosen, D = found["Points"], self._chosen(placed), self.case.dimensions
        moved = np.zeros_like(points)
        for number, k in enumerate(chosen):
            of = self._owner == number
            moved[of, :D] = placed.moved(k, points[of, :D])
        found["Points"] = moved * (units.cell if units else 1.0)
        pairs = zip(chosen, self._facets, strict=True)
        normals = [np.pad(placed.turned(k, of.normal), ((0, 0), (0, 3 - D))) for k, of in pairs]
        found["CellData/normal"] = np.concatenate(normals)
        found[f"CellData/{FIELD}"] = pressure * (units.unit(PRESSURE) if units else 1.0)
        self._values = found

    def _known(self, stencil: Stencil, placed: PlacedBodies, fluid: Flags) -> Flags:
        """Where cells around points are fluid, and not within a moving body but the point's own."""
        holder = placed.holders(stencil.centres(self.case))[stencil.places]
        counts = [len(each.normal) for each in self._facets]
        own = np.tile(np.repeat(self._chosen(placed), counts), len(HEIGHTS))[:, None]
        known: Flags = fluid[stencil.places] & ((holder < 0) | (holder == own))
        return known

    def close(self) -> None:
        """Nothing to do: `Context.background` closes files that are still being written."""
