"""Reads files of spheres: rows of a centre and a radius."""

from collections.abc import Iterator
from math import isfinite
from os.path import isfile  # False for a name that is too long
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.input_arrays import RELATIVE
from mpilbm.core.files.input_text import NotATextFile, is_number, read_text

MOST = 1 << 30  # bytes


def read_spheres(path: Path, dimensions: int) -> NDArray[np.float64]:
    """Return the rows (x, y[, z], r) of a CSV file, float64 (n, dimensions + 1).

    Columns are separated by commas, semicolons or spaces; text after # and empty lines are skipped.
    The first row may hold the names of the columns. Raises ValueError, with the number of the line,
    for rows that are not spheres.
    """
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; {RELATIVE}")
    try:
        text = read_text(path, "utf-8-sig", MOST)
    except NotATextFile as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}; name a file of spheres") from None
    names = [*"xyz"[:dimensions], "r"]
    rows = [_sphere(number, row, names) for number, row in _rows(text, names)]
    if not rows:
        raise ValueError(f"holds no sphere; write rows of {', '.join(names)}")
    return np.array(rows, np.float64)


def _rows(text: str, names: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The number and the entries of each row, without the names of columns in the first one."""
    first = True
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.partition("#")[0].strip()
        if not plain:
            continue
        entries = plain.replace(";", ",").split(",") if set(plain) & set(",;") else plain.split()
        entries = [entry.strip().strip('"') for entry in entries]
        if first and not any(map(is_number, entries)):
            _check_names(number, entries, names)
        else:
            yield number, entries
        first = False


def _check_names(number: int, found: list[str], names: list[str]) -> None:
    """Raise ValueError if the first row names the columns in another order."""
    given = [name.lower() for name in found]
    if sorted(given) == sorted(names) and given != names:
        raise ValueError(
            f"line {number}: found the columns {', '.join(found)}; allowed: {', '.join(names)}, in "
            "this order"
        )


def _sphere(number: int, entries: list[str], names: list[str]) -> list[float]:
    """The numbers of a row."""
    if len(entries) != len(names):
        raise ValueError(
            f"line {number}: found {len(entries)} columns; allowed: {len(names)} "
            f"({', '.join(names)}) in {len(names) - 1}D"
        )
    for name, entry in zip(names, entries, strict=True):
        if not is_number(entry) or not isfinite(float(entry)):
            raise ValueError(f"line {number}: {name} = '{entry}' is not a number; correct the row")
    row = list(map(float, entries))
    if row[-1] <= 0:
        raise ValueError(
            f"line {number}: r = {row[-1]:g}; allowed: a radius above 0; correct or remove the row"
        )
    return row
