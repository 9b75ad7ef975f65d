"""A snapshot file opened for pictures, read piece by piece."""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.case.input_fields import require_cells, snapshot_case
from mpilbm.case.tables import MOST_TITLE
from mpilbm.errors import CommandError
from mpilbm.printable import one_line
from mpilbm.system.hdf5_input import attribute, dataset_names, opened, require_intact, values


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
    with ExitStack() as stack:
        try:
            require_intact(path)
            found = _view(path, stack.enter_context(opened(path)))
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
        yield found


def _view(path, file) -> View:
    case = snapshot_case(file)
    title, step = (
        attribute(file, "mpilbm", "title", str),
        attribute(file, "mpilbm", "step", np.integer),
    )
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
    return View(path, int(step), title, case, u, mask)
