"""Fields at given points over time, as one table of a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.errors import CaseError
from mpilbm.core.files.input_arrays import load_numbers
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.core.units import counted, field_unit
from mpilbm.model.findings import WARNING, Finding
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.core.tables import Series, TableWriter
from mpilbm.outputs.images import COMPONENTS, field_problems
from mpilbm.parallel import on_root, together
from mpilbm.physics.lattices import AXES
from mpilbm.physics.motions import moving
from mpilbm.solids.moving_bodies import FIELDS_OF_BODIES
from mpilbm.solver.fields.point_fields import PointFields, point_bytes, point_roles
from mpilbm.storage.csv_log import Rows

if TYPE_CHECKING:
    import h5py


MOST_POINTS = 100_000  # more are a plane or a box
MOST_COLUMNS = 1000  # of a CSV file
MOST_LISTED = 3000  # coordinates in the definition of the table
HEAD_BYTES, VALUE_BYTES, CSV_BYTES = 1 << 16, 8, 26
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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
        description="rho, u, pressure, vorticity, q_criterion, scalars, and fields of the "
        "coupling or of moving bodies",
        examples=[["u"]],
    )
    interpolation: Literal["nearest", "linear"] = Field(
        "linear", description="values of the cell, or between the centres of fluid cells around"
    )
    format: Literal["h5", "csv"] = Field("h5", description="format of the table")

    files: ClassVar[tuple[str, ...]] = ("probe_<label>.h5", "probe_<label>.csv")
    free: ClassVar[tuple[str, ...]] = ("format",)

    def positions(self, case: Case) -> NDArray[np.float64]:
        """The points, (n, D) in cells; ValueError if the file cannot be read."""
        if self.file is None:
            return np.array(self.points or (), float)
        try:
            return load_numbers(case.directory, self.file)
        except ValueError as error:
            raise ValueError(f"'{self.file}' {error}") from None

    def definition(self, case: Case) -> dict[str, Any]:
        """The positions in place of the file, or their digest if there are many of them."""
        points: Any = (positions := self.positions(case)).tolist()
        if positions.size > MOST_LISTED:
            points = blake2b(positions.tobytes(), digest_size=16).hexdigest()
        keys = super().definition(case)
        keys.pop("file", None)
        return keys | {"points": points}

    def problems(self, case: Case) -> list[str]:
        """Unknown fields, and points that are missing, outside the box, or too many."""
        found = super().problems(case) + field_problems(self.fields, case)
        share, number = FIELDS_OF_BODIES
        if self.interpolation == "linear" and number in self.fields and moving(case):
            hint = f"use '{share}', or interpolation = 'nearest'"
            found.append(f"fields: '{number}' has no values between cells; {hint}")
        if (self.points is None) == (self.file is None):
            return [*found, "points: give either points or file, with the positions"]
        key = "points" if self.file is None else "file"
        lengths = {len(point) for point in self.points or ()} - {case.dimensions}
        if lengths:
            point = f"a point of {counted(lengths.pop(), 'coordinate')}"
            return [*found, f"{key}: found {point}; allowed: {case.dimensions}"]
        try:
            positions = self.positions(case)
        except ValueError as error:
            return [*found, f"{key}: {error}"]
        return found + [f"{key}: {text}" for text in self._point_problems(positions, case)]

    def _point_problems(self, positions: NDArray[np.float64], case: Case) -> list[str]:
        D, size = case.dimensions, np.array(case.domain.size)
        if not positions.size:
            return ["found no point; give at least one"]
        if positions.ndim != 2 or positions.shape[1] != D:
            return [f"found an array of shape {positions.shape}; allowed: rows of {D} coordinates"]
        outside = ~((positions >= 0) & (positions <= size)).all(axis=1)  # also not a number
        if outside.any():
            number = int(outside.argmax())
            point = f"{shown(positions[number])} (point {number})"
            return [f"found {point}, outside the box; allowed: 0 to {shown(size)} cells"]
        if len(positions) > MOST_POINTS:
            return [f"found {len(positions)} points; allowed: {MOST_POINTS}; use a snapshot"]
        columns = len(positions) * self._values(case)
        if self.format == "csv" and columns > MOST_COLUMNS:
            points = f"{len(positions)} points, which are {columns} columns of a CSV file"
            return [f'found {points}; allowed: {MOST_COLUMNS}; use format = "h5"']
        return []

    def warnings(self, case: Case) -> list[Finding]:
        """Also: points in a sponge, where the viscosity is not that of the fluid."""
        found, positions = super().warnings(case), self.positions(case)
        for k, sponge in enumerate(case.sponge):
            inside = np.flatnonzero(sponge.contains(positions, case.domain.size))
            if inside.size:
                point = f"{shown(positions[inside[0]])} (point {inside[0]})"
                text = (
                    f"{'points' if self.file is None else 'file'}: {point} lies in sponge.{k}, "
                    "where the viscosity is not that of the fluid; move it, or make the sponge "
                    "thinner"
                )
                found.append(Finding(WARNING, "", text))
        return found

    def _values(self, case: Case) -> int:
        """Numbers of a point in a row."""
        D = case.dimensions
        flat = {"u": D, "vorticity": 1 if D == 2 else 3}
        return sum(flat.get(name, COMPONENTS.get(name, 1)) for name in self.fields)

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernels of fields at listed cells."""
        return point_roles(case, self.fields)

    def _count(self, case: Case) -> int:
        return len(self.positions(case))

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        values = self._count(case) * self._values(case) + 2
        each = CSV_BYTES if self.format == "csv" else VALUE_BYTES
        return HEAD_BYTES + (times + 1) * values * each + 24 * values

    def device_bytes(self, case: Case, planes: int) -> int:
        """The lists of cells and their values."""
        around = 2**case.dimensions if self.interpolation == "linear" else 1
        return point_bytes(case, self.fields, around * self._count(case))

    def open(self, context: Context) -> "ProbeWriter":
        """Creates the file; after a restart keeps its rows up to the first step. Collective."""
        return ProbeWriter(self, context)


