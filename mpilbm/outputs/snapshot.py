"""Fields of all cells at one step: VTKHDF files that ParaView and PyVista open directly."""

from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import DTypeLike
from pydantic import Field

from mpilbm import __version__
from mpilbm.errors import CaseError
from mpilbm.outputs import Context, Output, number_of_cells
from mpilbm.printable import one_line
from mpilbm.registry import register
from mpilbm.storage.places import dataset
from mpilbm.storage.planes import OwnFile, PlaneFiles
from mpilbm.storage.staggered_fill import filled
from mpilbm.units import LATTICE_UNIT, TIME, VELOCITY, field_unit

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case

Kinds = dict[str, tuple[tuple[int, ...], DTypeLike]]  # of fields: their components and type
SOLID = "solid"
# Components in the file: a vector has three there, also in two dimensions.
COMPONENTS = {"rho": 1, "u": 3, "vorticity": 3, "q_criterion": 1}


@register("outputs", "snapshot")
class Snapshot(Output):
    """Fields in cells as `snapshot_<step>.vtkhdf`, for ParaView, PyVista and `mpilbm plot`.

    rho, u, vorticity = curl u (a scalar in 2D), q_criterion = -(du_a/dx_b) (du_b/dx_a) / 2.
    Differences are central, and one-sided next to a wall or a solid; both are 0 in solids.
    If the case has bodies, a field `solid` is added, which is 1 in their cells. The file contains
    all nodes of the box: those that a staggered lattice (D3Q13) does not store are means of their
    neighbours, see storage/staggered_fill.py.

    With [units] lengths, time and fields are in SI. With `background` the time steps continue
    while the file is written. This requires one rank, one node, or a parallel file system, where
    each rank writes its own planes. The copies of the fields take at most a quarter of the free
    memory of the device and of the node.
    """

    fields: tuple[str, ...] = Field(
        ("rho", "u"),
        description="rho, u, vorticity, q_criterion, and fields of the coupling",
        examples=[["rho", "u", "vorticity"]],
    )
    background: bool = Field(
        True, description="continue the time steps while the file is written, if possible"
    )

    files: ClassVar[tuple[str, ...]] = ("snapshot_<step>.vtkhdf",)
    several: ClassVar[bool] = False

    def problems(self, case: "Case") -> list[str]:
        """Unknown fields, or none."""
        own = case.coupling.outputs(case) if case.coupling else ()
        fields = (*COMPONENTS, *own)
        choice, lines = f"choose from {', '.join(fields)}", []
        for name in self.fields:
            if name not in fields:
                near = get_close_matches(name, fields, 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                lines.append(f"fields: '{name}' is not a field; {choice}{hint}")
        return lines if self.fields else [f"fields: found none; {choice}"]

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """Those of its fields; one kernel computes rho and u."""
        own = list(case.coupling.outputs(case)) if case.coupling else []
        names = {"rho": "fields", "u": "fields"}
        names |= {name: f"output_{k}" for k, name in enumerate(own)}
        return tuple(names.get(name, name) for name in self.fields)

    def disk_bytes(self, case: "Case", times: int) -> int:
        """All snapshots; none is removed."""
        values = sum(COMPONENTS.get(name, 1) for name in self.fields)
        itemsize = np.dtype(case.precision.compute).itemsize
        return times * number_of_cells(case) * case.lattice.volume * values * itemsize

    def stages(self, case: "Case") -> bool:
        """Always: threads write copies."""
        return True

    def open(self, context: Context) -> "SnapshotWriter":
        """CaseError if the solver has no such field."""
        known = context.solver.field_names
        for name in self.fields:
            if name not in known:
                problem = f"'{name}' is not a field of this flow; choose from {', '.join(known)}"
                raise CaseError(problem, "output.fields", context.case.path)
        return SnapshotWriter(self, context)


class SnapshotWriter:
    """One file for each step; in two dimensions nz = 1."""

    def __init__(self, output: Snapshot, context: Context):
        self.output, self.context = output, context
        self.names = list(dict.fromkeys(output.fields)) + [SOLID] * bool(context.case.bodies)
        self.fields = [name for name in self.names if name != SOLID]

    def write(self, step: int) -> None:
        """Write the fields of this step; collective."""
        self.context.solver.prepare(self.fields)
        files, path = self.context.files, f"snapshot_{step:09d}.vtkhdf"
        if files.in_threads:
            describe = partial(self._describe, step)
            self._write_in_threads(partial(files.create_own, path, describe))
        else:
            self.write_file(files, path, step)

    def write_file(self, files: PlaneFiles, name: str, step: int) -> None:
        """Write the fields of this step to a file of that name, and wait; collective."""
        self.context.solver.prepare(self.fields)
        with files.create(name, partial(self._describe, step)) as file:
            for each in self.names:
                file.write(place(each), partial(self._planes, each))
            file.commit()

    def _describe(self, step: int, file: "h5py.File") -> None:
        describe_image(file, self.context.case, step, self._kinds())

    def _write_in_threads(self, create: "partial[OwnFile]") -> None:
        """Threads write the planes of this rank, while the time steps continue."""
        context = self.context
        copies = context.copies.fields(self.fields)
        job = context.background.begin(create)
        for begin, end in copies.blocks(context.slab.planes):
            job.add(copies.start(begin, end), partial(self._store, job.file, begin, end))
        job.end([job.file.flush])
        if not self.output.background:
            context.background.settle(0)

    def _kinds(self) -> Kinds:
        """The components and the type of each field in the file."""
        case, found = self.context.case, Kinds()
        for name in self.names:
            curl_2d = name == "vorticity" and case.dimensions == 2  # along z only
            scalar = COMPONENTS.get(name, 1) == 1 or curl_2d
            kind = "uint8" if name == SOLID else case.precision.compute
            found[name] = () if scalar else (COMPONENTS[name],), kind
        return found

    def _store(self, file: OwnFile, begin: int, end: int, fields: dict[str, np.ndarray]) -> None:
        """Write all fields of local planes; in any thread."""
        for name in self.names:
            file.store(place(name), begin, self._shaped(name, fields, begin, end))

    def _planes(self, name: str, begin: int, end: int) -> np.ndarray:
        """A field of local planes for the file, after `prepare`."""
        fields = {} if name == SOLID else self.context.solver.fields((name,), begin, end)
        return self._shaped(name, fields, begin, end)

    def _shaped(self, name: str, fields: dict[str, np.ndarray], begin: int, end: int) -> np.ndarray:
        """Local planes (n, rows, nx) of a scalar or (n, rows, nx, 3) of a vector for the file."""
        data = at_nodes(self.context, name, fields, begin, end)
        if name == SOLID:
            return data.astype(np.uint8)
        unit, _ = field_unit(self.context.case.units, name)
        data = data if unit == 1 else data * data.dtype.type(unit)
        if data.ndim == 4 and data.shape[3] == 2:
            data = np.pad(data, ((0, 0), (0, 0), (0, 0), (0, 1)))
        return data

    def close(self) -> None:
        """Nothing to do: `Context.background` closes files that are still being written."""


def at_nodes(
    context: Context, name: str, fields: dict[str, np.ndarray], begin: int, end: int
) -> np.ndarray:
    """A field of local planes at all nodes of the box, (n, rows, nx) and its components.

    `fields` contains its values in the stored cells, unless it is `solid`, which is bool.
    """
    solver, lattice = context.solver, context.case.lattice
    if name == SOLID or lattice.staggered:
        solid = solver.solid(begin, end)
    data = solid if name == SOLID else fields[name]
    if lattice.staggered:
        x, y, *_ = context.case.domain.periodic
        first, rest = context.slab.begin + begin, float(name == "rho")
        data, solid = filled(lattice, data, solid, first, (x, y), rest)
    return solid if name == SOLID else data


def place(name: str) -> str:
    """The dataset of a field."""
    return f"VTKHDF/CellData/{name}"


def in_si(case: "Case", step: int) -> dict[str, float]:
    """With [units] the time in seconds and the lattice units in SI; else {}."""
    units = case.units
    return {} if units is None else {
        "time (s)": units.to_si(step, TIME),
        "cell (m)": units.cell,
        "step (s)": units.step,
        "velocity unit (m/s)": units.unit(VELOCITY),
        "density unit (kg/m^3)": units.density,
    }  # fmt: skip


def describe_image(file: "h5py.File", case: "Case", step: int, kinds: Kinds) -> None:
    """Create the groups of a VTKHDF ImageData file; `kinds`: components and type of each field.

    Cells have the size 1 and the box begins at the origin, so that the centres of cells are
    x = 0.5, 1.5, … With [units] lengths, time and fields are in SI; the attribute LATTICE_UNIT of a
    field is the SI value of its lattice unit.
    """
    nx, ny, nz = (*case.domain.size, 1)[:3]
    image = file.create_group("VTKHDF")
    image.attrs["Version"] = np.array([2, 0])
    image.attrs["Type"] = np.bytes_("ImageData")
    image.attrs["WholeExtent"] = np.array([0, nx, 0, ny, 0, nz])
    image.attrs["Origin"] = np.zeros(3)
    image.attrs["Spacing"] = np.full(3, case.units.cell if case.units else 1.0)
    image.attrs["Direction"] = np.eye(3).ravel()
    cells = image.create_group("CellData")
    for name, (components, kind) in kinds.items():
        field = dataset(cells, name, (nz, ny, nx, *components), kind)
        unit, text = field_unit(case.units, name)
        if text:
            field.attrs["unit"], field.attrs[LATTICE_UNIT] = text, unit
    if case.units:
        image.create_group("FieldData")["TimeValue"] = np.array([case.units.to_si(step, TIME)])
    origin = file.create_group("mpilbm")
    origin.attrs["case"] = case.toml
    origin.attrs["title"] = one_line(case.title)  # HDF5 takes no NUL
    origin.attrs["step"] = step
    origin.attrs["units"] = "SI" if case.units else "lattice"
    for name, value in in_si(case, step).items():
        origin.attrs[name] = value
    origin.attrs["version"] = __version__
