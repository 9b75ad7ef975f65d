"""The output folder of a run: used by one run at a time, its files, protection from overwriting.

With --overwrite the files of the earlier run stay in place until the new case has been checked: it
may read them. Then they are moved to the subfolder `mpilbm.replaced`, and deleted after the first
state of the new run has been checked. A start that fails before that moves them back; if it was
killed, the next start does.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mpilbm.case.case import Case
from mpilbm.case.initial_files import file_of
from mpilbm.case.tables import LABEL
from mpilbm.core import registry
from mpilbm.core.errors import CaseError, CommandError
from mpilbm.core.files import hdf5
from mpilbm.core.units import counted, in_words
from mpilbm.storage import PARTIAL, obstacle
from mpilbm.storage.file_system import PROBE
from mpilbm.storage.lock import LOCK, NO_LOCKS, FolderLock
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


def default_directory(case_path: Path | str) -> Path:
    """`<file stem>.out` in the current folder."""
    return Path(f"{Path(case_path).stem}.out")


def make_folder(path: Path) -> None:
    """Create a folder and its parents; CommandError unless files can be written in it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        above = (each for each in (path, *path.parents) if os.path.lexists(each))
        found = next((each for each in above if not os.path.isdir(each)), None)
        problem = f"{found} is not a folder" if found else error.strerror
        raise CommandError(
            f"cannot write to the output directory {path}: {problem}; choose another with "
            "--output DIR"
        ) from error


class RunDirectory:
    """The output folder of a run, locked from `claim` to `release`. Used on rank 0."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.notes: list[str] = []
        self._lock = FolderLock(self.path)
        self._made = False
        self._earlier: list[Path] = []  # files that --overwrite replaces
        self._aside = False  # whether they are in the subfolder

    def claim(
        self, case: Case, restart: str | Path | None = None, overwrite: bool = False
    ) -> list[str]:
        """Create and lock the folder; returns notes for the user.

        Without `restart` or `overwrite` it must not hold the files of an earlier run. With
        `overwrite` these are moved by `set_aside` and deleted by `discard`. A run calls this method
        first. Raises CommandError if the folder cannot be used, CaseError if the disk is too small
        or the case reads a file that would be deleted.
        """
        if overwrite and restart is not None:
            raise CommandError(
                f"--restart {restart} --overwrite: a restart continues the files of the earlier "
                "run; remove --overwrite, or write elsewhere with --output DIR"
            )
        hdf5.require()
        self._made = not os.path.lexists(self.path)
        make_folder(self.path)
        self._take_lock()
        try:
            self._recover()
            files = owned(self.path)
            for path in files:  # no output replaces a pipe, a socket or a device
                problem = "" if path.is_symlink() else obstacle(path, overwrite=True)
                if problem:
                    raise CommandError(f"{path}: {problem}, or another folder with --output DIR")
            others = [path for path in files if not path.name.endswith(PARTIAL)]
            if others and restart is None and not overwrite:
                names = [path.name for path in others]
                more = f" and {len(names) - 3} more" if len(names) > 3 else ""
                raise CommandError(
                    f"{self.path} holds the files of an earlier run ({', '.join(names[:3])}{more})"
                    "; write elsewhere with --output DIR, continue with --restart auto, or replace "
                    "them with --overwrite"
                )
            if overwrite:
                _refuse_inputs(case, others)
            for path in files:
                if path.name.endswith(PARTIAL):
                    path.unlink()
            self._earlier = others if overwrite else []
            self._check_space(case, existing(self.path) if restart else [])
            return self.notes
        except BaseException:
            self.release()
            raise

    def _take_lock(self) -> None:
        if previous := self._lock.take():
            self.notes.append(f"took over the lock of {previous}, which has ended")
        if self._lock.problem:
            self.notes.append(
                f"{NO_LOCKS} ({self._lock.problem}): {self.path / LOCK} replaces them; if this run "
                "is killed, remove this file before a run on another host"
            )

    def _recover(self) -> None:
        """Complete or undo the replacement that a killed start with --overwrite began."""
        finish_discarding(self.path)
        if count := restore(self.path):
            self.notes.append(
                f"restored {counted(count, 'file')} of an earlier run that an interrupted start "
                f"with --overwrite had moved to {self.path / REPLACED}"
            )

    def set_aside(self) -> None:
        """Move the files of the run that is replaced; to be called when nothing reads them."""
        if self._earlier:
            set_aside(self.path, self._earlier)
            self._aside = True

    def discard(self) -> None:
        """Delete the files of the run that is replaced."""
        if self._aside:
            discard(self.path)
            self._aside = False

    def _check_space(self, case: Case, checkpoints: list[tuple[int, Path]]) -> None:
        """CaseError unless the disk has room for the outputs after the newest checkpoint."""
        first = checkpoints[-1][0] if checkpoints else 0
        needed = disk_bytes(case, first)
        free = shutil.disk_usage(self.path).free + bytes_of(self._earlier)
        if needed > free:
            raise CaseError(
                f"the outputs need {in_words(needed)}, but {self.path} has only "
                f"{in_words(free)} free; write fewer with a larger `every`, or elsewhere with "
                "--output DIR",
                "output",
                case.path,
            )

    def release(self) -> None:
        """Release the folder, and remove it if this run created it and it is empty.

        After a failed start the files of the earlier run are moved back. Errors are ignored, for
        instance of a folder that was removed: the error that ended the run is more important.
        """
        if not self._lock.held:
            return
        with suppress(OSError):
            if self._aside:  # so the files of mpilbm in this folder are of the failed start
                for path in owned(self.path):
                    path.unlink()
            if self._earlier:
                restore(self.path)
        with suppress(OSError):
            self._lock.remove()
            if self._made and not any(self.path.iterdir()):
                self.path.rmdir()
        self._lock.close()


def _refuse_inputs(case: Case, replaced: list[Path]) -> None:
    """CaseError if the case reads a file that --overwrite would delete."""
    inputs = [
        (f"{fluid.initial.where}.file", fluid.initial.file and file_of(fluid.initial.file))
        for fluid in case.fluids
    ]
    for k, body in enumerate(case.bodies):
        name = (body.mask or "").rpartition(":")[0]
        inputs.append((f"body.{k}.mask", case.directory / name if name else None))
        for key, part in (("shape", body.shape), ("motion", body.motion)):
            inputs += [
                (f"body.{body.label}.{key}", file) for file in (part.files() if part else ())
            ]
    files = {path.resolve() for path in replaced if not path.is_symlink()}
    for where, path in inputs:
        if path is not None and path.resolve() in files:
            raise CaseError(
                f"'{path}' is one of the files that --overwrite replaces; copy it to another "
                "folder, or write elsewhere with --output DIR",
                where,
                case.path,
            )


def disk_bytes(case: Case, first: int = 0) -> int:
    """Bytes that the outputs of a run from step `first` to its last will need."""
    last = max(first, case.run.steps)
    return sum(output.disk_bytes(case, output.times(first, last)) for output in case.outputs)
