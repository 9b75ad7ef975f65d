"""Stress, friction velocity and y+ at walls with a wall model over time, as rows of a CSV file."""

from collections.abc import Callable
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.trees import numeric
from mpilbm.core.formulas.values import CellValue, Given, unramped
from mpilbm.core.registry import register
from mpilbm.core.units import PRESSURE, VELOCITY, Dimension
from mpilbm.outputs import Context, Output
from mpilbm.outputs.core.averages import average, last_half
from mpilbm.outputs.core.tables import TableWriter
from mpilbm.parallel import on_root, together
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries.wall_model import WallModel
from mpilbm.physics.lattices import AXES
from mpilbm.solids import Flags
from mpilbm.solver.fields.point_fields import PointFields, point_bytes, point_roles
from mpilbm.storage.csv_log import Rows

NAME = "wall_stress.csv"
VALUE_BYTES = 26  # of a number in a row
FIRST = 0.5  # height of the first cell
FIELDS = ("rho", "u")
Ints = NDArray[np.int64]
Sums = list[tuple[int, np.ndarray]]  # number of the face, and the sums of one plane of the box


class WallFace(NamedTuple):
    """A face of the box with a wall model, `axis` its normal; `upper`: the end of the axis."""

    name: str
    boundary: WallModel

    @property
    def axis(self) -> int:
        """The number of the axis normal to the wall."""
        return AXES.index(self.name[0])

    def along(self, D: int) -> list[int]:
        """The numbers of the axes along the wall."""
        return [a for a in range(D) if a != self.axis]

    def nodes(self, case: Case, begin: int, end: int, k: int = 1) -> Ints:
        """The k-th cells from the wall in planes begin..end of the box, (n, 3).

        Plane, row and x; sorted.
        """
        size = case.domain.size
        along = [np.arange(n) for n in size]
        place = k - 1 if self.name[1] == "-" else size[self.axis] - k
        along[self.axis] = np.array([place])
        along[-1] = along[-1][(along[-1] >= begin) & (along[-1] < end)]
        mesh = [each.reshape(-1) for each in np.meshgrid(*reversed(along), indexing="ij")]
        rows = [np.zeros_like(mesh[0])] if case.dimensions == 2 else []
        return np.stack([mesh[0], *rows, *mesh[1:]], axis=1)

    def sampled(self, case: Case, slab: Slab, solid: Flags) -> tuple[Ints, Ints]:
        """The fluid cells at the wall and the cells whose velocity the law gets, each (n, 3).

        As in the boundary lists these are the farthest cells up to `sample` without a solid between
        them and the wall. `solid`: the planes of the slab.
        """
        layers = [
            self.nodes(case, slab.begin, slab.end, k) for k in range(1, self.boundary.sample + 1)
        ]
        fluid = [~solid[tuple((each - [slab.begin, 0, 0]).T)].astype(bool) for each in layers]
        count = np.logical_and.accumulate(fluid).sum(axis=0)
        mine = np.flatnonzero(count)
        return layers[0][mine], np.array(layers)[count[mine] - 1, mine]

    def wall_velocity(self, case: Case, nodes: Ints, t: float) -> np.ndarray:
        """The velocity of the wall in front of the nodes at time t, (n, D)."""
        size, D = case.domain.size, case.dimensions
        place = nodes[:, [2, 1, 0] if D == 3 else [2, 0]] + 0.5
        place[:, self.axis] = 0.0 if self.name[1] == "-" else size[self.axis]
        points = dict(zip(AXES, place.T, strict=False))
        found = np.zeros((len(nodes), D))
        for a, given in enumerate(self.boundary.wall_velocity or ()):
            value = CellValue("u", given, D)
            found[:, a] = numeric(value.tree, value.evaluate(size, t) | points)
        return found


def wall_faces(case: Case) -> list[WallFace]:
    """The faces with a wall model, in the order of the case."""
    models = [each for each in case.boundaries if isinstance(each, WallModel)]
    return [WallFace(face, each) for each in models for face in each.where]


