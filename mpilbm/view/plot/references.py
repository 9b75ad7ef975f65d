"""Published points in CSV files, and their comparison with computed curves."""

import csv
from pathlib import Path

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.files.input_text import NotATextFile, read_text
from mpilbm.core.printable import one_line

COORDINATES = ("x", "y", "z", "yplus")


def cited(path: Path) -> str:
    """The authors and the year of a reference file: its line "# CITE: …", or its name."""
    for line in read_text(path).splitlines():
        if line.startswith("# CITE:"):
            return one_line(line.removeprefix("# CITE:").strip(), 60)
    return path.stem


def read_reference(path: Path) -> tuple[list[str], np.ndarray]:
    """Column names and numbers (points, columns) of a reference file; empty entries become nan."""
    try:
        lines = read_text(path).splitlines()
        lines = [line for line in lines if line.strip() and not line.startswith("#")]
        names, *rows = csv.reader(lines)
        table = np.array([[float(entry or "nan") for entry in row] for row in rows])
    except (NotATextFile, OSError, ValueError) as error:
        raise CommandError(
            f"{path}: cannot be read as a reference ({error}); allowed: a line of column names, "
            "then lines of as many numbers, as in cases/reference"
        ) from error
    if not rows:
        raise CommandError(f"{path}: has column names but no points below them")
    if names[0] not in COORDINATES:
        raise CommandError(
            f"{path}: the columns are {','.join(names)}; a reference has a coordinate x, y or z, "
            "then u, v, w or u_Re<number>, …; or yplus, then Uplus, uu, vv, ww, uv"
        )
    return names, table


def interpolate(x: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Cubic Lagrange interpolation through the four nearest points, with an error of O(h^4)."""
    order = min(4, len(x))
    first = np.clip(np.searchsorted(x, at) - order // 2, 0, len(x) - order)
    near = first[:, None] + np.arange(order)
    result = np.zeros(len(at))
    for k in range(order):
        others = np.delete(near, k, axis=1)
        apart = x[near[:, [k]]] - x[others]
        result += values[near[:, k]] * ((at[:, None] - x[others]) / apart).prod(axis=1)
    return result
