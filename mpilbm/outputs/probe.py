"""Fields at given points over time, as one table of a run."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.errors import CaseError
from mpilbm.core.files.input_arrays import load_numbers
from mpilbm.core.files.toml_text import shown as shown_value
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.core.units import TIME, counted, field_unit
from mpilbm.outputs import Context
from mpilbm.outputs.core.fields import COMPONENTS, field_problems
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.images.description import in_si
from mpilbm.outputs.points.positions import Interpolation, shown
from mpilbm.outputs.points.series import Series
from mpilbm.parallel.agree import on_root, together
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.point_fields import PointFields, point_bytes, point_roles
from mpilbm.storage.csv_log import Rows

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case

MOST_POINTS = 100_000  # more are a plane or a box
MOST_COLUMNS = 1000  # of a CSV file
MOST_LISTED = 3000  # coordinates in the definition of the table
HEAD_BYTES, VALUE_BYTES, CSV_BYTES = 1 << 16, 8, 26
METRE = (1, 0, 0)


@register("outputs", "probe")
class Probe(Scheduled):
    """Fields at points over time, as `probe_<label>.h5` or `.csv`, readable during the run.

    With `nearest` the values of the cell that contains the point, with `linear` between the nearest
    2^D cell centres x_k around the point x:

        value = sum_k w_k value_k / sum_k w_k,   w_k = prod_a (1 - |x_a - x_ka|)  (0 in solids)

    Cells beyond a periodic face are those of the opposite face; beyond a pressure_jump there are
    none. The HDF5 file has `step` (rows,),
    `time` (rows,), `positions` (points, D), and each field (rows, points) or (rows, points,
    components); rows that are not written yet have the step -1. With [units] positions, times and
    fields are in SI, else in lattice units. In a solid rho = 1 and the other fields are 0.
    """

    points: Annotated[tuple[tuple[float, ...], ...] | None, LENGTH] = Field(
        None, description="positions; the centre of the first cell is 0.5", examples=[[[10, 5, 5]]]
    )
    file: str | None = Field(
        None,
        description="CSV file of positions in cells, a row each, in place of points",
        examples=["points.csv"],
    )
    fields: tuple[str, ...] = Field(
        ("rho", "u"),
        description="rho, u, vorticity, q_criterion, and fields of the coupling",
        examples=[["u"]],
    )
    interpolation: Literal["nearest", "linear"] = Field(
        "linear", description="values of the cell, or between the centres of fluid cells around"
    )
    format: Literal["h5", "csv"] = Field("h5", description="format of the table")

    files: ClassVar[tuple[str, ...]] = ("probe_<label>.h5", "probe_<label>.csv")
    free: ClassVar[tuple[str, ...]] = ("format",)

    def positions(self, case: "Case") -> NDArray[np.float64]:
        """The points, (n, D) in cells; ValueError if the file cannot be read."""
        if self.file is None:
            return np.array(self.points or (), float)
        try:
            return load_numbers(case.directory, self.file)
        except ValueError as error:
            raise ValueError(f"'{self.file}' {error}") from None

    def definition(self, case: "Case") -> dict[str, Any]:
        """The positions in place of the file, or their digest if there are many of them."""
        points: Any = (positions := self.positions(case)).tolist()
        if positions.size > MOST_LISTED:
            points = blake2b(positions.tobytes(), digest_size=16).hexdigest()
        keys = super().definition(case)
        keys.pop("file", None)
        return keys | {"points": points}

    def problems(self, case: "Case") -> list[str]:
        """Unknown fields, and points that are missing, outside the box, or too many."""
        found = super().problems(case) + field_problems(self.fields, case)
        if (self.points is None) == (self.file is None):
            return [*found, "points: give either points or file, with the positions"]
        key = "points" if self.file is None else "file"
        lengths = {len(point) for point in self.points or ()} - {case.dimensions}
        if lengths:
            return [*found, f"{key}: found a point of {counted(lengths.pop(), 'coordinate')}; "
                            f"allowed: {case.dimensions}"]  # fmt: skip
        try:
            positions = self.positions(case)
        except ValueError as error:
            return [*found, f"{key}: {error}"]
        return found + [f"{key}: {text}" for text in self._point_problems(positions, case)]

    def _point_problems(self, positions: NDArray[np.float64], case: "Case") -> list[str]:
        D, size = case.dimensions, np.array(case.domain.size)
        if not positions.size:
            return ["found no point; give at least one"]
        if positions.ndim != 2 or positions.shape[1] != D:
            return [f"found an array of shape {positions.shape}; allowed: rows of {D} coordinates"]
        outside = ~((positions >= 0) & (positions <= size)).all(axis=1)  # also not a number
        if outside.any():
            number = int(outside.argmax())
            return [f"found {shown(positions[number])} (point {number}), outside the box; allowed: "
                    f"0 to {shown(size)} cells"]  # fmt: skip
        if len(positions) > MOST_POINTS:
            return [f"found {len(positions)} points; allowed: {MOST_POINTS}; use a snapshot"]
        columns = len(positions) * self._values(case)
        if self.format == "csv" and columns > MOST_COLUMNS:
            return [f"found {len(positions)} points, which are {columns} columns of a CSV file; "
                    f"allowed: {MOST_COLUMNS}; use format = {shown_value('h5')}"]  # fmt: skip
        return []

    def _values(self, case: "Case") -> int:
        """Numbers of a point in a row."""
        D = case.dimensions
        flat = {"u": D, "vorticity": 1 if D == 2 else 3}
        return sum(flat.get(name, COMPONENTS.get(name, 1)) for name in self.fields)

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """Those of fields at listed cells."""
        return point_roles(case, self.fields)

    def _count(self, case: "Case") -> int:
        return len(self.positions(case))

    def disk_bytes(self, case: "Case", times: int) -> int:
        """A row each time."""
        values = self._count(case) * self._values(case) + 2
        each = CSV_BYTES if self.format == "csv" else VALUE_BYTES
        return HEAD_BYTES + (times + 1) * values * each + 24 * values

    def device_bytes(self, case: "Case", planes: int) -> int:
        """The lists of cells and their values."""
        around = 2**case.dimensions if self.interpolation == "linear" else 1
        return point_bytes(case, self.fields, around * self._count(case))

    def open(self, context: Context) -> "ProbeWriter":
        """Creates the file; after a restart keeps its rows up to the first step. Collective."""
        return ProbeWriter(self, context)


class ProbeWriter:
    """Rank 0 interpolates and writes the rows; each rank computes the nodes of its planes."""

    def __init__(self, output: Probe, context: Context):
        self.output, self.context, self.case = output, context, context.case
        known = context.solver.field_names
        for name in output.fields:
            if name not in known:
                problem = f"'{name}' is not a field of this flow; choose from {', '.join(known)}"
                raise CaseError(problem, "output.fields", context.case.path)
        self.names = tuple(dict.fromkeys(output.fields))
        self.positions = output.positions(self.case)
        linear, slab = output.interpolation == "linear", context.slab
        self.interpolation = Interpolation.create(self.case, self.positions, linear)
        nodes = self.interpolation.nodes
        mine = nodes[(nodes[:, 0] >= slab.begin) & (nodes[:, 0] < slab.end)] - [slab.begin, 0, 0]
        diagnostics = context.solver.diagnostics
        self.points = together(context.comm, PointFields, diagnostics, self.names, mine)
        parts = context.comm.gather(self.points.solid)
        self.table: Series | Rows | None = None  # on rank 0
        text = on_root(context.comm, self._open, parts)
        if text:
            context.say(text)

    def _open(self, solid: list[NDArray[np.bool_]]) -> str:
        """Create the table; returns a warning if points are in solids, or ""."""
        self.table = self._csv() if self.output.format == "csv" else self._series()
        self.context.rows.append(self.table)
        mask = np.concatenate(solid)
        inside = np.flatnonzero(self.interpolation.inside(mask))
        self.interpolation = self.interpolation.of_fluid(mask)
        if not inside.size:
            return ""
        return (
            f"warning: probe {self.output.label_in(self.case)}: {inside.size} of "
            f"{counted(len(self.positions), 'point')} in solids, first "
            f"{shown(self.positions[inside[0]])}; linear interpolation uses the fluid cells around"
        )

    @property
    def path(self) -> Any:
        """The file."""
        name = f"probe_{self.output.label_in(self.case)}.{self.output.format}"
        return self.context.directory / name

    def _shape(self, name: str) -> tuple[int, ...]:
        return (len(self.positions), *self.context.solver.components(name))

    def _series(self) -> Series:
        fields = {name: self._shape(name) for name in self.names}
        first, last = self.context.first_step, self.case.run.steps
        capacity = self.output.times(first, max(first, last))
        return Series(self.path, fields, first, capacity, self._describe)

    def _describe(self, file: "h5py.File") -> None:
        """Attributes and the positions."""
        units = self.case.units
        file["positions"] = self.positions * (units.cell if units else 1)
        file["positions"].attrs["unit"] = "m" if units else "cells"
        file["time"].attrs["unit"] = "s" if units else "steps"
        for name in self.names:
            text = field_unit(units, name)[1]
            if text:
                file[name].attrs["unit"] = text
        file.attrs["case"], file.attrs["interpolation"] = self.case.toml, self.output.interpolation
        file.attrs["units"] = "SI" if units else "lattice"
        for key, value in in_si(self.case, 0).items():
            if key != "time (s)":
                file.attrs[key] = value

    def _csv(self) -> Rows:
        header = ["step", "time (s)" if self.case.units else "time (steps)"]
        for name in self.names:
            components = self.context.solver.components(name)
            text = field_unit(self.case.units, name)[1]
            unit = f" ({text})" if text else ""
            ends = [f"_{axis}" for axis in AXES[: components[0]]] if components else [""]
            header += [f"{name}{e}_{k}{unit}" for k in range(len(self.positions)) for e in ends]
        return Rows(self.path, header, self.context.first_step)

    def write(self, step: int) -> None:
        """Enqueue the fields of this step; the row is written when they are known. Collective."""
        self.points.prepare()
        found = self.points.start()

        def complete() -> None:
            parts = self.context.comm.gather(found())
            on_root(self.context.comm, self._write, step, parts)

        self.context.samples.add(complete)

    def _write(self, step: int, parts: list[Mapping[str, np.ndarray]]) -> None:
        units, assembled = self.case.units, dict[str, NDArray[np.float64]]()
        for name in self.names:
            at_nodes = np.concatenate([part[name] for part in parts])
            assembled[name] = self.interpolation.values(at_nodes) * field_unit(units, name)[0]
        time = units.to_si(step, TIME) if units else float(step)
        if isinstance(self.table, Series):
            self.table.add(step, {"time": time, **assembled})
        elif self.table is not None:
            values = [value.reshape(-1) for value in assembled.values()]
            self.table.add(step, [time, *np.concatenate(values).tolist()])

    def close(self) -> None:
        """Close the file."""
        if self.table is not None:
            self.table.close()
            self.table = None
