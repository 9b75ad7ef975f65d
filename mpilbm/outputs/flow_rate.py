"""Flow rates and mean pressures through planes and openings over time, as rows of a CSV file."""

from collections import Counter
from collections.abc import Callable
from math import nan
from typing import ClassVar

from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.tables import Label
from mpilbm.core.registry import register
from mpilbm.core.units import PRESSURE, VELOCITY, Dimension
from mpilbm.outputs import Context, Watched
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.core.tables import TableWriter
from mpilbm.outputs.openings import Opening, Openings, Sums
from mpilbm.parallel import on_root
from mpilbm.solver.fields.point_fields import point_bytes, point_roles
from mpilbm.storage.csv_log import Rows

VALUE_BYTES = 26  # of a number in a row
DIFFERENCES = ("pressure_drop", "total_pressure_drop", "loss_coefficient")
OF_PLANE = ("volume_flow", "mass_flow", "mean_velocity", "pressure", "total_pressure")


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
        """Also those of the planes, of labels and of several fluids."""
        found = super().problems(case)
        labels = [each.label for each in self.plane]
        for each in self.plane:
            found += [f"plane '{each.label}': {problem}" for problem in each.problems(case)]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        found += [f"plane: two have the label '{label}'; choose another one" for label in twice]
        if not twice:
            names = Counter(self.columns(case))
            found += [
                f"plane: two columns have the name '{name}', because of labels of planes and "
                "scalars; choose another label"
                for name, count in names.items()
                if count > 1
            ]
        for label in self.between or ():
            if label not in labels:
                found.append(f"between: found '{label}'; allowed: {', '.join(labels)}")
        if self.between and self.between[0] == self.between[1]:
            found.append(f"between: found '{self.between[0]}' twice; allowed: two different planes")
        if not case.single_fluid:
            found.append("the pressure of coupled fluids is another one; remove this output")
        return found

    def fields(self, case: Case) -> tuple[str, ...]:
        """The fields that it needs."""
        return ("rho", "u", "pressure", *case.labels)

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernels of the fields at listed cells."""
        return point_roles(case, self.fields(case)) if case.single_fluid else ()

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        columns = len(self.columns(case))
        return (times + 1) * VALUE_BYTES * (3 + columns * (2 if case.units else 1))

    def device_bytes(self, case: Case, planes: int) -> int:
        """The lists of cells and their fields."""
        cells = sum(each.most_cells(case, planes) for each in self.plane)
        return point_bytes(case, self.fields(case), cells)

    def watched(self, context: Context) -> Watched:
        """The drop of total pressure, or the volume flow of the first plane."""
        flow = self.sums(context)
        name = DIFFERENCES[1] if self.between else f"volume_flow_{self.plane[0].label}"

        def number() -> list[float]:
            parts = flow.start()()
            return [] if parts is None else [self.measured(context.case, flow.totals(parts))[name]]

        return Watched((name,), number)

    def sums(self, context: Context) -> Openings:
        """The sums over the planes; CaseError if one has no fluid cell. Collective."""
        case = context.case
        where = f"output.{case.outputs.index(self)}.plane"
        return Openings(self.plane, self.fields(case), context, where)

    def columns(self, case: Case) -> list[str]:
        """Names of the columns in lattice units."""
        each = [*OF_PLANE, *(f"mean_{label}" for label in case.labels)]
        names = [f"{name}_{plane.label}" for plane in self.plane for name in each]
        return [*names, *(DIFFERENCES if self.between else ())]

    def measured(self, case: Case, totals: list[list[float]]) -> dict[str, float]:
        """The numbers of a row by name, from the sums over the planes."""
        values: list[float] = []
        for cells, volume, mass, p, power, *scalars in totals:
            values += [volume, mass, volume / cells, p / cells, ratio(power, volume)]
            values += [ratio(flux, volume) for flux in scalars]
        found = dict(zip(self.columns(case), values, strict=False))
        if self.between:
            a, b = self.between
            pairs = ((found[f"{name}_{a}"], found[f"{name}_{b}"]) for name in OF_PLANE[3:])
            static, total = (upstream - downstream for upstream, downstream in pairs)
            loss = ratio(total, found[f"mean_velocity_{a}"] ** 2 / 2)
            found |= zip(DIFFERENCES, (static, total, loss), strict=True)
        return found

    def open(self, context: Context) -> "FlowRateWriter":
        """Creates the file; after a restart keeps its rows up to the first step. Collective."""
        return FlowRateWriter(self, context)


def ratio(a: float, b: float) -> float:
    """a / b; nan for b = 0."""
    return a / b if b else nan


class FlowRateWriter(TableWriter):
    """Rank 0 writes the file; each rank adds the cells of its planes."""

    def __init__(self, output: FlowRate, context: Context):
        super().__init__(context)
        self.output, self.flow = output, output.sums(context)
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
            dict.fromkeys(DIFFERENCES[:2], units["pressure"]) if self.output.between else {}
        )

    def _open(self) -> None:
        si = [f"{name} ({unit})" for name, (unit, _) in self.in_si().items()]
        header = [
            "step",
            "time",
            *self.output.columns(self.case),
            *(["time_s", *si] if self.case.units else []),
        ]
        path = self.context.directory / f"flow_rate_{self.output.label_in(self.case)}.csv"
        self.rows = self.keep(Rows(path, header, self.context.first_step))

    def start(self, step: int) -> Callable[[], list[Sums] | None]:
        """Enqueue the fields of this rank's cells."""
        return self.flow.start()

    def add_rows(self, step: int, found: list[Sums]) -> None:
        """Add the row of a step from the sums of each rank."""
        values = self.output.measured(self.case, self.flow.totals(found))
        row, units = [step, *values.values()], self.case.units
        if units:
            si = ((values[name], of) for name, (_, of) in self.in_si().items())
            row += [self.time(step), *(units.to_si(value, of) for value, of in si)]
        self.rows.add(step, row)
