"""rho and u at t = 0 from a file: a snapshot, or arrays."""

from pathlib import Path

import numpy as np

from mpilbm.case.initial.arrays import array_fields, names_arrays
from mpilbm.case.input_fields import Shape, resampled, snapshot_fields


def check_fields(path: Path, dimensions: int) -> None:
    """ValueError unless a file holds fields of a box with so many dimensions."""
    with (array_fields if names_arrays(path) else snapshot_fields)(path, dimensions):
        pass


def load_fields(
    path: Path, shape: Shape, periodic: tuple[bool, ...], begin: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """rho (n, rows, nx) and u (n, rows, nx, D) of the planes begin … end - 1, see `resampled`.

    Arrays that the file does not have are 1 (rho) or 0 (u). Velocities are in cells per step.
    """
    D = len(periodic)
    with (array_fields if names_arrays(path) else snapshot_fields)(path, D) as fields:
        found = {
            name: resampled(field, shape, periodic, begin, end) for name, field in fields.items()
        }
    size = (end - begin, *shape[1:])
    rho = found["rho"] if "rho" in found else np.ones(size)
    return rho, found["u"][..., :D] if "u" in found else np.zeros((*size, D))
