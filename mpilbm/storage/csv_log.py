"""A CSV file to which a run appends one row at a time, and continues after a restart."""

import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from pathlib import Path
from time import monotonic
from typing import IO, Protocol

from mpilbm.core.errors import FileSystemError
from mpilbm.core.files import is_number
from mpilbm.storage import sync, system_errors, tables, whole
from mpilbm.storage.tables import DamagedRowsError, Entry, digests_of

# Rows are passed to the system at once, so that other programs see them. They are written to the
# disk after this time and with each checkpoint; it limits what a power failure can take.
SYNC_SECONDS = 30.0

COEFFICIENTS = ("c_d", "c_l", "c_s")  # of drag, lift and side force


def short(column: str) -> str:
    """The name of a column without its unit or direction: c_l of "c_l +z"."""
    return column.partition(" ")[0]


class Synced(Protocol):
    """An open file with rows, or files that a thread writes, for which a checkpoint waits."""

    def sync(self) -> None:
        """Write all of it to the disk and wait for it; in any thread."""


def lines(content: bytes) -> list[str]:
    """The complete lines of a file.

    A crash or power failure can leave an incomplete line at the end, or zeros in place of bytes
    that did not reach the disk; these are omitted.
    """
    complete, _, _ = content.rstrip(b"\0").rpartition(b"\n")
    return complete.decode(errors="backslashreplace").split("\n") if complete else []


def up_to(last: int, rows: list[str], columns: int, path: Path, each: int = 1) -> list[str]:
    """The rows up to the step `last`; FileSystemError for a row that `Rows` cannot have written.

    `each`: the rows of a step. A last step with fewer rows is omitted.
    """
    kept: list[str] = []
    previous: int | None = None
    for number, row in enumerate(rows, 2):
        complete = len(kept) % each == 0
        if previous == last and complete:
            break  # the rows that follow are not needed, and a power failure may have damaged them
        values = row.split(",")
        step = int(values[0]) if re.fullmatch("[0-9]{1,18}", values[0]) else None
        grows = previous is None or (step is not None and step > previous)
        follows = step is not None and (grows if complete else step == previous)
        if not follows or len(values) != columns or not all(map(is_number, values)):
            above = "a step" if previous is None else f"a step above {previous}"
            above = above if complete else f"the step {previous}"
            raise FileSystemError(
                f"{path}: line {number} is damaged: found {row[:80]!r}, allowed: {columns} "
                f"numbers, the first {above}; correct or remove it, or move the "
                "file elsewhere"
            )
        if step is None or step > last:
            break
        previous = step
        kept.append(row)
    return kept[: len(kept) // each * each]


def intact_rows(path: Path, last: int | None = None) -> list[str]:
    """The header and the rows of a CSV file, up to the step `last` if it is given, verified.

    All rows of a file without digests, which earlier versions wrote. Raises DamagedRowsError, whose
    `number` is that of the line.
    """
    found = _digests(path)  # first: rows that are added meanwhile have no digest yet
    header, *rows = lines(path.read_bytes()) or [""]
    if found is None:
        return [header, *rows]
    begin, entries = found
    if begin != _checksum(header):
        raise DamagedRowsError(1, "the checksum of the header is wrong")
    groups = [(step, list(of_step)) for step, of_step in groupby(rows, _step)]
    if last is None and len(groups) > len(entries) + 1:  # rows and digests were added meanwhile
        _, entries = _digests(path) or found
        entries = entries[: len(groups)]
    steps = [step for step, _ in groups]
    begins = list(accumulate((len(each) for _, each in groups), initial=0))
    try:
        count = tables.verified(
            entries, steps, lambda k: _bytes(groups[k][1]), _checksum(header), last
        )
    except DamagedRowsError as error:
        raise DamagedRowsError(2 + begins[error.number], str(error)) from None
    return [header, *rows[: begins[count]]]


def _digests(path: Path) -> tuple[int | None, list[Entry]] | None:
    """The checksum of the header and the entries of a CSV file; None if it has no digests."""
    try:
        return tables.parsed(lines(digests_of(path).read_bytes()))
    except FileNotFoundError:
        return None


def _bytes(rows: Sequence[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def _checksum(header: str) -> int:
    return zlib.crc32(_bytes([header]))


def _step(row: str) -> int | None:
    """The step at the beginning of a row; None if it is damaged."""
    found = re.match("[0-9]{1,18}(?=,)", row)
    return int(found[0]) if found else None


class Rows:
    """An open CSV file, on one rank, with `each` rows a step. Numbers are written with all digits.

    Its digests are in a file next to it, see tables. `kept`: the rows that a restart keeps.
    """

    def __init__(self, path: Path, header: list[str], first_step: int, each: int = 1):
        self.path, self.header, self.each = path, ",".join(header), each
        rows = self._to_keep(first_step) if first_step else []
        self.kept = rows
        groups = [rows[k : k + each] for k in range(0, len(rows), each)]
        begin = self._crc = _checksum(self.header)
        kept = [(int(group[0].partition(",")[0]), _bytes(group)) for group in groups]
        entries = list(tables.chained(kept, begin))
        if entries:
            self._crc = entries[-1].crc
        # digests of other rows would show damage if a crash kept the new ones from being written
        digests_of(path).unlink(missing_ok=True)
        with whole(path) as file:
            file.writelines(f"{row}\n" for row in [self.header, *rows])
        with whole(digests_of(path)) as file:
            file.write(tables.text_of(begin, entries))
        # unbuffered: if the disk is full, closing a file does not try to write again
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115 (open for the whole run)
        self.digests = open(digests_of(path), "ab", buffering=0)  # noqa: SIM115
        self._synced = monotonic()

    def _to_keep(self, last: int) -> list[str]:
        """The rows up to the step of the restart; a file with other columns is renamed."""
        if not self.path.exists():
            return []
        try:
            header, *rows = intact_rows(self.path, last)
        except DamagedRowsError as error:
            raise FileSystemError(
                f"{self.path}: line {error.number} is damaged: {error} (compared with "
                f"{digests_of(self.path).name}); {tables.FIX}"
            ) from None
        if rows and header != self.header:
            tables.set_aside([self.path], last, "columns")
            return []
        return up_to(last, rows, self.header.count(",") + 1, self.path, self.each)

    def add(self, step: int, values: Iterable[float]) -> None:
        """Write the row of a step; OSError with the name of the file if that fails."""
        self.add_all(step, [values])

    def add_all(self, step: int, rows: Iterable[Iterable[float]]) -> None:
        """Write the rows of a step; OSError with the name of the file if that fails."""
        numbers = ([str(step), *(repr(float(value)) for value in row)] for row in rows)
        content = "".join(",".join(row) + "\n" for row in numbers).encode()
        (entry,) = tables.chained([(step, content)], self._crc)
        with system_errors(self.path):
            _append(self.file, content)
            _append(self.digests, tables.line_of(entry).encode())
        self._crc = entry.crc
        if monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Write all rows to the disk and wait for it."""
        with system_errors(self.path):
            sync(self.path)
            sync(digests_of(self.path))
        self._synced = monotonic()

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        self.digests.close()


def _append(file: IO[bytes], rest: bytes) -> None:
    while rest:
        rest = rest[file.write(rest) :]
