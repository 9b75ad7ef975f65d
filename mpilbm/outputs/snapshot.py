"""Fields for pictures: VTKHDF files that ParaView and PyVista open as they are."""

from functools import partial
from typing import ClassVar

import numpy as np

from mpilbm import __version__
from mpilbm.errors import CaseError
from mpilbm.outputs import Context, Output, number_of_cells
from mpilbm.outputs.file_system import best_writer
from mpilbm.outputs.filled import filled
from mpilbm.outputs.planes import dataset, plane_file
from mpilbm.registry import register

# Components in the file: vectors have three there, also in two dimensions.
COMPONENTS = {"rho": 1, "u": 3, "vorticity": 3, "q_criterion": 1}


@register("outputs", "snapshot")
class Snapshot(Output):
    """Fields in cells as `snapshot_<step>.vtkhdf`, for ParaView, PyVista and `mpilbm plot`.

    rho, u, vorticity = curl u (a scalar in 2D), q_criterion = -(du_a/dx_b) (du_b/dx_a) / 2:
    differences are central, beside a wall or a solid one-sided; in solids both are 0. With bodies
    a field `solid` is added, 1 in their cells. All nodes of the box are written: those that a
    staggered lattice (D3Q13) leaves out as means of their neighbours, see outputs/filled.py.
    """

    fields: tuple[str, ...] = ("rho", "u")

    files: ClassVar[tuple[str, ...]] = ("snapshot_*.vtkhdf",)

    def problems(self, case) -> list[str]:
        """Fields that nobody knows, or none at all."""
        unknown = [name for name in self.fields if name not in COMPONENTS]
        lines = [f"'{name}' is no field; choose from {', '.join(COMPONENTS)}" for name in unknown]
        return lines if self.fields else ["no field; choose from " + ", ".join(COMPONENTS)]

    def disk_bytes(self, case, times: int) -> int:
        """All snapshots stay."""
        values = sum(COMPONENTS.get(name, 3) for name in self.fields)
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
        self.names = dict.fromkeys((*output.fields, *(("solid",) if context.case.bodies else ())))

    def write(self, step: int):
        """The fields of this step; called on all ranks."""
        context = self.context
        path = context.directory / f"snapshot_{step:09d}.vtkhdf"
        # All ranks ask at once here, so a field that needs the neighbours' planes has them.
        sample = {name: self._planes(name, 0, 1) for name in self.names}

        def describe(file):
            describe_image(file, context.case, step, sample)

        with plane_file(path, context.comm, context.slabs, describe, self.writer) as file:
            for name in sample:
                file.write(f"VTKHDF/CellData/{name}", partial(self._planes, name))
            file.commit()

    def _planes(self, name, begin, end):
        """Local planes (n, rows, nx) of a scalar or (n, rows, nx, 3) of a vector."""
        context, solver = self.context, self.context.solver
        solid = solver.solid(begin, end)
        data = solid if name == "solid" else solver.fields((name,), begin, end)[name]
        if context.case.lattice.staggered:
            given = data, solid, context.slab.begin + begin, context.case.domain.periodic[:2]
            data, solid = filled(context.case.lattice, *given, rest=float(name == "rho"))
        if name == "solid":
            return solid.astype(np.uint8)
        if data.ndim == 4 and data.shape[3] == 2:
            data = np.pad(data, ((0, 0), (0, 0), (0, 0), (0, 1)))
        return data

    def close(self):
        """Nothing is open between two snapshots."""


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
    origin.attrs["title"] = case.title
    origin.attrs["step"] = step
    origin.attrs["units"] = "lattice"
    origin.attrs["version"] = __version__
