"""Tables of a run: HDF5 files to which rows are appended, and the base of the writers of tables.

A `Series` is readable at any time, also after the run was killed.
The datasets are contiguous and have places for all rows of the run. HDF5 creates the complete file
once; rows are then written to their known places, and HDF5 is not involved (SWMR of HDF5 requires
the writer to close the file: after `kill -9` a tool must repair it). The step of a row is written
after its values, so that a reader finds complete rows only:

    /step       int64 (rows,), -1 for rows that have not been written
    /time       float64 (rows,)
    /…          float64 (rows, …), each field; values of rows that are not written are undefined
    /row.crc32  int64 (rows, 2): the step again, and the checksum, see storage/tables.py;
                the attribute `columns` has the names of the datasets above

The file ends with a digest of all its bytes but those of the rows, see file_digest.py. A file
without data in its last rows takes no space there on most file systems.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from mpilbm.core.errors import FileSystemError
from mpilbm.core.files.file_digest import trailer_with_gaps
from mpilbm.core.files.hdf5 import Hdf5InputError, open_file, require_intact
from mpilbm.core.units import TIME
from mpilbm.outputs import Context
from mpilbm.outputs.images.vtkhdf import in_si
from mpilbm.parallel import on_root
from mpilbm.storage import sync, system_errors, tables, whole
from mpilbm.storage.csv_log import SYNC_SECONDS, Rows
from mpilbm.storage.partial_file import Place, dataset, find_places
from mpilbm.storage.tables import DamagedRowsError, Entry, set_aside

if TYPE_CHECKING:
    import h5py


Columns = dict[str, np.ndarray]
NOT_WRITTEN = -1
CHECKSUMS = "row.crc32"


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
        self._create(kept, len(kept["step"]) + max(1, capacity))

    def _empty(self) -> Columns:
        return {name: np.zeros((0, *shape), kind(name)) for name, shape in self.shapes.items()}

    def _to_keep(self, last: int) -> Columns:
        """The rows up to the step of the restart; a file with other columns is renamed."""
        if not self.path.exists():
            return self._empty()
        try:
            require_intact(self.path)
        except Hdf5InputError as error:
            raise FileSystemError(f"{self.path}: {error}; {tables.FIX}") from None
        try:
            content = read_all(self.path, tuple(self.shapes))
            if {name: each.shape[1:] for name, each in content.rows.items()} != self.shapes:
                raise KeyError("shape")
        except (OSError, RuntimeError, KeyError):
            set_aside([self.path], last, "columns")
            return self._empty()
        return self._verified(content, last)

    def _verified(self, content: "Content", last: int | None = None) -> Columns:
        """The rows up to a step; FileSystemError if they are damaged."""
        try:
            return content.verified(last)
        except DamagedRowsError as error:
            raise FileSystemError(
                f"{self.path}: row {error.number} is damaged: {error}; {tables.FIX}"
            ) from None

    def _create(self, kept: Columns, capacity: int) -> None:
        """Create the file with these rows, and places for `capacity` rows."""
        self.count, self.capacity = len(kept["step"]), capacity
        rows = [(int(step), row_content(kept, k)) for k, step in enumerate(kept["step"])]
        entries = list(tables.chained(rows))
        self._crc = entries[-1].crc if entries else 0
        with whole(self.path, "w+b") as stream, system_errors(self.path):
            with open_file(stream, "w") as file:
                for name, shape in self.shapes.items():
                    dataset(file, name, (capacity, *shape), kind(name))
                checksums = dataset(file, CHECKSUMS, (capacity, 2), np.int64)
                checksums.attrs["columns"] = ",".join(self.shapes)
                self.describe(file)
                places = find_places(file)
            self.places = {name: places[name] for name in (*self.shapes, CHECKSUMS)}
            ends = [place.offset + place.bytes for place in places.values()]
            size = max(stream.seek(0, os.SEEK_END), *ends)
            stream.truncate(size)
            stream.flush()
            missing = capacity - self.count
            written = kept | {
                "step": np.append(kept["step"], np.full(missing, NOT_WRITTEN)),
                CHECKSUMS: np.array([*entries, *[(NOT_WRITTEN, 0)] * missing], np.int64),
            }
            for name, values in written.items():
                write_all(stream.fileno(), values, self.places[name].offset)
            gaps = [(place.offset, place.offset + place.bytes) for place in self.places.values()]
            end = np.frombuffer(trailer_with_gaps(stream.fileno(), size, gaps), np.uint8)
            write_all(stream.fileno(), end, size)
        self._number = os.open(self.path, os.O_RDWR)
        self._synced = monotonic()

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Write a row: `time` and the fields. OSError with the name of the file if that fails."""
        if self.count == self.capacity:
            self._rewrite(2 * self.capacity)
        row = {name: self._row(name, value) for name, value in {**values, "step": step}.items()}
        (entry,) = tables.chained([(step, row_content(row))], self._crc)
        with system_errors(self.path):
            for name, value in row.items():  # the step is the last one
                self._put(name, value)
            self._put(CHECKSUMS, np.array(entry, np.int64))
        self._crc = entry.crc
        self.count += 1
        if monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def _row(self, name: str, value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, kind(name)), self.shapes[name])

    def _put(self, name: str, row: np.ndarray) -> None:
        place = self.places[name]
        write_all(self._number, row, place.offset + self.count * row_bytes(place))

    def _rewrite(self, capacity: int) -> None:
        """Create the file again with places for so many rows."""
        rows = self._verified(read_all(self.path))
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


