"""Tables that grow during a run: checksums of their rows, and names of earlier tables.

A table has an entry for the rows of each step: the step, and a checksum that continues the previous
one, so that missing rows and rows in another order are found, too:

    crc_k = crc32(bytes of the rows of step k, crc_(k-1))

An entry is written after its rows, and entries reach the disk with the rows. So after `kill -9`
only the rows of the last step may have no entry. A CSV file has its entries in `<file>.digests`,
since its own rows contain columns only; an HDF5 table has them in a dataset.
"""

import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mpilbm.core.machine import terminal
from mpilbm.storage import whole

ENDING = ".digests"
ENTRY = re.compile("([0-9]{1,18}) ([0-9a-f]{8})")
FIX = "move the file elsewhere, with its digests if it has any, and the table starts again"


class Entry(NamedTuple):
    """The step of some rows, and the checksum of these and all earlier rows."""

    step: int
    crc: int


class DamagedRowsError(ValueError):
    """Rows that differ from those written; `number` counts the steps with rows from 0."""

    def __init__(self, number: int, problem: str):
        super().__init__(problem)
        self.number = number


def verified(
    entries: Sequence[Entry],
    steps: Sequence[int | None],
    row: Callable[[int], bytes],
    begin: int = 0,
    last: int | None = None,
) -> int:
    """The number of steps up to `last` (None: all) whose rows are intact; others must not exist.

    steps   the step of each row or group of rows in the file, None if it cannot be read
    row     the bytes of the k-th of them
    begin   the checksum that the first entry continues

    Rows of one step more, the last ones, may have no entry. What follows the step `last` is not
    used: a power failure may have damaged it. Raises DamagedRowsError.
    """

    def wanted(step: int | None) -> bool:
        return step is not None and step >= 0 and (last is None or step <= last)

    count = next((k for k, each in enumerate(entries) if not wanted(each.step)), len(entries))
    crc = begin
    for k, entry in enumerate(entries[:count]):
        if k >= len(steps):
            raise DamagedRowsError(k, f"the rows from step {entry.step} on are missing")
        crc = zlib.crc32(row(k), crc)
        if steps[k] != entry.step or crc != entry.crc:
            raise DamagedRowsError(k, f"the checksum of step {entry.step} is wrong")
    more = range(count, len(steps))
    rest = [k for k in more if last is None or wanted(steps[k])]
    further = entries[count:] if last is None or rest else []
    if rest not in ([], [count]) or further or any(wanted(e.step) for e in entries[count:]):
        raise DamagedRowsError(count, "rows have no valid checksum")
    return count + len(rest)


def chained(rows: Sequence[tuple[int, bytes]], begin: int = 0) -> Iterator[Entry]:
    """The entries of rows, given as the step and the bytes of each step."""
    for step, content in rows:
        begin = zlib.crc32(content, begin)
        yield Entry(step, begin)


def digests_of(path: Path) -> Path:
    """The file with the entries of a CSV file."""
    return path.with_name(path.name + ENDING)


def text_of(begin: int, entries: Sequence[Entry]) -> str:
    """The content of such a file: the checksum of the header, and a line for each entry."""
    return f"{begin:08x}\n" + "".join(line_of(entry) for entry in entries)


def line_of(entry: Entry) -> str:
    """The line of an entry."""
    return f"{entry.step} {entry.crc:08x}\n"


def parsed(lines: Sequence[str]) -> tuple[int | None, list[Entry]]:
    """The checksum of the header, None if it cannot be read, and the entries up to a damaged one.

    A damaged entry is returned as one of the step -1, and ends the list.
    """
    begin = int(lines[0], 16) if lines and re.fullmatch("[0-9a-f]{8}", lines[0]) else None
    entries = []
    for line in lines[1:]:
        found = ENTRY.fullmatch(line)
        entries.append(Entry(int(found[1]), int(found[2], 16)) if found else Entry(-1, 0))
        if found is None:
            break
    return begin, entries


BEFORE = "_before_[0-9]{9,}(_[0-9]{1,8})?"  # the part that is inserted, as a regular expression
SERIES = ".series"  # of a file with the names of others, see outputs/images/vtkhdf.py


def set_aside(paths: Sequence[Path], last: int, what: str) -> None:
    """Rename files at a restart from the step `last`, because the new ones have other `what`.

    At the step N, `a.csv` with its digests becomes `a_before_N.csv`, and a file of a series,
    `a_<step>.vtkhdf`, becomes `a_before_N_<step>.vtkhdf`. No existing file is replaced.
    """
    number = 1
    while any(os.path.lexists(_aside(path, last, number)) for path in paths):
        number += 1
    for path in paths:
        target = _aside(path, last, number)
        os.replace(path, target)  # the table first: digests without a table have no meaning
        if os.path.lexists(digests_of(path)):
            os.replace(digests_of(path), digests_of(target))
        if path.suffix == SERIES:
            _rename_members(path, target)
    if paths:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        terminal.print_line(
            f"{paths[0].name}{more}: the output has other {what} and starts again; its previous "
            f"content: {_aside(paths[0], last, number)}{more}"
        )


def _aside(path: Path, last: int, number: int) -> Path:
    stem, step, ending = parts_of(path.name)
    again = f"_{number}" if number > 1 else ""
    return path.with_name(f"{stem}_before_{last:09d}{again}{step}{ending}")


def parts_of(name: str) -> tuple[str, str, str]:
    """The name of a file before its step, "_<step>" or "", and what follows."""
    found = re.fullmatch(r"([^.]*?)((?:_(?:[0-9]{9,}|<step>))?)(\..*)?", name, re.DOTALL)
    assert found is not None, "any name has this form"
    return found[1], found[2], found[3] or ""


def _rename_members(path: Path, series: Path) -> None:
    """Replace the names of the files in a series, which were renamed with it."""
    old, new = (f'"{each.name.partition(".")[0]}_' for each in (path, series))
    text = series.read_text("utf-8")
    with whole(series) as file:
        file.write(text.replace(old, new))
