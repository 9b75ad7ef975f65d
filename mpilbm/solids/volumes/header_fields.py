"""Values of text headers of volumes, and the data that they describe.

All problems raise a ValueError whose text follows the name of the file.
"""

import re
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.input_arrays import AGAIN
from mpilbm.core.units import counted
from mpilbm.solids.volumes.volume import mapped

INTEGER = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)


def raw_data(
    path: Path, dtype: np.dtype, shape: tuple[int, ...], begin: int, skip: int, key: str
) -> NDArray[Any]:
    """An array [slowest, …, fastest axis] of a file with a header, mapped into memory.

    begin: the first byte behind the header, 0 in a file without one; skip: the value of `key` in
    the header, the bytes between `begin` and the data, or -1 if the data are the end of the file.
    Raises ValueError, whose text follows the name of the file.
    """
    if skip < -1:
        raise ValueError(
            f"has {key} {skip} in its header; allowed: 0 or more, or -1 if the data are the end of "
            "the file; correct the header"
        )
    end = path.stat().st_size - prod(shape) * dtype.itemsize
    return mapped(path, dtype, shape, max(begin, end) if skip == -1 else begin + skip)


def integers(text: str, key: str) -> tuple[int, ...]:
    """The integers of the value of a key in a header; ValueError if there is none."""
    parts = text.split()
    if not parts or not all(map(INTEGER.fullmatch, parts)):
        raise ValueError(f"has the {key} '{text}' in its header; allowed: integers; {AGAIN}")
    return tuple(map(int, parts))


def integer(text: str, key: str) -> int:
    """The integer that is the value of a key in a header; ValueError if it is not one."""
    found = integers(text, key)
    if len(found) > 1:
        raise ValueError(f"has the {key} '{text}' in its header; allowed: one integer; {AGAIN}")
    return found[0]


def numbers(text: str, key: str, count: int) -> tuple[float, ...]:
    """The numbers of the value of a key in a header; ValueError unless there are `count`."""
    try:
        found = tuple(map(float, text.split()))
    except ValueError:
        found = ()
    if len(found) != count:
        raise ValueError(f"has the {key} '{text}' in its header; allowed: "
                         f"{counted(count, 'number')}; {AGAIN}")  # fmt: skip
    return found


def refuse_dimensions(given: int, key: str, sizes: tuple[int, ...]) -> None:
    """ValueError if the value of `key` in a header is not the number of sizes."""
    if given != len(sizes):
        raise ValueError(f"has {key} {given} and the size {list(sizes)} in its header; allowed: "
                         f"a number for each dimension; {AGAIN}")  # fmt: skip


def refuse_sizes(sizes: tuple[int, ...]) -> None:
    """ValueError unless there are two or three sizes above 0."""
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ValueError(f"has the size {list(sizes)}; allowed: two or three numbers above 0")
