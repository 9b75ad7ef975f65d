"""Finds the files in an output folder that mpilbm wrote, and replaces those of an earlier run.

With --overwrite the files of the earlier run stay in place until the new case has been checked: it
may read them. Then they are moved to the subfolder `mpilbm.replaced`, and deleted after the first
state of the new run has been checked. A start that fails before that moves them back; if it was
killed, the next start does.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from mpilbm.case.tables import LABEL
from mpilbm.core import registry
from mpilbm.core.errors import CommandError
from mpilbm.storage import PARTIAL
from mpilbm.storage.file_system import PROBE
from mpilbm.storage.lock import LOCK
from mpilbm.storage.tables import BEFORE, ENDING, parts_of

SUMMARY = "summary.json"
STEADY = "steady.csv"  # the residuals of run.steady
REPORT = "report.html"  # the page of the run
DEFINITIONS = "outputs.json"  # what the files of each output contain
REPLACED, DELETED = "mpilbm.replaced", "mpilbm.deleted"
# Regular expressions for the variable parts of names in Output.files.
PARTS = {
    "<step>": "[0-9]{9,}",
    "<label>": f"({LABEL.strip('^$')}|[0-9]+)",
    "<axes>": "(x?y?z?|all)",
    "*": ".*",
}


def owned(directory: Path) -> list[Path]:
    """The files in a folder that mpilbm wrote, by their complete names; no links to folders."""
    found = [path for path in directory.iterdir() if not path.is_dir()]
    known = _names() if any(path.name not in (PROBE, LOCK) for path in found) else None
    return sorted(
        path
        for path in found
        if path.name == PROBE or (known and known.fullmatch(_complete(path.name)))
    )


def _names() -> re.Pattern[str]:
    """A pattern of the names of all files of a run; imports the modules of all outputs."""
    names = [SUMMARY, STEADY, REPORT, DEFINITIONS]
    for name in registry.names("outputs"):
        names += registry.find("outputs", name).files
    return re.compile("|".join(map(_with_aside, names)))


def _complete(name: str) -> str:
    """The name of a file without that of a rank, if it is a part, and without PARTIAL.

    For the digests of a CSV file, the name of this file.
    """
    name = re.sub(rf"(\.[0-9]+)?{re.escape(PARTIAL)}$", "", name)
    return name.removesuffix(ENDING) if name.endswith(f".csv{ENDING}") else name


def _with_aside(name: str) -> str:
    """A regular expression for a name of Output.files, also of a file that was set aside."""
    stem, step, ending = (expression(part) for part in parts_of(name))
    return f"{stem}({BEFORE})?{step}{ending}"


def expression(name: str) -> str:
    """A regular expression for a part of a name of Output.files."""
    parts = re.split(r"(<[a-z]+>|\*)", name)
    return "".join(PARTS.get(part, re.escape(part)) for part in parts)


def bytes_of(paths: Iterable[Path]) -> int:
    """Bytes on the disk that deleting these files would free."""
    return sum(512 * os.lstat(path).st_blocks for path in paths)


def set_aside(directory: Path, paths: Iterable[Path]) -> None:
    """Move files of an earlier run to the subfolder."""
    for name in (REPLACED, DELETED):
        if os.path.lexists(directory / name):
            raise CommandError(
                f"{directory / name}: this name is reserved for files that --overwrite replaces; "
                "move the existing one to another place"
            )
    aside = directory / REPLACED
    aside.mkdir()
    for path in paths:
        os.replace(path, aside / path.name)


def restore(directory: Path) -> int:
    """Move the files of an earlier run back from the subfolder; returns their number.

    A file of mpilbm with the same name belongs to a start that made no step, and is replaced; any
    other file is not.
    """
    aside, count = directory / REPLACED, 0
    moved = _files(aside)
    ours = set(owned(directory)) if moved else set()
    for path in moved:
        target = directory / path.name
        if target in ours or not os.path.lexists(target):
            os.replace(path, target)
            count += 1
    _remove(aside)
    return count


def discard(directory: Path) -> None:
    """Delete the files in the subfolder; if interrupted, the next start deletes the rest."""
    os.rename(directory / REPLACED, directory / DELETED)
    finish_discarding(directory)


def finish_discarding(directory: Path) -> None:
    """Delete the files that an interrupted `discard` has not deleted; only files of mpilbm."""
    gone = directory / DELETED
    for path in owned(gone) if _files(gone) else ():
        path.unlink()
    _remove(gone)


def _files(folder: Path) -> list[Path]:
    """The files in a subfolder of mpilbm; none if it is a link or does not exist."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.is_symlink() or not path.is_dir()]


def _remove(folder: Path) -> None:
    """Remove a subfolder of mpilbm if it exists and is empty."""
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


PATTERN = "checkpoint_*.h5"  # checkpoint_<step>.h5, the step with at least nine digits


def existing(directory: Path | str) -> list[tuple[int, Path]]:
    """(step, path) of the checkpoints in a folder, in the order of their steps."""
    steps = ((step_in_name(path), path) for path in Path(directory).glob(PATTERN))
    return sorted((step, path) for step, path in steps if step is not None)


def step_in_name(path: Path | str) -> int | None:
    """The step in the name of a checkpoint; None if the name has another form."""
    match = re.fullmatch(r"checkpoint_([0-9]{9,})\.h5", Path(path).name)
    return int(match[1]) if match else None
