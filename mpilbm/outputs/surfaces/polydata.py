"""VTKHDF files of polygons, or of lines, with values on each of them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm import __version__
from mpilbm.core.printable import one_line
from mpilbm.core.units import LATTICE_UNIT, PRESSURE, TIME
from mpilbm.outputs.images.description import in_si
from mpilbm.storage.partial_file import dataset

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case

Arrays = dict[str, np.ndarray]  # by the path of the dataset
KINDS = ("Vertices", "Lines", "Polygons", "Strips")


def topology(corners: list[np.ndarray], cell: float) -> Arrays:
    """The datasets of facets with the corners (n, k, D), with equal points joined.

    cell: the side of a cell in the file.
    """
    D = corners[0].shape[2] if corners else 3
    points = np.concatenate([np.zeros((0, D)), *(each.reshape(-1, D) for each in corners)])
    points, index = np.unique(points, axis=0, return_inverse=True)
    counts = np.concatenate([[0], *(np.full(len(each), each.shape[1]) for each in corners)])
    found: Arrays = {
        "NumberOfPoints": np.array([len(points)]),
        "Points": np.pad(cell * points, ((0, 0), (0, 3 - D))),
    }
    for kind in KINDS:
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


def describe(
    file: "h5py.File", case: "Case", step: int, shapes: dict[str, tuple[tuple[int, ...], Any]]
) -> None:
    """Create the groups of the file; `shapes`: shape and type of each dataset by its path."""
    poly = file.create_group("VTKHDF")
    poly.attrs["Version"] = np.array([2, 0])
    poly.attrs["Type"] = np.bytes_("PolyData")
    for path, (shape, kind) in shapes.items():
        group, _, name = path.rpartition("/")
        made = dataset(poly.require_group(group) if group else poly, name, shape, kind)
        if case.units and name in ("pressure", "shear", "shear_magnitude", "force"):
            made.attrs["unit"], made.attrs[LATTICE_UNIT] = "Pa", case.units.unit(PRESSURE)
    if case.units:
        poly.create_group("FieldData")["TimeValue"] = np.array([case.units.to_si(step, TIME)])
    origin = file.create_group("mpilbm")
    origin.attrs["case"] = case.toml
    origin.attrs["title"] = one_line(case.title)
    origin.attrs["step"] = step
    origin.attrs["units"] = "SI" if case.units else "lattice"
    for name, value in in_si(case, step).items():
        origin.attrs[name] = value
    origin.attrs["version"] = __version__
