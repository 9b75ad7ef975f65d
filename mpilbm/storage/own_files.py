"""Which files of an output folder mpilbm wrote, and how those of an earlier run are replaced.

With --overwrite the files of the earlier run stay in place until the new case is known to run: it
may read them. Then they move into the subfolder `mpilbm.replaced`, and after the checks of the
first state they are deleted. A start that fails before moves them back, and where it was killed
the next start does.
"""

import os
import re
from pathlib import Path

from mpilbm import registry
from mpilbm.case.tables import LABEL
from mpilbm.errors import CommandError
from mpilbm.storage.file_system import PROBE
from mpilbm.storage.files import PARTIAL

SUMMARY = "summary.json"
REPLACED, DELETED = "mpilbm.replaced", "mpilbm.deleted"
# Expressions for the variable parts of names in Output.files.
PARTS = {
    "<step>": "[0-9]{9,}",
    "<label>": f"({LABEL.strip('^$')}|[0-9]+)",
    "<axes>": "(x?y?z?|all)",
    "*": ".*",
}


def owned(directory: Path) -> list[Path]:
    """The files in a folder that mpilbm wrote, by their whole names; links to folders are not."""
    names = [SUMMARY]
    for output in registry.names("outputs"):
        names += registry.find("outputs", output).files
    pattern = re.compile("|".join(map(_expression, names)))
    return sorted(
        path
        for path in directory.iterdir()
        if not path.is_dir()
        and (path.name == PROBE or pattern.fullmatch(path.name.removesuffix(PARTIAL)))
    )


def _expression(name: str) -> str:
    """A regular expression for a name of Output.files."""
    parts = re.split(r"(<[a-z]+>|\*)", name)
    return "".join(PARTS.get(part, re.escape(part)) for part in parts)


def bytes_of(paths) -> int:
    """Bytes on the disk that deleting these files would free."""
    return sum(512 * os.lstat(path).st_blocks for path in paths)


def set_aside(directory: Path, paths) -> None:
    """Move files of an earlier run into the subfolder."""
    for name in (REPLACED, DELETED):
        if os.path.lexists(directory / name):
            raise CommandError(
                f"{directory / name}: this name is reserved for files that --overwrite replaces; "
                "move what is there to another place"
            )
    aside = directory / REPLACED
    aside.mkdir()
    for path in paths:
        os.replace(path, aside / path.name)


def restore(directory: Path) -> int:
    """Move the files of an earlier run back from the subfolder; how many there were.

    A file of ours that has one of their names belongs to a start that made no step, and is
    replaced; no other file is.
    """
    aside, ours, count = directory / REPLACED, set(owned(directory)), 0
    for path in _files(aside):
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
    """Delete what an interrupted `discard` left: files of ours alone."""
    gone = directory / DELETED
    for path in owned(gone) if _files(gone) else ():
        path.unlink()
    _remove(gone)


def _files(folder: Path) -> list[Path]:
    """What is in a folder of ours except folders; nothing if it is a link or not there."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.is_symlink() or not path.is_dir()]


def _remove(folder: Path) -> None:
    """Remove a folder of ours if it is there and empty."""
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()
