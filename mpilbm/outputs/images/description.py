"""The groups, attributes and datasets of a VTKHDF ImageData file."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from mpilbm import __version__
from mpilbm.core.printable import one_line
from mpilbm.core.units import LATTICE_UNIT, TIME, VELOCITY, field_unit
from mpilbm.outputs.images.part import Part
from mpilbm.storage.partial_file import dataset

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case

Kinds = dict[str, tuple[tuple[int, ...], DTypeLike]]  # of fields: their components and type


def place(name: str) -> str:
    """The dataset of a field."""
    return f"VTKHDF/CellData/{name}"


def file_shape(case: "Case", part: Part) -> tuple[int, int, int]:
    """Cells of the file along z, y, x; in two dimensions there is one along z."""
    planes, rows, nx = part.shape
    return (1, planes, nx) if case.dimensions == 2 else (planes, rows, nx)


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


def describe_image(
    file: "h5py.File", case: "Case", step: int, kinds: Kinds, part: Part, compress: bool = False
) -> None:
    """Create the groups of a file; `kinds`: components and type of each field.

    Cells have the size 1, or that of a block, and the box begins at the origin, so that the centres
    of cells are x = 0.5, 1.5, … With [units] lengths, time and fields are in SI; the attribute
    LATTICE_UNIT of a field is the SI value of its lattice unit. `compress`: datasets in chunks of
    a plane, compressed by gzip.
    """
    along = (part.x, part.planes, part.rows) if case.dimensions == 2 else part.along
    cell = case.units.cell if case.units else 1.0
    image = file.create_group("VTKHDF")
    image.attrs["Version"] = np.array([2, 0])
    image.attrs["Type"] = np.bytes_("ImageData")
    image.attrs["WholeExtent"] = np.array([n for each in along for n in (0, each.count)])
    image.attrs["Origin"] = np.array([each.begin * cell for each in along])
    image.attrs["Spacing"] = np.array([each.stride * cell for each in along])
    image.attrs["Direction"] = np.eye(3).ravel()
    cells, shape = image.create_group("CellData"), file_shape(case, part)
    for name, (components, kind) in kinds.items():
        field = _field(cells, name, (*shape, *components), kind, compress)
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


def _field(
    cells: "h5py.Group", name: str, shape: tuple[int, ...], kind: DTypeLike, compress: bool
) -> "h5py.Dataset":
    if not compress:
        return dataset(cells, name, shape, kind)
    axis = next((k for k, n in enumerate(shape[:3]) if n > 1), 0)  # of the planes
    chunk = (*(1 for _ in shape[: axis + 1]), *shape[axis + 1 :])
    return cells.create_dataset(name, shape, kind, chunks=chunk, compression="gzip", shuffle=True)
