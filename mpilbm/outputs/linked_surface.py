"""Values on the surfaces of bodies from the momentum exchange of their links."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from mpilbm.core.units import PRESSURE
from mpilbm.outputs import Context, facets
from mpilbm.outputs.facet_files import FIELDS, FacetFiles
from mpilbm.outputs.facets import Floats, Ints, Pairs, nearest_facets
from mpilbm.outputs.images.vtkhdf import Arrays, Shapes, topology
from mpilbm.outputs.paired_samples import PairedSamples
from mpilbm.parallel import on_root
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.lattices import AXES
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.shapes.mesh import Mesh
from mpilbm.solids.solid_cells import centres
from mpilbm.solver.momentum_exchange import ByCell

HALF_WAY = 0.5  # cells from the wall


class LinkedCells(NamedTuple):
    """n cells of a body each, in the order of MomentumExchange.measured.

    body   int64 (n,), the number of the body
    place  float64 (n, D), the centre of the cell in the box; of a cell in a layer above the wall,
           see solids/wall_layer.py, the point half a cell above the wall below it
    area   float64 (n, D), the sum of 2 w_i c_i / cs2 over its links, into the fluid; in a layer
           that of the wall below
    faces  bool (n, 2 D), whether links along +x, -x, +y, … come from the body
    above  bool (n,), whether the cell is in a layer
    """

    body: Ints
    place: Floats
    area: Floats
    faces: np.ndarray
    above: np.ndarray


def linked_cells(case: Any, slab: Slab, lists: tuple[EntryList, ...]) -> LinkedCells:
    """The cells of measured lists of a slab."""
    lattice, D = case.lattice, case.dimensions
    area = 2 * np.array(lattice.w, float)[:, None] * np.array(lattice.c) / float(lattice.cs2)
    none = np.zeros((0, D))
    flags = np.zeros((0, 2 * D), bool)
    found = [LinkedCells(none[:, 0].astype(int), none, none, flags, flags[:, 0])]
    for each in lists:
        flags = (each.links & (each.blocked | each.cut)).moving().flags()[:, : lattice.Q]
        place = centres(case, slab, each.cells)
        body = np.array([-1 if owner.body is None else owner.body for owner in each.owners])
        areas = lattice.volume * summed(flags, area)
        if each.layer:
            place = place - (each.layer.height - HALF_WAY)[:, None] * each.layer.normal
            areas = each.layer.area[:, None] * each.layer.normal
        above = np.full(each.cells.size, each.layer is not None)
        faces = flags[:, _along_axes(lattice)]
        found.append(LinkedCells(body[each.member], place, areas, faces, above))
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


class LinkedSurfaceWriter:
    """Rank 0 receives the sums of all cells next to the bodies, and writes the files.

    on_mesh  for the number of each body, whether its facets are those of a mesh
    fields   the names of the values, see FIELDS
    """

    def __init__(
        self, context: Context, stem: str, on_mesh: Mapping[int, bool], fields: Iterable[str]
    ):
        self.context, self.case = context, context.case
        self.on_mesh, self.fields = on_mesh, tuple(dict.fromkeys(fields))
        self._files, self._open = FacetFiles(context, stem), False
        exchanged = context.solver.exchanged.links if context.solver.exchanged else None
        assert exchanged is not None, "the case needs forces over links, see Output.bodies"
        self._samples = PairedSamples(context.solver, exchanged.start_by_cell)
        parts = context.comm.gather(linked_cells(self.case, context.slab, exchanged.measured))
        self.of_bodies: list[OfBody] = []
        self.datasets: Arrays = {}
        on_root(context.comm, self._prepare, parts)

    def _prepare(self, parts: list[LinkedCells]) -> None:
        """Find the facets of all bodies and the cells next to them."""
        cells = LinkedCells(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        order = np.lexsort((*cells.place.T, cells.body))  # the same on any number of ranks
        for number in self.on_mesh:
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
        domain, places = self.case.domain, cells.place[mine]
        shape = self.case.bodies[number].shape
        mesh = shape if self.on_mesh[number] else None
        if isinstance(mesh, Mesh):
            found = facets.of_mesh(shape, domain)
        else:
            row, face = np.nonzero(cells.faces[mine])
            found = facets.of_cells(places[row], face // 2, 1 - 2 * (face % 2))
        along = zip(domain.size, domain.periodic, strict=False)
        shifts = [(-n, 0, n) if wraps else (0,) for n, wraps in along]
        images = np.array(list(product(*shifts)), float)
        pairs = Pairs.find(places, cells.area[mine], found, images, cells.above[mine])
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

    def prepare(self, step: int) -> None:
        """Sample the step before one at which a file is written."""
        self._samples.take()

    def write(self, step: int) -> None:
        """Enqueue the sums of this step; the file is written when they are known. Collective."""
        if self._open:  # keep the sums of one file only
            self.context.samples.settle()
        self._open = True
        self.context.samples.add(partial(self._complete, step, self._samples.around()))

    def _complete(self, step: int, samples: list[Callable[[], ByCell]]) -> None:
        """Gather the means of the sums of all ranks, and begin the file; collective."""
        found = [sample() for sample in samples]
        means = ByCell(*(np.mean(each, axis=0) for each in zip(*found, strict=True)))
        self._open, parts = False, self.context.comm.gather(means)
        shapes = self._shapes() if parts is not None else {}
        self._files.write(step, shapes, partial(self._all_values, parts or []))

    def _shapes(self) -> Shapes:
        """The shape and type of each dataset."""
        shapes: Shapes = {path: (each.shape, each.dtype) for path, each in self.datasets.items()}
        count = len(self.datasets["CellData/body"])
        for name in self.fields:
            shape = (count, 3) if FIELDS[name] == 3 else (count,)
            shapes[f"CellData/{name}"] = shape, np.dtype(float)
        return shapes

    def _all_values(self, parts: list[ByCell]) -> Arrays:
        """All datasets; on rank 0, in any thread."""
        known = ByCell(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        bodies = self.of_bodies
        found = [self._values(of, ByCell(*(each[of.cells] for each in known))) for of in bodies]
        values = dict(self.datasets)
        for name in self.fields:
            values[f"CellData/{name}"] = np.concatenate([each[name] for each in found])
        return values

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
