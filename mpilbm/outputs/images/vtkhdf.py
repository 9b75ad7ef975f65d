"""VTKHDF files: ImageData with fields in cells, PolyData with values on facets; time series."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from mpilbm import __version__
from mpilbm.case.case import Case
from mpilbm.core.printable import one_line
from mpilbm.core.units import LATTICE_UNIT, PRESSURE, TIME, VELOCITY, Units, field_unit
from mpilbm.outputs.images.part import Part
from mpilbm.storage import whole
from mpilbm.storage.partial_file import dataset

if TYPE_CHECKING:
    import h5py


Kinds = dict[str, tuple[tuple[int, ...], DTypeLike]]  # of fields: their components and type
Shapes = dict[str, tuple[tuple[int, ...], Any]]  # of datasets by their path: shape and type
Arrays = dict[str, np.ndarray]  # by the path of the dataset


def place(name: str) -> str:
    """The dataset of a field."""
    return f"VTKHDF/CellData/{name}"


def file_shape(case: Case, part: Part) -> tuple[int, int, int]:
    """Cells of the file along z, y, x; in two dimensions there is one along z."""
    planes, rows, nx = part.shape
    return (1, planes, nx) if case.dimensions == 2 else (planes, rows, nx)


def in_si(case: Case, step: int) -> dict[str, float]:
    """With [units] the time in seconds and the lattice units in SI; else {}."""
    if (units := case.units) is None:
        return {}
    found = {"time (s)": units.to_si(step, TIME), "cell (m)": units.cell, "step (s)": units.step}
    found["velocity unit (m/s)"] = units.unit(VELOCITY)
    return found | {"density unit (kg/m^3)": units.density}


def _begin(file: "h5py.File", case: Case, step: int, kind: str) -> "h5py.Group":
    """The group of a VTKHDF file, and next to it the group `mpilbm`: where the file comes from."""
    group = file.create_group("VTKHDF")
    group.attrs["Version"], group.attrs["Type"] = np.array([2, 0]), np.bytes_(kind)
    if case.units:
        group.create_group("FieldData")["TimeValue"] = np.array([case.units.to_si(step, TIME)])
    origin = file.create_group("mpilbm")
    origin.attrs["case"], origin.attrs["version"] = case.toml, __version__
    origin.attrs["title"] = one_line(case.title)  # HDF5 takes no NUL
    origin.attrs["step"], origin.attrs["units"] = step, "SI" if case.units else "lattice"
    origin.attrs.update(in_si(case, step))
    return group


def describe_image(
    file: "h5py.File", case: Case, step: int, kinds: Kinds, part: Part, compress: bool = False
) -> None:
    """Create the groups of an ImageData file; `kinds`: components and type of each field.

    Cells have the size 1, or that of a block, and the box begins at the origin, so that the centres
    of cells are x = 0.5, 1.5, … With [units] lengths, time and fields are in SI; the attribute
    LATTICE_UNIT of a field is the SI value of its lattice unit. `compress`: datasets in chunks of
    a plane, compressed by gzip.
    """
    along = (part.x, part.planes, part.rows) if case.dimensions == 2 else part.along
    cell = case.units.cell if case.units else 1.0
    image = _begin(file, case, step, "ImageData")
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


def _field(
    cells: "h5py.Group", name: str, shape: tuple[int, ...], kind: DTypeLike, compress: bool
) -> "h5py.Dataset":
    if not compress:
        return dataset(cells, name, shape, kind)
    axis = next((k for k, n in enumerate(shape[:3]) if n > 1), 0)  # of the planes
    chunk = (*(1 for _ in shape[: axis + 1]), *shape[axis + 1 :])
    return cells.create_dataset(name, shape, kind, chunks=chunk, compression="gzip", shuffle=True)


def topology(corners: list[np.ndarray], cell: float) -> Arrays:
    """The datasets of facets with the corners (n, k, D) of several bodies, with equal points of a
    body joined.

    cell: the side of a cell in the file.
    """
    D = corners[0].shape[2] if corners else 3
    each_body = (np.insert(each.reshape(-1, D), D, k, axis=1) for k, each in enumerate(corners))
    points = np.concatenate([np.zeros((0, D + 1)), *each_body])
    points, index = np.unique(points, axis=0, return_inverse=True)
    points = points[:, :D]
    counts = np.concatenate([[0], *(np.full(len(each), each.shape[1]) for each in corners)])
    found: Arrays = {
        "NumberOfPoints": np.array([len(points)]),
        "Points": np.pad(cell * points, ((0, 0), (0, 3 - D))),
    }
    for kind in ("Vertices", "Lines", "Polygons", "Strips"):
        used = kind == ("Lines" if D == 2 else "Polygons")
        ends = np.cumsum(counts) if used else np.zeros(1)
        connectivity = index.reshape(-1) if used else np.zeros(0)
        found |= {
            f"{kind}/NumberOfCells": np.array([ends.size - 1]),
            f"{kind}/NumberOfConnectivityIds": np.array([connectivity.size]),
            f"{kind}/Connectivity": connectivity.astype(np.int64),
            f"{kind}/Offsets": ends.astype(np.int64),
        }
    return found


def describe_facets(file: "h5py.File", case: Case, step: int, shapes: Shapes) -> None:
    """Create the groups of a PolyData file; `shapes`: of each dataset by its path."""
    poly = _begin(file, case, step, "PolyData")
    for path, (shape, kind) in shapes.items():
        group, _, name = path.rpartition("/")
        made = dataset(poly.require_group(group) if group else poly, name, shape, kind)
        if case.units and name in ("pressure", "shear", "shear_magnitude", "force"):
            made.attrs["unit"], made.attrs[LATTICE_UNIT] = "Pa", case.units.unit(PRESSURE)


class SeriesFile:
    """The file `<stem>.vtkhdf.series` in the output folder: names and times as JSON.

    After a restart it keeps the files up to its step `first`. [Format: ParaView, file series]
    """

    def __init__(self, directory: Path, stem: str, units: Units | None, first: int):
        self.path, self.stem, self.units = directory / f"{stem}.vtkhdf.series", stem, units
        name = re.compile(re.escape(stem) + r"_([0-9]{9,18})\.vtkhdf")
        found = (name.fullmatch(path.name) for path in directory.iterdir())
        steps = (int(match[1]) for match in found if match)
        self._steps = {step for step in steps if step <= first}

    def add(self, step: int) -> None:
        """Add the file of a step, when it is complete; on rank 0, in any thread."""
        self._steps.add(step)
        files = [
            {"name": f"{self.stem}_{each:09d}.vtkhdf", "time": self._time(each)}
            for each in sorted(self._steps)
        ]
        with whole(self.path) as file:
            json.dump({"file-series-version": "1.0", "files": files}, file, indent=1)
            file.write("\n")

    def _time(self, step: int) -> float:
        return float(step) if self.units is None else float(self.units.to_si(step, TIME))