def row_content(rows: Mapping[str, np.ndarray], number: int | None = None) -> bytes:
    """The bytes of a row for its checksum: step, time, and the other columns by their names."""
    names = ["step", "time", *sorted(rows.keys() - {"step", "time"})]
    return b"".join((rows[n] if number is None else rows[n][number]).tobytes() for n in names)


def write_all(number: int, values: np.ndarray, offset: int) -> None:
    """Write an array to a place of an open file."""
    rest = values.tobytes()
    while rest:
        written = os.pwrite(number, rest, offset)
        rest, offset = rest[written:], offset + written


class Content(NamedTuple):
    """The content of a table: its columns with places for all rows, and their checksums.

    `checksums` is int64 (rows, 2), or None in a file of an earlier version.
    """

    rows: Columns
    checksums: np.ndarray | None

    @property
    def complete(self) -> Columns:
        """The complete rows."""
        steps = self.rows["step"]
        count = int(np.argmax(steps < 0)) if (steps < 0).any() else len(steps)
        return {name: values[:count] for name, values in self.rows.items()}

    def verified(self, last: int | None = None) -> Columns:
        """The rows up to the step `last`, or all; DamagedRowsError unless they are those written.

        Rows of a file without checksums are not verified.
        """
        if self.checksums is None:
            complete = self.complete
            keep = slice(None) if last is None else complete["step"] <= last
            return {name: values[keep] for name, values in complete.items()}
        steps, known = self.rows["step"], self.checksums
        used = np.flatnonzero(steps != NOT_WRITTEN), np.flatnonzero(known[:, 0] != NOT_WRITTEN)
        rows, entries = (int(each[-1]) + 1 if each.size else 0 for each in used)
        count = tables.verified(
            [Entry(*each) for each in known[: min(rows, entries)].tolist()],  # see read_all
            steps[:rows].tolist(),
            lambda k: row_content(self.rows, k),
            last=last,
        )
        return {name: values[:count] for name, values in self.rows.items()}


def read_all(path: Path, columns: tuple[str, ...] = ()) -> Content:
    """The content of a table; OSError, RuntimeError or KeyError if it is none.

    columns: those of a file of an earlier version, which does not name them; by default all
    datasets with so many rows.
    """
    with open_file(path) as file:
        steps = file["step"]
        if CHECKSUMS in file:
            columns = tuple(file[CHECKSUMS].attrs["columns"].split(","))
        elif not columns:
            shapes = {name: getattr(each, "shape", ()) for name, each in file.items()}
            columns = tuple(name for name, shape in shapes.items() if shape[:1] == steps.shape)
        rows = {name: file[name][:] for name in columns}
        # after the rows: rows that are added meanwhile have a checksum, but not the reverse
        return Content(rows, file[CHECKSUMS][:] if CHECKSUMS in file else None)


def read(path: Path) -> Columns:
    """The complete rows of a table, {name: (rows, …)}; OSError or KeyError if it is none."""
    return read_all(path).complete


AnyTable = TypeVar("AnyTable", Rows, Series)


class TableWriter:
    """An open table, or several; a subclass implements `start` and `add_rows`.

    Rank 0 opens tables by `keep` and writes them; all ranks compute the numbers of their rows.
    """

    def __init__(self, context: Context):
        self.context, self.case, self.comm = context, context.case, context.comm
        self.open_tables: list[Rows | Series] = []  # on rank 0

    def keep(self, table: AnyTable) -> AnyTable:
        """A table that checkpoints sync, and that is closed with this writer; on rank 0."""
        self.open_tables.append(table)
        self.context.rows.append(table)
        return table

    @abstractmethod
    def start(self, step: int) -> Callable[[], Any]:
        """Enqueue the numbers of this step; the result completes them for `add_rows`.

        Both are collective.
        """

    @abstractmethod
    def add_rows(self, step: int, found: Any) -> None:
        """Add the rows of a step; on rank 0, where `found` is the result of `start`."""

    def write(self, step: int) -> None:
        """Enqueue the numbers of this step; rows are written when they are known. Collective."""
        found = self.start(step)
        self.context.samples.add(lambda: on_root(self.comm, self.add_rows, step, found()))

    def time(self, step: float) -> float:
        """The time in seconds with [units], else in steps."""
        return self.case.units.to_si(step, TIME) if self.case.units else float(step)

    def describe_table(self, file: "h5py.File") -> None:
        """The case, the units and the unit of the time of an HDF5 table."""
        units = self.case.units
        file["time"].attrs["unit"] = "s" if units else "steps"
        file.attrs["case"], file.attrs["units"] = self.case.toml, "SI" if units else "lattice"
        file.attrs.update({k: v for k, v in in_si(self.case, 0).items() if k != "time (s)"})

    def close(self) -> None:
        """Close the files."""
        tables, self.open_tables = self.open_tables, []
        for table in tables:
            table.close()
