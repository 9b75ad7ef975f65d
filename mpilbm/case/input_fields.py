"""Fields of snapshots that a case reads."""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os.path import exists  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.case.quantities import in_lattice_units
from mpilbm.core.files.hdf5 import (
    Hdf5File,
    Values,
    attribute,
    dataset_names,
    opened,
    require_intact,
    values,
)
from mpilbm.core.files.input_arrays import RELATIVE
from mpilbm.core.units import LATTICE_UNIT

Shape = tuple[int, int, int]  # (planes, rows, nx)


def resampled(
    field: Any, shape: Shape, periodic: tuple[bool, ...], begin: int, end: int
) -> np.ndarray:
    """The planes begin … end - 1 of a field (nz, ny, nx, …), float64 (n, rows, nx, …).

    If the size of the field is not `shape` = (planes, rows, nx), the values are resampled by linear
    interpolation between cell centres along each axis; both boxes are taken to have the same side
    lengths. Periodic directions wrap; in others the values are constant beyond the outermost
    centres. The values of a plane do not depend on begin and end, so that results do not depend on
    the number of ranks.
    """
    return np.stack([_resampled(field, shape, periodic, plane) for plane in range(begin, end)])


def in_lattice(field: Values, index: Any) -> np.ndarray:
    """Values of a field of a snapshot in lattice units, float64; with [units] it is in SI."""
    return field[index].astype(np.float64) / (field.attribute(LATTICE_UNIT) or 1.0)


class SnapshotField:
    """A field of a snapshot in lattice units, which is read where it is indexed."""

    def __init__(self, stored: Values):
        self._stored, self.shape = stored, stored.shape

    def __getitem__(self, index: Any) -> np.ndarray:
        return in_lattice(self._stored, index)


@contextmanager
def snapshot_fields(path: Path, dimensions: int) -> Iterator[dict[str, SnapshotField]]:
    """The datasets rho and u of a snapshot by name, checked but not read; ValueError otherwise."""
    if not exists(path):
        raise ValueError(f"is missing: there is no such file; {RELATIVE}")
    require_intact(path)
    with opened(path) as file:
        found = {name: values(file, f"VTKHDF/CellData/{name}", "f") for name in ("rho", "u")}
        cells = {name: each for name, each in found.items() if each is not None}
        missing = [name for name in found if name not in cells]
        if missing:
            raise ValueError(
                f"is not a snapshot with rho and u: it has no {', '.join(missing)}; it has "
                f"{', '.join(dataset_names(file)) or 'no dataset'}; write a snapshot with "
                'fields = ["rho", "u"]'
            )
        size = snapshot_case(file)["domain"]["size"]
        if len(size) != dimensions:
            raise ValueError(f"has {len(size)} dimensions, the case {dimensions}; use another file")
        require_cells(cells["rho"], "rho", size)
        require_cells(cells["u"], "u", size, (3,))
        yield {name: SnapshotField(each) for name, each in cells.items()}


def snapshot_case(file: Hdf5File) -> dict:
    """The tables of the case in an open snapshot, in lattice units, with a valid domain.size."""
    text = attribute(file, "mpilbm", "case", str)
    try:
        case, *_ = in_lattice_units(tomllib.loads(text))
        size = case["domain"]["size"]
        if len(size) in (2, 3) and all(type(n) is int and n > 0 for n in size):
            return case
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        pass
    raise ValueError("is not a snapshot of mpilbm: its case has no domain.size; use another file")


def require_cells(
    field: Values, name: str, size: Sequence[int], axes: tuple[int, ...] = ()
) -> None:
    """ValueError unless a field of a snapshot has values for all cells of a box."""
    wanted = (*(1,) * (3 - len(size)), *reversed(size), *axes)
    if field.shape != wanted:
        raise ValueError(
            f"is not a snapshot of mpilbm: '{name}' has shape {field.shape}, its box requires "
            f"{wanted}; use another file"
        )
    field.require_stored()


def _resampled(field: Any, shape: Shape, periodic: tuple[bool, ...], plane: int) -> np.ndarray:
    """A plane of a field, (rows, nx, …), by linear interpolation."""
    flat = len(periodic) == 2
    old = field.shape[:3] if not flat else (field.shape[1], 1, field.shape[2])
    wraps = (periodic[-1], periodic[1] if not flat else True, periodic[0])
    (low, high, share), *others = (
        _between(np.arange(new), new, count, wrap)
        for new, count, wrap in zip(shape, old, wraps, strict=True)
    )
    below, above = (_plane(field, flat, int(k[plane])) for k in (low, high))
    values = _mixed(below, above, share[plane])
    for axis, (low, high, share) in enumerate(others):
        weight = share.reshape([-1 if k == axis else 1 for k in range(values.ndim)])
        values = _mixed(np.take(values, low, axis), np.take(values, high, axis), weight)
    return values


def _plane(field: Any, flat: bool, plane: int) -> np.ndarray:
    here = (slice(None), slice(plane, plane + 1)) if flat else plane
    values = np.asarray(field[here], np.float64)
    return values[0] if flat else values


def _between(
    k: np.ndarray, new: int, old: int, wraps: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The old cells on either side of the new centres k, and the weight of the upper one."""
    place = (k + 0.5) * (old / new) - 0.5
    low = np.floor(place).astype(int)
    share = place - low
    if wraps:
        return low % old, (low + 1) % old, share
    return np.clip(low, 0, old - 1), np.clip(low + 1, 0, old - 1), share


def _mixed(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    return a + share * (b - a)