@register("outputs", "wall_stress")
class WallStress(Output):
    """Stress and y+ at the faces with a `wall_model`, as rows of `wall_stress.csv`.

    Of each such face, means over its fluid cells of what the law gives for the sampled velocity:
    `stress_<axis>_<face>`, the force of the fluid on the wall per area; `u_tau_<face>`;
    `y_plus_<face>` = u_tau / (2 nu), of the first cell; and the largest, `y_plus_max_<face>`. In
    lattice units; with [units] the time, stresses in Pa and u_tau in m/s follow. summary.json and
    the last lines of a run have the means of u_tau and y_plus over the last half of the rows with
    their standard errors.
    """

    files: ClassVar[tuple[str, ...]] = (NAME,)
    several: ClassVar[bool] = False

    def problems(self, case: Case) -> list[str]:
        """No wall model, or a velocity of the wall that is not known in every cell."""
        faces = wall_faces(case)
        if not faces:
            return [
                "no face has the boundary wall_model; give one, or remove this output; "
                "the output surface has the stress and y+ on bodies"
            ]
        return [
            f"the velocity of '{face.boundary.name}' at {face.name} is a file or a function; "
            "allowed with this output: numbers and formulas"
            for face in faces
            if not _known(face.boundary.wall_velocity)
        ]

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernels of the fields at listed cells."""
        return point_roles(case, FIELDS) if wall_faces(case) else ()

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        columns = len(wall_faces(case)) * (case.dimensions + 2)
        return (times + 1) * VALUE_BYTES * (3 + columns * (2 if case.units else 1))

    def device_bytes(self, case: Case, planes: int) -> int:
        """The lists of cells and their fields."""
        size = [*case.domain.size[:-1], planes]
        cells = sum(prod(size) // size[face.axis] for face in wall_faces(case))
        return point_bytes(case, FIELDS, cells)

    def open(self, context: Context) -> "WallStressWriter":
        """Creates the file; after a restart keeps its rows up to the first step. Collective."""
        return WallStressWriter(context)


def _known(velocity: tuple[Given, ...] | str | None) -> bool:
    """Whether a velocity consists of numbers and formulas."""
    return not isinstance(velocity, str) and all(
        isinstance(unramped(u), int | float | str) for u in velocity or ()
    )


class WallStressWriter(TableWriter):
    """Rank 0 writes the file; each rank adds the cells of its planes in double precision.

    Rank 0 adds the planes in their order: the bits are those of one rank.
    """

    def __init__(self, context: Context):
        super().__init__(context)
        case, slab = context.case, context.slab
        self.faces = wall_faces(case)
        solid = context.solver.diagnostics.context.geometry.solid
        found = [each.sampled(case, slab, solid) for each in self.faces]
        self.nodes, sampled = zip(*found, strict=True)
        listed = np.concatenate(sampled) - [slab.begin, 0, 0]
        self.points = together(
            context.comm, PointFields, context.solver.diagnostics, FIELDS, listed
        )
        ends = np.cumsum([len(each) for each in self.nodes])[:-1]
        self.places = np.split(np.arange(len(listed)), ends)
        cells = context.comm.gather([len(each) for each in self.nodes])
        on_root(context.comm, self._require_fluid, cells)
        self.steps: list[float] = []  # of all rows, on rank 0, and their values
        self.values: list[list[float]] = []
        on_root(context.comm, self._open)

    def _require_fluid(self, cells: list[list[int]]) -> None:
        """CaseError for a face without a fluid cell."""
        for face, count in zip(self.faces, np.sum(cells, axis=0), strict=True):
            if not count:
                raise CaseError(
                    f"the face {face.name} with '{face.boundary.name}' has no fluid cell; "
                    f"remove {face.name} from its where, or move the body that covers it",
                    f"boundary.{self.case.boundaries.index(face.boundary)}.where",
                    self.case.path,
                )

    def columns(self) -> dict[str, tuple[str, Dimension] | None]:
        """The names of the columns, with the SI unit and dimension of those that have one."""
        found: dict[str, tuple[str, Dimension] | None] = {}
        for face in self.faces:
            for a in face.along(self.case.dimensions):
                found[f"stress_{AXES[a]}_{face.name}"] = "Pa", PRESSURE
            found[f"u_tau_{face.name}"] = "m/s", VELOCITY
            found |= dict.fromkeys((f"y_plus_{face.name}", f"y_plus_max_{face.name}"))
        return found

    def _open(self) -> None:
        si = [f"{name} ({unit[0]})" for name, unit in self.columns().items() if unit]
        header = ["step", "time", *self.columns(), *(["time_s", *si] if self.case.units else [])]
        path = self.context.directory / NAME
        self.rows = self.keep(Rows(path, header, self.context.first_step))
        columns = slice(2, 2 + len(self.columns()))
        kept = [row.split(",") for row in self.rows.kept]
        self.steps = [float(row[0]) for row in kept]
        self.values = [[float(v) for v in row[columns]] for row in kept]

    def start(self, step: int) -> Callable[[], list[Sums] | None]:
        """Enqueue the fields of this rank's cells; the result gathers the sums. Collective."""
        self.points.prepare()
        found = self.points.start()
        return lambda: self.comm.gather(self._sums(step, found()))

    def _sums(self, step: int, fields: dict[str, np.ndarray]) -> Sums:
        """Of each plane of each face: cells, stresses, u_tau, and the largest u_tau."""
        found: Sums = []
        for number, (face, nodes, places) in enumerate(
            zip(self.faces, self.nodes, self.places, strict=True)
        ):
            at = {name: fields[name][places].astype(float) for name in FIELDS}
            # the velocity half a step later, as in the boundary lists of the following step
            u = at["u"] - face.wall_velocity(self.case, nodes, step + 0.5)
            along = u[:, face.along(self.case.dimensions)]
            speed = np.sqrt((along**2).sum(axis=1))
            u_tau = face.boundary.u_tau(speed, self.case.fluids[0].viscosity)
            (inverse,) = self.case.fluids[0].collision.velocity([1.0], at["rho"])
            size = u_tau**2 / inverse / np.where(speed > 0, speed, 1)
            columns = np.stack([0 * u_tau + 1, *(size * along.T), u_tau, u_tau], axis=1)
            first = np.flatnonzero(np.diff(nodes[:, 0], prepend=-1))
            for part in np.split(columns, first)[1:]:
                found.append((number, np.append(part[:, :-1].sum(axis=0), part[:, -1].max())))
        return found

    def add_rows(self, step: int, found: list[Sums]) -> None:
        """Add the row of a step from the sums of each rank."""
        values: list[float] = []
        nu = self.case.fluids[0].viscosity
        for number in range(len(self.faces)):
            planes = np.array([sums for part in found for k, sums in part if k == number])
            cells, *sums = np.cumsum(planes[:, :-1], axis=0)[-1]
            *stresses, u_tau = (float(each / cells) for each in sums)
            y_plus = FIRST * u_tau / nu
            values += [*stresses, u_tau, y_plus, float(FIRST * planes[:, -1].max() / nu)]
        self.steps.append(step)
        self.values.append(values)
        row, units = [step, *values], self.case.units
        if units:
            pairs = zip(values, self.columns().values(), strict=True)
            row += [self.time(step), *(units.to_si(v, unit[1]) for v, unit in pairs if unit)]
        self.rows.add(step, row)

    def close(self) -> None:
        """Close the file, and report the means of u_tau and y+."""
        super().close()
        names, half = list(self.columns()), last_half(self.steps)
        rows, steps = self.values[half], self.steps[half]
        for face in (each.name for each in self.faces if rows):
            found = {
                name: average([row[names.index(f"{name}_{face}")] for row in rows], steps)
                for name in ("u_tau", "y_plus")
            }
            records = {name: each.record for name, each in found.items()}
            self.context.results.setdefault("wall_stress", {})[face] = records
            self.context.closing.append(
                f"{face}: u_tau = {found['u_tau']}, y+ of the first cell = {found['y_plus']} "
                f"(mean of the last {len(rows)} rows)"
            )