class ProbeWriter(TableWriter):
    """Rank 0 interpolates and writes the rows; each rank computes the nodes of its planes."""

    def __init__(self, output: Probe, context: Context):
        super().__init__(context)
        self.output, self.label = output, output.label_in(self.case)
        known = context.solver.field_names
        for name in output.fields:
            if name not in known:
                problem = f"'{name}' is not a field of this flow; choose from {', '.join(known)}"
                raise CaseError(problem, "output.fields", self.case.path)
        self.names = tuple(dict.fromkeys(output.fields))
        self.units = {name: field_unit(self.case.units, name) for name in self.names}
        self.positions = output.positions(self.case)
        linear, slab = output.interpolation == "linear", context.slab
        self.interpolation = Interpolation.create(self.case, self.positions, linear)
        nodes = self.interpolation.nodes
        mine = nodes[(nodes[:, 0] >= slab.begin) & (nodes[:, 0] < slab.end)] - [slab.begin, 0, 0]
        diagnostics = context.solver.diagnostics
        self.points = together(context.comm, PointFields, diagnostics, self.names, mine)
        text = on_root(context.comm, self._open, context.comm.gather(self.points.solid))
        if text:
            context.say(text)

    def _open(self, solid: list[NDArray[np.bool_]]) -> str:
        """Create the table; returns a warning if points are in solids, or ""."""
        path = self.context.directory / f"probe_{self.label}.{self.output.format}"
        first, count = self.context.first_step, len(self.positions)
        shapes = {name: (count, *self.context.solver.components(name)) for name in self.names}
        if self.output.format == "csv":
            self.keep(Rows(path, self._header(), first))
        else:
            rows = self.output.times(first, max(first, self.case.run.steps))
            self.keep(Series(path, shapes, first, rows, self._describe))
        mask = np.concatenate(solid)
        inside = np.flatnonzero(self.interpolation.inside(mask))
        self.interpolation = self.interpolation.of_fluid(mask)
        if not inside.size:
            return ""
        found = f"{inside.size} of {counted(count, 'point')} in solids, first "
        found += shown(self.positions[inside[0]])
        uses = "linear interpolation uses the fluid cells around"
        return f"warning: probe {self.label}: {found}; {uses}"

    def _describe(self, file: "h5py.File") -> None:
        """Attributes and the positions."""
        units = self.case.units
        file["positions"] = self.positions * (units.cell if units else 1)
        file["positions"].attrs["unit"] = "m" if units else "cells"
        for name, (_, text) in self.units.items():
            if text:
                file[name].attrs["unit"] = text
        file.attrs["interpolation"] = self.output.interpolation
        self.describe_table(file)

    def _header(self) -> list[str]:
        """The columns of the CSV file."""
        header = ["step", "time (s)" if self.case.units else "time (steps)"]
        for name, (_, text) in self.units.items():
            components = self.context.solver.components(name)
            unit = f" ({text})" if text else ""
            ends = [f"_{axis}" for axis in AXES[: components[0]]] if components else [""]
            header += [f"{name}{e}_{k}{unit}" for k in range(len(self.positions)) for e in ends]
        return header

    def start(self, step: int) -> Callable[[], list[Mapping[str, np.ndarray]] | None]:
        """Enqueue the fields at the nodes of this rank."""
        self.points.prepare()
        found = self.points.start()
        return lambda: self.comm.gather(found())

    def add_rows(self, step: int, found: list[Mapping[str, np.ndarray]]) -> None:
        """Add the row of a step from the values at the nodes of each rank."""
        values, (table,) = dict[str, Floats](), self.open_tables
        for name, (unit, _) in self.units.items():
            at_nodes = np.concatenate([part[name] for part in found])
            values[name] = self.interpolation.values(at_nodes) * unit
        if isinstance(table, Series):
            table.add(step, {"time": self.time(step), **values})
        else:
            flat = np.concatenate([value.reshape(-1) for value in values.values()])
            table.add(step, [self.time(step), *flat.tolist()])


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Values at n positions from those at nodes of the box.

        value(p) = sum_k weight[p, k] value(node[p, k]),   sum_k weight[p, k] = 1

    nodes    int (m, 3): plane, row and x of each node that is used, once, in ascending order
    at       int (n, c): for each position the numbers of its nodes
    weights  float64 (n, c)
    """

    nodes: Ints
    at: Ints
    weights: Floats

    @classmethod
    def create(cls, case: Case, positions: Floats, linear: bool) -> "Interpolation":
        """The cells that contain the positions, or trilinearly the nearest 2^D cell centres.

        Positions (n, D) in cells; the centres of cells are at 0.5, 1.5, … Linear interpolation
        wraps around at periodic faces; cells beyond a wall have the weight 0, and those beyond the
        faces of a pressure_jump, where the density differs.
        """
        size, wraps = np.array(case.domain.size), np.array(case.domain.periodic)
        jumps = [face[0] for b in case.boundaries if b.joins_faces for face in b.where]
        wraps &= ~np.isin([*"xyz"[: len(size)]], jumps)
        D = len(size)
        shifted = positions - 0.5 if linear else positions
        base = np.floor(shifted).astype(np.int64)
        part = shifted - base
        nodes, weights = [], []
        for step in product((0, 1), repeat=D) if linear else [(0,) * D]:
            node = base + np.array(step)
            beyond = (node < 0) | (node >= size)
            node = np.where(wraps, node % size, np.clip(node, 0, size - 1))
            weight = np.prod(np.where(step, part, 1 - part), axis=1) if linear else 1.0
            weights.append(weight * ~(beyond & ~wraps & linear).any(axis=1))
            nodes.append(node)
        return cls(*_once(case, np.stack(nodes, axis=1)), _normalised(np.stack(weights, axis=1)))

    def of_fluid(self, solid: NDArray[np.bool_]) -> "Interpolation":
        """The interpolation over fluid nodes only; `solid` (m,).

        A position with solid nodes only keeps its weights.
        """
        weights = self.weights * ~solid[self.at]
        none = weights.sum(axis=1) == 0
        weights[none] = self.weights[none]
        return Interpolation(self.nodes, self.at, _normalised(weights))

    def inside(self, solid: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the nearest node of each position is solid, (n,)."""
        nearest = self.weights.argmax(axis=1)
        return solid[self.at[np.arange(len(self.at)), nearest]]

    def values(self, at_nodes: NDArray) -> Floats:
        """float64 (n, …) from the values (m, …) at the nodes."""
        at_nodes = at_nodes.astype(np.float64)
        shape = (*self.weights.shape[:1], *(1,) * (at_nodes.ndim - 1))
        found = np.zeros((len(self.at), *at_nodes.shape[1:]))
        for k in range(self.at.shape[1]):  # in a fixed order, for the same bits on all ranks
            found += self.weights[:, k].reshape(shape) * at_nodes[self.at[:, k]]
        return found


def _once(case: Case, nodes: Ints) -> tuple[Ints, Ints]:
    """Each of the nodes (n, c, D) once as (m, 3), in ascending order, and their numbers (n, c)."""
    nx, *rest = case.domain.size  # of the complete box, also of a staggered lattice
    shape = case.shape[0], prod(rest[:-1]), nx
    plane, x = nodes[..., -1], nodes[..., 0]
    row = nodes[..., 1] if nodes.shape[-1] == 3 else np.zeros_like(x)
    flat = np.ravel_multi_index((plane, row, x), shape)
    once, at = np.unique(flat, return_inverse=True)
    found = np.stack(np.unravel_index(once, shape), axis=1)
    return found.astype(np.int64), at.reshape(flat.shape)


def _normalised(weights: Floats) -> Floats:
    return weights / weights.sum(axis=1, keepdims=True)


def shown(position: NDArray) -> str:
    """A position in a message: `[1, 2.5, 3]`."""
    return f"[{', '.join(f'{value:g}' for value in position)}]"
