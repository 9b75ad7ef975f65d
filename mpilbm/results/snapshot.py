"""A snapshot file opened for plotting; only the parts that are indexed are read."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.case.input_fields import require_cells, snapshot_case
from mpilbm.case.quantities import units_of
from mpilbm.case.tables.values import MOST_TITLE
from mpilbm.errors import CommandError
from mpilbm.printable import one_line
from mpilbm.results.images import CELL_DATA
from mpilbm.system.hdf5_input import (
    Values,
    attribute,
    dataset_names,
    group_datasets,
    opened,
    require_intact,
    values,
)
from mpilbm.units import LATTICE_UNIT, TIME

if TYPE_CHECKING:
    import h5py


@dataclass(frozen=True, kw_only=True)
class View:
    """The velocity u (nz, ny, nx, 3) of one step and the mask of solids (nz, ny, nx), or None.

    Both are HDF5 datasets. `case` holds the tables of the case file in lattice units. `cell` is the
    side of a cell in m, `velocity` the lattice unit of u in m/s, and `seconds` the time, if the
    fields are in SI (`in_si`, with [units]); else cell = velocity = 1.
    """

    path: Path
    step: int
    title: str
    case: dict[str, Any]
    u: "h5py.Dataset"
    mask: "h5py.Dataset | None"
    file: "h5py.File"
    cell: float = 1.0
    velocity: float = 1.0
    in_si: bool = False
    seconds: float = 0.0

    @property
    def size(self) -> list[int]:
        """Cells along x, y (and z)."""
        return self.case["domain"]["size"]

    @property
    def time(self) -> str:
        """The step and, with [units], the time, for titles."""
        return f"step {self.step}" + f", {self.seconds:.4g} s" * self.in_si

    def label(self, lattice: str, si: str) -> str:
        """The unit of a quantity in this file, of the two."""
        return si if self.in_si else lattice

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.size)

    @property
    def fields(self) -> list[str]:
        """The names of the fields in the file."""
        return [name for name in group_datasets(self.file, CELL_DATA) if name != "solid"]

    def field(self, name: str) -> Values:
        """A field by its name; CommandError if the file does not have it."""
        found = values(self.file, f"{CELL_DATA}/{name}")
        if found is None:
            raise CommandError(
                f"{self.path}: has no field '{name}'; allowed: {', '.join(self.fields)}"
            )
        size = self.u.shape[:3]
        if found.shape[:3] != size or found.ndim > 4:
            raise CommandError(
                f"{self.path}: '{name}' has shape {found.shape}, 'u' {self.u.shape}; write the "
                "file again"
            )
        found.require_stored()
        return found

    def solid(self, index: Any) -> np.ndarray:
        """Mask of solid cells; without one in the file, cells at rest if the case has a body."""
        if self.mask is not None:
            return self.mask[index] != 0
        still = (self.u[index] == 0).all(axis=-1)
        return still & ("body" in self.case)


@contextmanager
def view(path: Path) -> Iterator[View]:
    """Open a snapshot; CommandError if the file is not a snapshot or has no velocity."""
    with ExitStack() as stack:
        try:
            require_intact(path)
            found = _view(path, stack.enter_context(opened(path)))
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
        yield found


def _view(path: Path, file: "h5py.File") -> View:
    case = snapshot_case(file)
    title = attribute(file, "mpilbm", "title", str)
    step = attribute(file, "mpilbm", "step", np.int64)
    u, mask = (values(file, f"VTKHDF/CellData/{name}") for name in ("u", "solid"))
    if u is None:
        raise ValueError(
            f'has {", ".join(dataset_names(file)) or "no dataset"} but no velocity; add "u" to '
            "the fields of the snapshot output and run the case again"
        )
    require_cells(u, "u", case["domain"]["size"], (3,))
    if mask is not None:
        require_cells(mask, "solid", case["domain"]["size"])
    title = one_line(title or path.parent.name, MOST_TITLE)
    unit, units = u.attribute(LATTICE_UNIT), units_of(case)
    if units is None or unit is None:  # a file in lattice units
        return View(path=path, step=int(step), title=title, case=case, u=u, mask=mask, file=file)
    return View(
        path=path, step=int(step), title=title, case=case, u=u, mask=mask, file=file,
        cell=units.cell, velocity=unit, in_si=True, seconds=units.to_si(int(step), TIME),
    )  # fmt: skip
