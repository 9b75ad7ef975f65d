"""A snapshot file opened for plotting; only the parts that are indexed are read."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.case.initial_files import require_cells, snapshot_case
from mpilbm.case.quantities import units_of
from mpilbm.case.tables import MOST_TITLE
from mpilbm.core.errors import CommandError
from mpilbm.core.files.hdf5 import (
    Values,
    attribute,
    dataset_names,
)
from mpilbm.core.printable import one_line
from mpilbm.core.units import LATTICE_UNIT, TIME
from mpilbm.view.results.fields import SOLID, CellFields, cell_fields, naming


@dataclass(frozen=True, kw_only=True)
class View:
    """The velocity u (nz, ny, nx, 3) of one step and the mask of solids (nz, ny, nx), or None.

    Both are read where they are indexed. `case` holds the tables of the case file in lattice units.
    `cell` is the side of a cell in m, `velocity` the lattice unit of u in m/s, and `seconds` the
    time, if the fields are in SI (`in_si`, with [units]); else cell = velocity = 1. `origin` is the
    lower corner of the part of the box in the file, and `spacing` the sides of a block of cells
    with one value, both along x, y, z, in m or in cells.
    """

    path: Path
    step: int
    title: str
    case: dict[str, Any]
    u: Values
    mask: Values | None
    cells: CellFields
    origin: tuple[float, ...]
    spacing: tuple[float, ...]
    cell: float = 1.0
    velocity: float = 1.0
    in_si: bool = False
    seconds: float = 0.0

    @property
    def size(self) -> list[int]:
        """Values along x, y (and z): cells, or blocks of cells in a file with a stride."""
        return list(self.u.shape[2::-1][: self.dimensions])

    def ends(self, axis: int) -> tuple[float, float]:
        """The lower and the upper end along an axis, in m or in cells."""
        begin = self.origin[axis]
        return begin, begin + self.u.shape[2 - axis] * self.spacing[axis]

    def centres(self, axis: int) -> np.ndarray:
        """The coordinates of the values along an axis, in m or in cells."""
        count = self.u.shape[2 - axis]
        return self.origin[axis] + (np.arange(count) + 0.5) * self.spacing[axis]

    def middle(self, axis: int, cells: slice) -> float:
        """The coordinate of the middle of these cells along an axis."""
        return self.origin[axis] + (cells.start + cells.stop) / 2 * self.spacing[axis]

    @cached_property
    def solid_lines(self) -> tuple[np.ndarray, ...] | None:
        """The numbers of solid cells on each line along x (nz, ny), y (nz, nx) and z (ny, nx).

        None without bodies. Reads all planes, one at a time.
        """
        if self.mask is None and "body" not in self.case:
            return None
        nz, ny, nx = self.u.shape[:3]
        found = tuple(np.zeros(shape, np.int64) for shape in ((nz, ny), (nz, nx), (ny, nx)))
        for z in range(nz):
            plane = self.solid(z)
            found[0][z], found[1][z] = plane.sum(axis=1), plane.sum(axis=0)
            found[2][:] += plane
        return found

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
        return len(self.case["domain"]["size"])

    @property
    def fields(self) -> list[str]:
        """The names of the fields in the file."""
        return [name for name in self.cells.names if name != SOLID]

    def field(self, name: str) -> Values:
        """A field by its name; CommandError if the file does not have it, or not all of it."""
        with naming(self.path):
            found = self.cells.dataset(name)
            found.require_stored()
        size = self.u.shape[:3]
        if found.shape[:3] != size or found.ndim > 4:
            raise CommandError(
                f"{self.path}: '{name}' has shape {found.shape}, 'u' {self.u.shape}; write the "
                "file again"
            )
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
        with naming(path):
            found = _view(stack.enter_context(cell_fields(path, verify=True)))
        yield found


def _view(cells: CellFields) -> View:
    path, file = cells.path, cells.file
    case = snapshot_case(file)
    title = attribute(file, "mpilbm", "title", str)
    step = attribute(file, "mpilbm", "step", np.int64)
    u, mask = cells.find("u"), cells.find(SOLID)
    if u is None:
        raise ValueError(
            f'has {", ".join(dataset_names(file)) or "no dataset"} but no velocity; add "u" to '
            "the fields of the snapshot output and run the case again"
        )
    head = cells.head()
    size = head.shape[::-1][: len(case["domain"]["size"])]
    if not size:
        raise ValueError("is not a snapshot of mpilbm: it has no regular cells; use another file")
    require_cells(u, "u", size, (3,))
    if mask is not None:
        require_cells(mask, "solid", size)
    title = one_line(title or path.parent.name, MOST_TITLE)
    unit, units = u.attribute(LATTICE_UNIT), units_of(case)
    found = View(
        path=path,
        step=int(step),
        title=title,
        case=case,
        u=u,
        mask=mask,
        cells=cells,
        origin=head.origin,
        spacing=head.spacing,
    )
    if units is None or unit is None:  # a file in lattice units
        return found
    seconds = units.to_si(int(step), TIME)
    return replace(found, cell=units.cell, velocity=unit, in_si=True, seconds=seconds)
