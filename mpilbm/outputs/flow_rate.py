"""Flow rates and mean pressures through planes and openings over time, as rows of a CSV file."""

from collections.abc import Callable
from math import nan, prod
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.tables import Label
from mpilbm.core.errors import CaseError
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import Parameters, register
from mpilbm.core.units import PRESSURE, VELOCITY, Dimension
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.core.tables import TableWriter
from mpilbm.outputs.images.part import cell_of
from mpilbm.parallel import on_root, together
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.point_fields import PointFields, point_bytes, point_roles
from mpilbm.storage.csv_log import Rows

VALUE_BYTES = 26  # of a number in a row
BETWEEN = ("pressure_drop", "total_pressure_drop", "loss_coefficient")
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
        if self.rectangle:
            low, high = np.sort(np.array(self.rectangle), axis=0)[..., None]
            return ((x >= low) & (x <= high)).all(axis=0)
        if self.centre and self.radius:
            return ((x - np.array(self.centre)[:, None]) ** 2).sum(axis=0) <= self.radius**2
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
        if self.rectangle and self.centre:
            return ["rectangle: found with a disc; give rectangle, or centre and radius"]
        points = {"rectangle": self.rectangle or (), "centre": (self.centre,)}
        for key, given in points.items():
            wrong = next((len(each) for each in given if each and len(each) != D - 1), None)
            if wrong is not None:
                others = ", ".join(axis for axis in AXES[:D] if axis != self.normal)
                return [f"{key}: found a point of {wrong} coordinates; allowed: {others}"]
        if not len(self.nodes(case, 0, size[-1])):
            return ["contains no centre of a cell; enlarge rectangle or radius"]
        return []


@register("outputs", "flow_rate")
class FlowRate(Scheduled):
    """Flow through planes and openings, and their mean pressures, as `flow_rate_<label>.csv`.

    For each entry of `plane`, of n fluid cells of area 1 with the velocity u_n along its normal:

        volume_flow = sum u_n,  mass_flow = sum rho u_n,  mean_velocity = sum u_n / n
        pressure = sum p / n,   p = cs2 (rho - rho_0), static, relative to that at rho_0 = 1
        total_pressure = sum (p + rho u.u / 2) u_n / sum u_n
        mean_<scalar> = sum phi u_n / sum u_n

    The static pressure is thus a mean over the area; total pressure and scalars are weighted by the
    volume flow, so that total_pressure volume_flow is the mechanical power through the plane. The
    names of the columns end in the label of the plane. With `between` = [a, b] follow

        pressure_drop = p_a - p_b,  total_pressure_drop = pt_a - pt_b
        loss_coefficient = total_pressure_drop / (rho_0 U^2 / 2),   U = mean_velocity of a

    In lattice units; with [units] the time and the same quantities in SI follow, in 2D per metre. A
    number that is not defined, such as the total pressure of a plane without flow, is nan.
    `run.steady.of` may name it: it compares total_pressure_drop or, without `between`, the
    volume flow of the first plane.
    """

    plane: tuple[Opening, ...] = Field(
        min_length=1,
        description="planes and openings",
        examples=[
            [
                {"label": "in", "normal": "x", "position": 0.5},
                {"label": "out", "normal": "x", "position": 4.5},
            ]
        ],
    )
    between: tuple[Label, Label] | None = Field(
        None,
        description="labels of two planes, upstream first: their difference of pressure",
        examples=[["in", "out"]],
    )

    files: ClassVar[tuple[str, ...]] = ("flow_rate_<label>.csv",)
    watchable: ClassVar[bool] = True

    def problems(self, case: Case) -> list[str]:
        """Those of the base class and of the planes; labels; several fluids."""
        found = super().problems(case)
        labels = [each.label for each in self.plane]
        for each in self.plane:
            found += [f"plane '{each.label}': {problem}" for problem in each.problems(case)]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        found += [f"plane: two have the label '{label}'; choose another one" for label in twice]
        for label in self.between or ():
            if label not in labels:
                found.append(f"between: found '{label}'; allowed: {', '.join(labels)}")
        if not case.single_fluid:
            found.append("the pressure of coupled fluids is another one; remove this output")
        return found

    def fields(self, case: Case) -> tuple[str, ...]:
        """The fields that it needs."""
        return ("rho", "u", "pressure", *case.labels)

    def kernels(self, case: Case) -> tuple[str, ...]:
        """Those of the fields at listed cells."""
        return point_roles(case, self.fields(case)) if case.single_fluid else ()

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        columns = len(self.plane) * (5 + len(case.labels)) + len(BETWEEN)
        return (times + 1) * VALUE_BYTES * (3 + columns * (2 if case.units else 1))

    def device_bytes(self, case: Case, planes: int) -> int:
        """The lists of cells and their fields."""
        cells = sum(each.most_cells(case, planes) for each in self.plane)
        return point_bytes(case, self.fields(case), cells)

    def watched(self, context: Context) -> Callable[[], float]:
        """The drop of total pressure, or the volume flow of the first plane."""
        flow = Openings(self, context)
        name = BETWEEN[1] if self.between else f"volume_flow_{self.plane[0].label}"
        return lambda: flow.measured(flow.start()()).get(name, nan)

    def open(self, context: Context) -> "FlowRateWriter":
        """Creates the file; after a restart keeps its rows up to the first step. Collective."""
        return FlowRateWriter(self, context)


