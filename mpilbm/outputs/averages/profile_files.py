"""The files of the output `statistics`: a profile as HDF5 and, of at most one axis, as CSV."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpilbm import __version__
from mpilbm.core.units import FIELDS, LATTICE_UNIT, VELOCITY, field_unit
from mpilbm.physics.lattices import AXES
from mpilbm.storage.files import whole
from mpilbm.storage.partial_file import dataset

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case


@dataclass(frozen=True, kw_only=True)
class Head:
    """The description of a profile.

    axes          directions that are not averaged, in the order x, y, z
    average       directions that are averaged
    step, first   steps of the last and of the first sample
    samples       number of samples
    """

    case: "Case"
    axes: str
    average: tuple[str, ...]
    step: int
    first: int
    samples: int

    @property
    def sizes(self) -> dict[str, int]:
        """Cells along each direction that is not averaged."""
        sizes = dict(zip(AXES, self.case.domain.size, strict=False))
        return {axis: sizes[axis] for axis in self.axes}

    @property
    def pairs(self) -> list[str]:
        """Names of the components of a stress."""
        axes = AXES[: self.case.dimensions]
        return [a + b for k, a in enumerate(axes) for b in axes[k:]]


def components(case: "Case") -> dict[str, tuple[int, ...]]:
    """The fields of a profile, and their shape at a place."""
    return case.in_samples.components


def describe(file: "h5py.File", head: Head) -> None:
    """Create datasets of shape (…, y, x), coordinates of cell centres, and attributes."""
    axes = head.axes[::-1]
    for name, shape in components(head.case).items():
        dataset(file, name, (*(head.sizes[axis] for axis in axes), *shape), np.float64)
    for axis, cells in head.sizes.items():
        file[axis] = np.arange(cells) + 0.5
    if head.case.units:
        for name in (*components(head.case), *head.sizes):
            unit, text = _unit(head, name)
            file[name].attrs["unit"], file[name].attrs[LATTICE_UNIT] = text, unit
    file.attrs["average"] = list(head.average)
    file.attrs["directions"] = list(axes)
    file.attrs["reynolds_stress"] = head.pairs
    if head.case.labels:
        file.attrs["scalars"] = list(head.case.labels)
    file.attrs["samples"] = head.samples
    file.attrs["first_step"], file.attrs["step"] = head.first, head.step
    file.attrs["units"] = "lattice: cells, steps"
    file.attrs["case"], file.attrs["version"] = head.case.toml, __version__


def _unit(head: Head, name: str) -> tuple[float, str]:
    """The SI value of the lattice unit of a dataset, and its SI unit."""
    units = head.case.units
    return (units.cell, "m") if units and name in head.sizes else result_unit(head.case, name)


def result_unit(case: "Case", name: str) -> tuple[float, str]:
    """As `units.field_unit`; scalars keep their unit, so a flux of one is that times m/s."""
    if case.units and name in {f"flux_{label}" for label in case.labels}:
        return case.units.unit(VELOCITY), "m/s"
    return (1.0, "") if name not in FIELDS else field_unit(case.units, name)


def write_table(path: Path, head: Head, fields: dict[str, np.ndarray]) -> None:
    """Write a profile of at most one axis as CSV, a row for each cell along it.

    With [units] the same columns in SI follow.
    """
    axes = AXES[: head.case.dimensions]
    names = {
        "rho": (["rho"], ""),
        "u": ([f"u_{axis}" for axis in axes], " (cells/step)"),
        "reynolds_stress": (
            [f"<u_{a}' u_{b}'>" for a, b in map(tuple, head.pairs)],
            " (cells^2/step^2)",
        ),
    }
    for name, shape in components(head.case).items():
        of = [f"{name}_{axis}" for axis in axes] if shape else [name]
        names.setdefault(name, (of, ""))
    places = {axis: np.arange(cells) + 0.5 for axis, cells in head.sizes.items()}
    names |= {axis: ([axis], " (cells)") for axis in places}
    count = next((cells for cells in head.sizes.values()), 1)
    values = {name: data.reshape(count, -1) for name, data in (places | fields).items()}
    header = [one + names[key][1] for key in values for one in names[key][0]]
    columns = list(values.values())
    if head.case.units:
        units = {key: _unit(head, key) for key in values}
        header += [f"{one} ({units[key][1]})" for key in values for one in names[key][0]]
        columns += [data * units[key][0] for key, data in values.items()]
    with whole(path, newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows([map(repr, map(float, row)) for row in np.concatenate(columns, axis=1)])
