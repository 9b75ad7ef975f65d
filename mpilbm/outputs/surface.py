"""Pressure, wall shear stress, y+ and force per area on the surfaces of bodies."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.core.units import PRESSURE
from mpilbm.outputs import Context, facets
from mpilbm.outputs.core import body_problems, chosen_bodies, parts_problems
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.facets import Floats, Ints, Pairs, nearest_facets
from mpilbm.outputs.images.vtkhdf import Arrays, describe_facets, topology
from mpilbm.parallel import on_root
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.lattices import AXES
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.shapes.mesh import Mesh
from mpilbm.solids.solid_cells import coordinates
from mpilbm.solver.momentum_exchange import ByCell
from mpilbm.storage.planes import PlaneFile

if TYPE_CHECKING:
    import h5py


class LinkedCells(NamedTuple):
    """n cells of a body each, in the order of MomentumExchange.measured.

    body   int64 (n,), the number of the body
    place  int64 (n, D), the cell in the box
    area   float64 (n, D), the sum of 2 w_i c_i / cs2 over its links, into the fluid
    faces  bool (n, 2 D), whether links along +x, -x, +y, … come from the body
    """

    body: Ints
    place: Ints
    area: Floats
    faces: np.ndarray


def linked_cells(case: Any, slab: Slab, lists: tuple[EntryList, ...]) -> LinkedCells:
    """The cells of measured lists of a slab."""
    lattice, D = case.lattice, case.dimensions
    area = 2 * np.array(lattice.w, float)[:, None] * np.array(lattice.c) / float(lattice.cs2)
    none = np.zeros((0, D))
    found = [
        LinkedCells(none[:, 0].astype(int), none.astype(int), none, np.zeros((0, 2 * D), bool))
    ]
    for each in lists:
        flags = (each.links & (each.blocked | each.cut)).moving().flags()[:, : lattice.Q]
        place = coordinates(case, slab, each.cells).T
        body = np.array([-1 if owner.body is None else owner.body for owner in each.owners])
        areas = lattice.volume * summed(flags, area)
        found.append(LinkedCells(body[each.member], place, areas, flags[:, _along_axes(lattice)]))
    return LinkedCells(*(np.concatenate(part) for part in zip(*found, strict=True)))


def summed(flags: np.ndarray, vectors: Floats) -> Floats:
    """For each row of flags (n, m) the sum of the vectors (m, D) whose flag is set, (n, D).

    Added in the order of the vectors: the order of a product of matrices may depend on n, and so on
    the number of ranks.
    """
    total = np.zeros((len(flags), vectors.shape[1]))
    for flag, vector in zip(flags.T, vectors, strict=True):
        total[flag] += vector
    return total


def _along_axes(lattice: Any) -> list[int]:
    """Numbers of the directions +x, -x, +y, …; none on a staggered lattice."""
    if lattice.staggered:
        return [0] * (2 * lattice.D)
    c = [tuple(int(v) for v in each) for each in lattice.c]
    unit = np.eye(lattice.D, dtype=int)
    return [c.index(tuple(int(s * v) for v in axis)) for axis in unit for s in (1, -1)]


FIELDS = {"pressure": 1, "shear": 3, "shear_magnitude": 1, "y_plus": 1, "force": 3}  # components
FACET_BYTES = 160  # points, connectivity and the number of the body


@register("outputs", "surface")
class Surface(Scheduled):
    """Values on the surfaces of bodies as `surface_<label>_<step>.vtkhdf`, VTKHDF PolyData.

        pressure         cs2 (rho - 1); on a body across the faces of a pressure_jump, that of the
                         unfolded flow around the body in one piece
        shear            tau = t - (t . n) n with the viscous force per area t
        shear_magnitude  |tau|
        y_plus           sqrt(|tau| / rho) d / nu with the distance d of the nearest cells
        force            force per area; its integral is that of `body_forces`

    n is the normal into the fluid. Values belong to triangles of a mesh (`on = "mesh"`, divided
    until their sides are at most 2 cells) or to the faces between fluid and solid cells
    (`on = "cells"`), in 2D to lines. They are weighted means over the cells next to the body within
    2 cells, of the momentum exchange of their links with the body and of their pressure; nan where
    there are no such cells. Both are of the middle of the following step, as in `body_forces`. With
    [units] all values are in SI. See outputs/facets.py.
    """

    body: tuple[str, ...] = Field(
        (), description="labels of the bodies; without it: all", examples=[["car"]]
    )
    on: Literal["mesh", "cells"] | None = Field(
        None, description="triangles or faces of cells; without it: mesh if the body is one"
    )
    fields: tuple[str, ...] = Field(
        tuple(FIELDS), description=", ".join(FIELDS), examples=[["pressure", "shear"]]
    )

    files: ClassVar[tuple[str, ...]] = ("surface_<label>_<step>.vtkhdf",)
    free: ClassVar[tuple[str, ...]] = ("fields",)

    def bodies(self, case: Case) -> tuple[int, ...]:
        """The named bodies, or all."""
        return chosen_bodies(case, self.body)

    @property
    def splits(self) -> bool:
        """The viscous part gives the shear."""
        return True

    @property
    def by_cell(self) -> bool:
        """Facets have means over cells."""
        return True

    def problems(self, case: Case) -> list[str]:
        """Unknown labels and fields, faces of cells that do not exist, and no mesh."""
        found = super().problems(case) + body_problems(case, self.body)
        found += parts_problems(case, self.bodies(case), "body")
        choice = ", ".join(FIELDS)
        wrong = [name for name in self.fields if name not in FIELDS]
        found += [f"fields: found '{name}'; allowed: {choice}" for name in wrong]
        if not self.fields:
            found.append(f"fields: found none; allowed: {choice}")
        for number in self.bodies(case):
            body = f"on: body '{case.bodies[number].label}'"
            mesh = isinstance(case.bodies[number].shape, Mesh)
            if self.on == "mesh" and not mesh:
                fix = 'set on = "cells", or name the bodies with a mesh as `body`'
                found.append(f"{body} is not a mesh; {fix}")
            elif case.lattice.staggered and not (mesh and self.on != "cells"):
                lacks = f"which the lattice {case.lattice.name} does not have"
                found.append(f"{body} would have faces of cells, {lacks}; use a mesh")
        return found

    def on_mesh(self, case: Case, number: int) -> bool:
        """Whether a body has triangles in the file."""
        return self.on != "cells" and isinstance(case.bodies[number].shape, Mesh)

    def disk_bytes(self, case: Case, times: int) -> int:
        """For twice the area of the box around each body, or of a mask a face of each cell."""
        each = FACET_BYTES + 8 * sum(FIELDS.get(name, 0) for name in self.fields)
        return times * each * sum(_faces(case, number) for number in self.bodies(case))

    def open(self, context: Context) -> "SurfaceWriter":
        """Gathers the cells next to the bodies on rank 0; collective."""
        return SurfaceWriter(self, context)


def _faces(case: Case, number: int) -> int:
    """Estimate of the number of facets of a body."""
    shape, size = case.bodies[number].shape, np.array(case.domain.size, float)
    if shape is None:
        return int(size.prod())
    lower, upper = (np.array(bound, float) for bound in shape.bounds())
    sides = np.clip(np.minimum(upper, size) - np.maximum(lower, 0), 1, size)
    return int(4 * (sides.prod() / sides).sum())


class OfBody(NamedTuple):
    """A body.

    number   the number of the body
    cells    its cells among all
    pairs    its facets, and the pairs of both
    nearest  see Pairs.shared
    boxes    float64, of each pair: the number of boxes, along the axis of a pressure jump, from the
             cell to its image beside the facet of the body in one piece
    """

    number: int
    cells: np.ndarray
    pairs: Pairs
    nearest: np.ndarray
    boxes: Floats


class SurfaceWriter:
    """Rank 0 receives the sums of all cells next to the bodies, and writes the files."""

    def __init__(self, output: Surface, context: Context):
        self.output, self.context, self.case = output, context, context.case
        self.label, self._open = output.label_in(context.case), False
        exchanged = context.solver.exchanged.links if context.solver.exchanged else None
        assert exchanged is not None, "the case needs forces over links, see Output.bodies"
        self.exchanged = exchanged
        parts = context.comm.gather(linked_cells(self.case, context.slab, exchanged.measured))
        self.of_bodies: list[OfBody] = []
        self.datasets: Arrays = {}
        on_root(context.comm, self._prepare, parts)

    def _prepare(self, parts: list[LinkedCells]) -> None:
        """Find the facets of all bodies and the cells next to them."""
        cells = LinkedCells(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        order = np.lexsort((*cells.place.T, cells.body))  # the same on any number of ranks
        for number in self.output.bodies(self.case):
            mine = order[cells.body[order] == number]
            self.of_bodies.append(self._of_body(number, mine, cells))
        corners = [each.pairs.facets.corners for each in self.of_bodies]
        units = self.case.units
        self.datasets = topology(corners, units.cell if units else 1.0)
        pairs = zip(corners, self.of_bodies, strict=True)
        numbers = [np.full(len(each), of.number) for each, of in pairs]
        self.datasets["CellData/body"] = np.concatenate(numbers).astype(np.int32)
        normals = [_three(each.pairs.facets.normal) for each in self.of_bodies]
        self.datasets["CellData/normal"] = np.concatenate(normals)

    def _of_body(self, number: int, mine: np.ndarray, cells: LinkedCells) -> OfBody:
        domain, places = self.case.domain, cells.place[mine] + 0.5
        shape = self.case.bodies[number].shape
        mesh = shape if self.output.on_mesh(self.case, number) else None
        if isinstance(mesh, Mesh):
            found = facets.of_mesh(shape, domain)
        else:
            row, face = np.nonzero(cells.faces[mine])
            found = facets.of_cells(places[row], face // 2, 1 - 2 * (face % 2))
        along = zip(domain.size, domain.periodic, strict=False)
        shifts = [(-n, 0, n) if wraps else (0,) for n, wraps in along]
        images = np.array(list(product(*shifts)), float)
        pairs = Pairs.find(places, cells.area[mine], found, images)
        pairs = pairs if mesh else pairs.smoothed(cells.area[mine])
        nearest = nearest_facets(places, pairs, images)
        return OfBody(number, mine, pairs, nearest, self._boxes(number, pairs, mesh is None))

    def _boxes(self, number: int, pairs: Pairs, in_box: bool) -> Floats:
        """`boxes` of OfBody; in_box: whether facets are in the box, not those of the shape."""
        case = self.case
        axes = ("xyz".index(b.where[0][0]) for b in case.boundaries if b.joins_faces)
        axis = next(axes, None)
        if axis is None:
            return np.zeros(pairs.cell.size)
        n, (seam, moved) = case.domain.size[axis], case.frames[number][axis]
        boxes = pairs.shift[:, axis] / n
        if in_box:
            at = pairs.facets.centres[pairs.facet, axis]
            boxes = boxes + (at < seam) + moved / n
        return boxes

    def write(self, step: int) -> None:
        """Enqueue the sums of this step; the file is written when they are known. Collective."""
        if self._open:  # keep the sums of one step only
            self.context.samples.settle()
        self._open, known = True, self.exchanged.start_by_cell()
        self.context.samples.add(partial(self._complete, step, known))

    def _complete(self, step: int, known: Callable[[], ByCell]) -> None:
        """Gather the sums of all ranks, and begin the file; collective."""
        context, self._open = self.context, False
        parts = context.comm.gather(known())
        name = f"surface_{self.label}_{step:09d}.vtkhdf"
        describe = partial(self._describe, step)
        if not context.files.in_threads:
            with context.files.create(name, describe) as file:
                on_root(context.comm, self._fill, file, parts)
                file.commit()
            return
        job = context.background.begin(partial(context.files.create_own, name, describe))
        fill = [] if parts is None else [partial(self._fill, job.file, parts)]
        job.end(fill, [job.file.flush])

    def _describe(self, step: int, file: "h5py.File") -> None:
        shapes = {path: (each.shape, each.dtype) for path, each in self.datasets.items()}
        count = len(self.datasets["CellData/body"])
        for name in dict.fromkeys(self.output.fields):
            shape = (count, 3) if FIELDS[name] == 3 else (count,)
            shapes[f"CellData/{name}"] = shape, np.dtype(float)
        describe_facets(file, self.case, step, shapes)

    def _fill(self, file: PlaneFile, parts: list[ByCell]) -> None:
        """Compute and write all datasets; on rank 0, in any thread."""
        known = ByCell(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        bodies = self.of_bodies
        found = [self._values(of, ByCell(*(each[of.cells] for each in known))) for of in bodies]
        values = dict(self.datasets)
        for name in dict.fromkeys(self.output.fields):
            values[f"CellData/{name}"] = np.concatenate([each[name] for each in found])
        for path, each in values.items():
            if each.size:  # HDF5 gives an empty dataset no place
                file.file.put(f"VTKHDF/{path}", each)

    def _values(self, of: OfBody, known: ByCell) -> dict[str, Floats]:
        """All fields on the facets of a body."""
        D, pairs, case = self.case.dimensions, of.pairs, self.case
        force, pressures = known.sums[:, :D], known.sums[:, -2 * D : -D]
        cs2, n = float(case.lattice.cs2), pairs.normal
        gauge = known.gauge[pairs.cell] - known.rho_jump[pairs.cell] * of.boxes
        gauge = pairs.mean_of_pairs(gauge)
        traction = pairs.traction(force - pressures)
        shear = traction - (traction * n).sum(axis=1)[:, None] * n
        size = np.sqrt((shear**2).sum(axis=1))
        distance = np.maximum(pairs.mean_of_pairs(pairs.distance), 0)
        unit = case.units.unit(PRESSURE) if case.units else 1.0
        centres = dict(zip(AXES, pairs.facets.centres.T, strict=False))
        nu = case.fluids[0].viscosity + case.added_viscosity(centres)
        with np.errstate(invalid="ignore"):
            y_plus = np.sqrt(size / (1 + gauge)) * distance / nu
        return {
            "pressure": unit * cs2 * gauge,
            "shear": unit * _three(shear),
            "shear_magnitude": unit * size,
            "y_plus": y_plus,
            "force": unit * _three(pairs.shared(force, of.nearest)),
        }

    def close(self) -> None:
        """Nothing to do: `Context.background` closes files that are still being written."""


def _three(vectors: Floats) -> Floats:
    """Vectors with three components, the last one 0 in 2D."""
    return np.pad(vectors, ((0, 0), (0, 3 - vectors.shape[1])))
