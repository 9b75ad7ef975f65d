"""A snapshot file opened for pictures, read piece by piece."""

import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.case_file import MOST_TITLE
from mpilbm.errors import CommandError
from mpilbm.printable import one_line


@dataclass(frozen=True)
class View:
    """Velocity u (nz, ny, nx, 3) and the mask of solids (nz, ny, nx), or None, of one step.

    Both are datasets: only what is indexed is read. `case` holds the tables of the case.
    """

    path: Path
    step: int
    title: str
    case: dict
    u: Any
    mask: Any

    @property
    def size(self) -> list[int]:
        """Cells along x, y (and z)."""
        return self.case["domain"]["size"]

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.size)

    def solid(self, index) -> np.ndarray:
        """Where no fluid is; without a mask what stands still, if the case has a body."""
        if self.mask is not None:
            return self.mask[index] != 0
        still = (self.u[index] == 0).all(axis=-1)
        return still & ("body" in self.case)


@contextmanager
def view(path: Path):
    """Open a snapshot; CommandError if it is none, or holds no velocity."""
    import h5py

    try:
        file = h5py.File(path, "r", locking="best-effort")
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error}; run the case again") from error
    with file:
        try:
            origin, cells = file["mpilbm"].attrs, file["VTKHDF/CellData"]
            case = tomllib.loads(origin["case"])
            step, title = int(origin["step"]), str(origin["title"])
        except KeyError as error:
            raise CommandError(f"{path}: is no snapshot of mpilbm: {error}") from error
        if "u" not in cells:
            raise CommandError(
                f"{path}: has {', '.join(cells)} but no velocity; "
                'add "u" to the fields of the snapshot output and run the case again'
            )
        title = one_line(title or path.parent.name, MOST_TITLE)
        yield View(path, step, title, case, cells["u"], cells.get("solid"))
