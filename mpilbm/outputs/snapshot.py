"""Fields for pictures: VTKHDF files that ParaView and PyVista open as they are."""

from difflib import get_close_matches
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from mpilbm import __version__
from mpilbm.backends import memory
from mpilbm.errors import CaseError
from mpilbm.outputs import Context, Output, number_of_cells
from mpilbm.parallel.ranks import local_rank
from mpilbm.printable import one_line
from mpilbm.registry import register
from mpilbm.storage.file_system import best_writer
from mpilbm.storage.places import dataset
from mpilbm.storage.planes import blocks, plane_file
from mpilbm.storage.staggered_fill import filled
from mpilbm.units import TIME, VELOCITY

# Components in the file: vectors have three there, also in two dimensions.
COMPONENTS = {"rho": 1, "u": 3, "vorticity": 3, "q_criterion": 1}


@register("outputs", "snapshot")
class Snapshot(Output):
    """Fields in cells as `snapshot_<step>.vtkhdf`, for ParaView, PyVista and `mpilbm plot`.

    rho, u, vorticity = curl u (a scalar in 2D), q_criterion = -(du_a/dx_b) (du_b/dx_a) / 2:
    differences are central, beside a wall or a solid one-sided; in solids both are 0. With bodies
    a field `solid` is added, 1 in their cells. All nodes of the box are written: those that a
    staggered lattice (D3Q13) leaves out as means of their neighbours, see outputs/filled.py.
    `background` lets the steps go on while it is written, with memory for two snapshots at most:
    on one rank, and where each rank may write its own planes (one node or a parallel file system).
    """

    fields: tuple[str, ...] = Field(
        ("rho", "u"),
        description="rho, u, vorticity, q_criterion, and fields of the coupling",
        examples=[["rho", "u", "vorticity"]],
    )
    background: bool = Field(True, description="the steps go on while it is written, if possible")

    files: ClassVar[tuple[str, ...]] = ("snapshot_<step>.vtkhdf",)
    several: ClassVar[bool] = False

    def problems(self, case) -> list[str]:
        """Fields that nobody knows, or none at all."""
        own = case.coupling.outputs(case) if case.coupling else ()
        fields = (*COMPONENTS, *own)
        choice, lines = f"choose from {', '.join(fields)}", []
        for name in self.fields:
            if name not in fields:
                near = get_close_matches(name, fields, 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                lines.append(f"fields: '{name}' is no field; {choice}{hint}")
        return lines if self.fields else [f"fields: no field; {choice}"]

    def disk_bytes(self, case, times: int) -> int:
        """All snapshots stay."""
        values = sum(COMPONENTS.get(name, 1) for name in self.fields)
        itemsize = np.dtype(case.precision.compute).itemsize
        return times * number_of_cells(case) * case.lattice.volume * values * itemsize

    def open(self, context: Context) -> "SnapshotWriter":
        """CaseError if the solver has no such field."""
        known = context.solver.field_names
        for name in self.fields:
            if name not in known:
                problem = f"'{name}' is no field of this flow; choose from {', '.join(known)}"
                raise CaseError(problem, "output.fields", context.case.path)
        return SnapshotWriter(self, context)


class SnapshotWriter:
    """One file a step; in two dimensions nz = 1."""

    def __init__(self, output: Snapshot, context: Context):
        self.output, self.context = output, context
        self.writer = best_writer(context.comm, context.directory)
        self.neighbours, self.copies = local_rank(context.comm)[1], None
        self.names = dict.fromkeys((*output.fields, *(("solid",) if context.case.bodies else ())))

    def write(self, step: int):
        """The fields of this step; called on all ranks."""
        context = self.context
        path = context.directory / f"snapshot_{step:09d}.vtkhdf"
        # All ranks ask at once here, so a field that needs the neighbours' planes has them.
        sample = {name: self._planes(name, 0, 1) for name in self.names}

        def describe(file):
            describe_image(file, context.case, step, sample)

        make = partial(plane_file, path, context.comm, context.slabs, describe, self.writer)
        if self.writer == "own":
            self._write_behind(make)
            return
        with make() as file:
            for name in sample:
                file.write(place(name), partial(self._planes, name))
            file.commit()

    def _write_behind(self, make):
        """Have threads write this rank's planes while the steps go on."""
        background = self.context.background
        job = background.begin(make)
        plane_bytes = sum(job.file.plane_bytes(place(name)) for name in self.names)
        pieces = blocks(self.context.slab.planes, plane_bytes)
        if self.copies is None:
            names = [name for name in self.names if name != "solid"]
            self.copies = self.context.solver.copies(names, pieces[0][1], self._memory(plane_bytes))
        for begin, end in pieces:
            job.add(self.copies.start(begin, end), partial(self._store, job.file, begin, end))
        job.end()
        self.copies.computed()
        if not self.output.background:
            background.settle(0)

    def _memory(self, plane_bytes: int) -> int:
        """Bytes of the host for two snapshots, at most this rank's share of what is free."""
        share = memory.least()[0] // 4 // self.neighbours
        return min(2 * self.context.slab.planes * plane_bytes, share)

    def _store(self, file, begin, end, fields):
        for name in self.names:
            file.store(place(name), begin, self._shaped(name, fields, begin, end))

    def _planes(self, name, begin, end):
        fields = {} if name == "solid" else self.context.solver.fields((name,), begin, end)
        return self._shaped(name, fields, begin, end)

    def _shaped(self, name, fields, begin, end):
        """Local planes (n, rows, nx) of a scalar or (n, rows, nx, 3) of a vector for the file."""
        context, staggered = self.context, self.context.case.lattice.staggered
        solid = context.solver.solid(begin, end) if staggered or name == "solid" else None
        data = solid if name == "solid" else fields[name]
        if staggered:
            given = data, solid, context.slab.begin + begin, context.case.domain.periodic[:2]
            data, solid = filled(context.case.lattice, *given, rest=float(name == "rho"))
        if name == "solid":
            return solid.astype(np.uint8)
        if data.ndim == 4 and data.shape[3] == 2:
            data = np.pad(data, ((0, 0), (0, 0), (0, 0), (0, 1)))
        return data

    def close(self):
        """What is still written is in the context's hands."""


def place(name: str) -> str:
    """The dataset of a field."""
    return f"VTKHDF/CellData/{name}"


def in_si(case, step: int) -> dict[str, float]:
    """With [units], the time in seconds, and what lattice units are in SI; {} without."""
    units = case.units
    return {} if units is None else {
        "time (s)": units.to_si(step, TIME),
        "cell (m)": units.cell,
        "step (s)": units.step,
        "velocity unit (m/s)": units.unit(VELOCITY),
        "density unit (kg/m^3)": units.density,
    }  # fmt: skip


def describe_image(file, case, step: int, sample: dict):
    """Make the groups of a VTKHDF ImageData file; `sample` holds a plane of each field.

    Cells have the size 1 and begin at the origin, so their centres are x = 0.5, 1.5, …
    """
    nx, ny, nz = (*case.domain.size, 1)[:3]
    image = file.create_group("VTKHDF")
    image.attrs["Version"] = np.array([2, 0])
    image.attrs["Type"] = np.bytes_("ImageData")
    image.attrs["WholeExtent"] = np.array([0, nx, 0, ny, 0, nz])
    image.attrs["Origin"] = np.zeros(3)
    image.attrs["Spacing"] = np.ones(3)
    image.attrs["Direction"] = np.eye(3).ravel()
    cells = image.create_group("CellData")
    for name, plane in sample.items():
        dataset(cells, name, (nz, ny, nx, *plane.shape[3:]), plane.dtype)
    origin = file.create_group("mpilbm")
    origin.attrs["case"] = case.toml
    origin.attrs["title"] = one_line(case.title)  # HDF5 takes no NUL
    origin.attrs["step"] = step
    origin.attrs["units"] = "lattice"
    for name, value in in_si(case, step).items():
        origin.attrs[name] = value
    origin.attrs["version"] = __version__
