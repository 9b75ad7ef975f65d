"""The files of the output `statistics`: a profile as HDF5 and, of at most one axis, as CSV."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpilbm import __version__
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.mean_fields import components
from mpilbm.storage.files import whole
from mpilbm.storage.places import dataset

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


def describe(file: "h5py.File", head: Head) -> None:
    """Create datasets of shape (…, y, x), coordinates of cell centres, and attributes."""
    axes = head.axes[::-1]
    for name, shape in components(head.case.dimensions).items():
        dataset(file, name, (*(head.sizes[axis] for axis in axes), *shape), np.float64)
    for axis, cells in head.sizes.items():
        file[axis] = np.arange(cells) + 0.5
    file.attrs["average"] = list(head.average)
    file.attrs["directions"] = list(axes)
    file.attrs["reynolds_stress"] = head.pairs
    file.attrs["samples"] = head.samples
    file.attrs["first_step"], file.attrs["step"] = head.first, head.step
    file.attrs["units"] = "lattice: cells, steps"
    file.attrs["case"], file.attrs["version"] = head.case.toml, __version__


def write_table(path: Path, head: Head, fields: dict[str, np.ndarray]) -> None:
    """Write a profile of at most one axis as CSV, a row for each cell along it."""
    names = ["rho", *(f"u_{axis} (cells/step)" for axis in AXES[: head.case.dimensions])]
    names += [f"<u_{pair[0]}' u_{pair[1]}'> (cells^2/step^2)" for pair in head.pairs]
    count = 1
    columns = []
    for axis, cells in head.sizes.items():
        count = cells
        names.insert(0, f"{axis} (cells)")
        columns.append((np.arange(cells) + 0.5)[:, None])
    columns += [data.reshape(count, -1) for data in fields.values()]
    with whole(path, newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(names)
        table.writerows([map(repr, map(float, row)) for row in np.concatenate(columns, axis=1)])
