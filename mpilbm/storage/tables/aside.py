"""Sets files aside at a restart, because the new ones differ in more than their rows.

At a restart from the step N, `a.csv` becomes `a_before_N.csv`, and a file of a series,
`a_<step>.vtkhdf`, becomes `a_before_N_<step>.vtkhdf`. No existing file is replaced.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from mpilbm.core.machine import terminal
from mpilbm.storage.files import whole
from mpilbm.storage.tables.digests import digests_of

BEFORE = "_before_[0-9]{9,}(_[0-9]{1,8})?"  # the part that is inserted, as a regular expression
SERIES = ".series"  # of a file with the names of others, see outputs.images.series


def set_aside(paths: Sequence[Path], last: int, what: str) -> None:
    """Rename files, a CSV file with its digests, and report it; the new ones have other `what`."""
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
