"""An HDF5 table to which a run appends rows, readable at any time, also after the run was killed.

The datasets are contiguous and have places for all rows of the run. HDF5 creates the complete file
once; rows are then written to their known places, and HDF5 is not involved (SWMR of HDF5 requires
the writer to close the file: after `kill -9` a tool must repair it). The step of a row is written
last, so that a reader finds complete rows only:

    /step   int64 (rows,), -1 for rows that have not been written
    /time   float64 (rows,)
    /…      float64 (rows, …), each field; values of rows that are not written are undefined

A file without data in its last rows takes no space there on most file systems.
"""

import os
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.storage.csv_log import SYNC_SECONDS
from mpilbm.storage.files import sync, system_errors, whole
from mpilbm.storage.places import Place, dataset, find_places
from mpilbm.system import terminal

if TYPE_CHECKING:
    import h5py

Rows = dict[str, np.ndarray]
NOT_WRITTEN = -1


class Series:
    """An open table, on one rank; `describe(file)` adds attributes and other datasets.

    fields      {name: shape of a row}, besides `step` and `time`
    first_step  the step of a restart: rows up to it are kept
    capacity    rows that are expected; more are possible
    """

    def __init__(
        self,
        path: Path,
        fields: Mapping[str, tuple[int, ...]],
        first_step: int,
        capacity: int,
        describe: Callable[["h5py.File"], None],
    ):
        self.path, self.describe = path, describe
        self.shapes = {"step": (), "time": (), **fields}
        kept = self._to_keep(first_step) if first_step else self._empty()
        self.count = len(kept["step"])
        self._create(kept, self.count + max(1, capacity))

    def _empty(self) -> Rows:
        return {name: np.zeros((0, *shape), kind(name)) for name, shape in self.shapes.items()}

    def _to_keep(self, last: int) -> Rows:
        """The rows up to the step of the restart; a file with other columns is renamed."""
        if not self.path.exists():
            return self._empty()
        try:
            rows = read(self.path, tuple(self.shapes))
            if any(rows[name].shape[1:] != shape for name, shape in self.shapes.items()):
                raise KeyError("shape")
        except (OSError, RuntimeError, KeyError):
            aside = self.path.with_stem(f"{self.path.stem}_before_{last:09d}")
            os.replace(self.path, aside)
            terminal.print_line(
                f"{self.path.name} starts again, with other columns; its previous rows: {aside}"
            )
            return self._empty()
        keep = rows["step"] <= last
        return {name: values[keep] for name, values in rows.items()}

    def _create(self, kept: Rows, capacity: int) -> None:
        """Create the file with these rows, and places for `capacity` rows."""
        import h5py

        with whole(self.path, "w+b") as stream, system_errors(self.path):
            with h5py.File(stream, "w") as file:
                for name, shape in self.shapes.items():
                    dataset(file, name, (capacity, *shape), kind(name))
                self.describe(file)
                places = find_places(file)
            self.places = {name: places[name] for name in self.shapes}
            ends = [place.offset + place.bytes for place in places.values()]
            stream.truncate(max(stream.seek(0, os.SEEK_END), *ends))
            stream.flush()
            missing = np.full(capacity - self.count, NOT_WRITTEN, np.int64)
            steps = np.concatenate([kept["step"], missing])
            for name, values in (kept | {"step": steps}).items():
                write_all(stream.fileno(), values, self.places[name].offset)
        self.capacity = capacity
        self._number = os.open(self.path, os.O_RDWR)
        self._synced = monotonic()

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Write a row: `time` and the fields. OSError with the name of the file if that fails."""
        if self.count == self.capacity:
            self._rewrite(2 * self.capacity)
        with system_errors(self.path):
            for name, value in values.items():
                self._put(name, value)
            self._put("step", step)
        self.count += 1
        if monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def _put(self, name: str, value: Any) -> None:
        place = self.places[name]
        row = np.broadcast_to(np.asarray(value, kind(name)), self.shapes[name])
        write_all(self._number, row, place.offset + self.count * row_bytes(place))

    def _rewrite(self, capacity: int) -> None:
        """Create the file again with places for so many rows."""
        rows = read(self.path, tuple(self.shapes))
        os.close(self._number)
        self._create(rows, capacity)

    def sync(self) -> None:
        """Write all rows to the disk and wait for it."""
        with system_errors(self.path):
            sync(self.path)
        self._synced = monotonic()

    def close(self) -> None:
        """Close the file; it then has the places of its rows only."""
        if self.count < self.capacity:
            self._rewrite(max(1, self.count))
        os.close(self._number)


def kind(name: str) -> str:
    """The type of a dataset."""
    return "int64" if name == "step" else "float64"


def row_bytes(place: Place) -> int:
    """Bytes of a row of a dataset."""
    return prod(place.shape[1:]) * np.dtype(place.dtype).itemsize


def write_all(number: int, values: np.ndarray, offset: int) -> None:
    """Write an array to a place of an open file."""
    rest = values.tobytes()
    while rest:
        written = os.pwrite(number, rest, offset)
        rest, offset = rest[written:], offset + written


def read(path: Path, names: tuple[str, ...] | None = None) -> Rows:
    """The complete rows of a table, {name: (rows, …)}; OSError or KeyError if it is none."""
    import h5py

    with h5py.File(path, "r", locking=False) as file:
        steps = file["step"][:]
        count = int(np.argmax(steps < 0)) if (steps < 0).any() else len(steps)
        if names is None:
            names = tuple(
                n for n, d in file.items() if getattr(d, "maxshape", ())[:1] == (len(steps),)
            )
        return {name: file[name][:count] for name in names}