class Openings:
    """The sums over the fluid cells of each opening, and what follows from them.

    Each plane of the box (along z, in 2D along y) belongs to one rank, which adds its cells in
    double precision; rank 0 adds the planes in their order. The bits are those of one rank.
    """

    def __init__(self, output: FlowRate, context: Context):
        case, slab = context.case, context.slab
        self.output, self.case, self.comm = output, case, context.comm
        self.names = output.fields(case)
        self.nodes = [each.nodes(case, slab.begin, slab.end) for each in output.plane]
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
        for opening, count in zip(self.output.plane, np.sum(cells, axis=0), strict=True):
            if not count:
                raise CaseError(
                    f"plane '{opening.label}' has no fluid cell; move it out of the solid",
                    f"output.{self.case.outputs.index(self.output)}.plane",
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
            zip(self.output.plane, self.nodes, self.places, strict=True)
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

    def measured(self, parts: list[Sums] | None) -> dict[str, float]:
        """The columns of a row by name, on rank 0; empty elsewhere."""
        if parts is None:
            return {}
        found: dict[str, float] = {}
        for number, opening in enumerate(self.output.plane):
            planes = [sums for part in parts for k, sums in part if k == number]
            found |= self._of_opening(opening.label, np.cumsum(planes, axis=0)[-1].tolist())
        return found | self._difference(found)

    def _of_opening(self, label: str, sums: list[float]) -> dict[str, float]:
        cells, volume, mass, p, power, *scalars = sums
        of = {"volume_flow": volume, "mass_flow": mass, "mean_velocity": volume / cells}
        of |= {"pressure": p / cells, "total_pressure": ratio(power, volume)}
        for name, flux in zip(self.case.labels, scalars, strict=True):
            of[f"mean_{name}"] = ratio(flux, volume)
        return {f"{name}_{label}": value for name, value in of.items()}

    def _difference(self, found: dict[str, float]) -> dict[str, float]:
        """What follows from two of the openings, if `between` names them."""
        if not self.output.between:
            return {}
        a, b = self.output.between
        static, total = (
            found[f"{name}_{a}"] - found[f"{name}_{b}"] for name in ("pressure", "total_pressure")
        )
        loss = ratio(total, found[f"mean_velocity_{a}"] ** 2 / 2)
        return dict(zip(BETWEEN, (static, total, loss), strict=True))


def ratio(a: float, b: float) -> float:
    """a / b; nan for b = 0."""
    return a / b if b else nan


class FlowRateWriter(TableWriter):
    """Rank 0 writes the file; each rank adds the cells of its planes."""

    def __init__(self, output: FlowRate, context: Context):
        super().__init__(context)
        self.output, self.flow = output, Openings(output, context)
        on_root(context.comm, self._open)

    def in_si(self) -> dict[str, tuple[str, Dimension]]:
        """SI unit and dimension of the columns that have one."""
        flat = 3 - self.case.dimensions
        units: dict[str, tuple[str, Dimension]] = {
            "volume_flow": (("m^3/s", "m^2/s")[flat], (3 - flat, -1, 0)),
            "mass_flow": (("kg/s", "kg/(m s)")[flat], (-flat, -1, 1)),
            "mean_velocity": ("m/s", VELOCITY),
            "pressure": ("Pa", PRESSURE),
            "total_pressure": ("Pa", PRESSURE),
        }
        found = {
            f"{name}_{plane.label}": unit
            for plane in self.output.plane
            for name, unit in units.items()
        }
        return found | (
            dict.fromkeys(BETWEEN[:2], units["pressure"]) if self.output.between else {}
        )

    def names(self) -> list[str]:
        """Names of the columns in lattice units."""
        of = ("volume_flow", "mass_flow", "mean_velocity", "pressure", "total_pressure")
        each = [*of, *(f"mean_{label}" for label in self.case.labels)]
        names = [f"{name}_{plane.label}" for plane in self.output.plane for name in each]
        return [*names, *(BETWEEN if self.output.between else ())]

    def _open(self) -> None:
        si = [f"{name} ({unit})" for name, (unit, _) in self.in_si().items()]
        header = ["step", "time", *self.names(), *(["time_s", *si] if self.case.units else [])]
        path = self.context.directory / f"flow_rate_{self.output.label_in(self.case)}.csv"
        self.rows = self.keep(Rows(path, header, self.context.first_step))

    def start(self, step: int) -> Callable[[], list[Sums] | None]:
        """Enqueue the fields of this rank's cells."""
        return self.flow.start()

    def add_rows(self, step: int, found: list[Sums]) -> None:
        """Add the row of a step from the sums of each rank."""
        values, units = self.flow.measured(found), self.case.units
        row = [step, *(values[name] for name in self.names())]
        if units:
            si = ((values[name], of) for name, (_, of) in self.in_si().items())
            row += [self.time(step), *(units.to_si(value, of) for value, of in si)]
        self.rows.add(step, row)
