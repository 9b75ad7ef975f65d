"""Pressure, wall shear stress, y+ and force per area on the surfaces of bodies."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.core.units import PRESSURE
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.surfaces import facets, polydata
from mpilbm.outputs.surfaces.averages import Pairs, nearest_facets
from mpilbm.outputs.surfaces.facets import Floats
from mpilbm.outputs.surfaces.links import LinkedCells, linked_cells
from mpilbm.parallel.agree import on_root
from mpilbm.solids.shapes.mesh import Mesh
from mpilbm.solver.momentum_exchange import ByCell
from mpilbm.storage.planes import PlaneFile

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case

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
    [units] all values are in SI. See outputs/surfaces/averages.py.
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

    def bodies(self, case: "Case") -> tuple[int, ...]:
        """The named bodies, or all."""
        return tuple(k for k, b in enumerate(case.bodies) if not self.body or b.label in self.body)

    @property
    def splits(self) -> bool:
        """Always."""
        return True

    @property
    def by_cell(self) -> bool:
        """Always."""
        return True

    def problems(self, case: "Case") -> list[str]:
        """Unknown labels and fields, faces of cells that do not exist, and no mesh."""
        found, labels = super().problems(case), [body.label for body in case.bodies]
        allowed = ", ".join(labels) or "none, the case has no [[body]]"
        found += [f"body: found '{label}'; allowed: {allowed}"
                  for label in self.body if label not in labels]  # fmt: skip
        if not labels:
            found.append("there is no [[body]]; add one or remove this output")
        choice = ", ".join(FIELDS)
        found += [f"fields: found '{name}'; allowed: {choice}"
                  for name in self.fields if name not in FIELDS]  # fmt: skip
        if not self.fields:
            found.append(f"fields: found none; allowed: {choice}")
        for number in self.bodies(case):
            label, mesh = labels[number], isinstance(case.bodies[number].shape, Mesh)
            if self.on == "mesh" and not mesh:
                found.append(f"on: body '{label}' is not a mesh; set on = \"cells\", or name the "
                             "bodies with a mesh as `body`")  # fmt: skip
            elif case.lattice.staggered and not (mesh and self.on != "cells"):
                found.append(f"on: body '{label}' would have faces of cells, which the lattice "
                             f"{case.lattice.name} does not have; use a mesh")  # fmt: skip
        return found

    def on_mesh(self, case: "Case", number: int) -> bool:
        """Whether a body has triangles in the file."""
        return self.on != "cells" and isinstance(case.bodies[number].shape, Mesh)

    def disk_bytes(self, case: "Case", times: int) -> int:
        """For twice the area of the box around each body, or of a mask a face of each cell."""
        each = FACET_BYTES + 8 * sum(FIELDS.get(name, 0) for name in self.fields)
        return times * each * sum(_faces(case, number) for number in self.bodies(case))

    def open(self, context: Context) -> "SurfaceWriter":
        """Gathers the cells next to the bodies on rank 0; collective."""
        return SurfaceWriter(self, context)


def _faces(case: "Case", number: int) -> int:
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
        exchanged = context.solver.exchanged
        assert exchanged is not None, "the case needs forces, see Output.bodies"
        self.exchanged = exchanged
        parts = context.comm.gather(linked_cells(self.case, context.slab, exchanged.measured))
        self.of_bodies: list[OfBody] = []
        self.datasets: polydata.Arrays = {}
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
        self.datasets = polydata.topology(corners, units.cell if units else 1.0)
        numbers = [np.full(len(each), of.number) for each, of in
                   zip(corners, self.of_bodies, strict=True)]  # fmt: skip
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
        shifts = [(-n, 0, n) if wraps else (0,) for n, wraps in
                  zip(domain.size, domain.periodic, strict=False)]  # fmt: skip
        images = np.array(list(product(*shifts)), float)
        pairs = Pairs.find(places, cells.area[mine], found, images)
        pairs = pairs if mesh else pairs.smoothed(cells.area[mine])
        nearest = nearest_facets(places, pairs, images)
        return OfBody(number, mine, pairs, nearest, self._boxes(number, pairs, mesh is None))

    def _boxes(self, number: int, pairs: Pairs, in_box: bool) -> Floats:
        """See OfBody; in_box: whether facets are in the box, else they are those of the shape."""
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
        polydata.describe(file, self.case, step, shapes)

    def _fill(self, file: PlaneFile, parts: list[ByCell]) -> None:
        """Compute and write all datasets; on rank 0, in any thread."""
        known = ByCell(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        found = [self._values(of, ByCell(*(each[of.cells] for each in known)))
                 for of in self.of_bodies]  # fmt: skip
        values = {f"CellData/{name}": np.concatenate([each[name] for each in found])
                  for name in dict.fromkeys(self.output.fields)}  # fmt: skip
        for path, each in (self.datasets | values).items():
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
        with np.errstate(invalid="ignore"):
            y_plus = np.sqrt(size / (1 + gauge)) * distance / case.fluids[0].viscosity
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
