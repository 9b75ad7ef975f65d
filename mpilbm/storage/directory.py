"""The output folder of a run: used by one run at a time, and protected from overwriting."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mpilbm.case.initial_files import file_of
from mpilbm.core.errors import CaseError, CommandError
from mpilbm.core.files import hdf5
from mpilbm.core.units import counted, in_words
from mpilbm.storage import PARTIAL, obstacle, own_files
from mpilbm.storage.lock import LOCK, NO_LOCKS, FolderLock
from mpilbm.storage.own_files import existing

if TYPE_CHECKING:
    from mpilbm.case.case import Case


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
        self, case: "Case", restart: str | Path | None = None, overwrite: bool = False
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
            owned = own_files.owned(self.path)
            for path in owned:  # no output replaces a pipe, a socket or a device
                problem = "" if path.is_symlink() else obstacle(path, overwrite=True)
                if problem:
                    raise CommandError(f"{path}: {problem}, or another folder with --output DIR")
            others = [path for path in owned if not path.name.endswith(PARTIAL)]
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
            for path in owned:
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
        own_files.finish_discarding(self.path)
        if count := own_files.restore(self.path):
            self.notes.append(
                f"restored {counted(count, 'file')} of an earlier run that an interrupted start "
                f"with --overwrite had moved to {self.path / own_files.REPLACED}"
            )

    def set_aside(self) -> None:
        """Move the files of the run that is replaced; to be called when nothing reads them."""
        if self._earlier:
            own_files.set_aside(self.path, self._earlier)
            self._aside = True

    def discard(self) -> None:
        """Delete the files of the run that is replaced."""
        if self._aside:
            own_files.discard(self.path)
            self._aside = False

    def _check_space(self, case: "Case", checkpoints: list[tuple[int, Path]]) -> None:
        """CaseError unless the disk has room for the outputs after the newest checkpoint."""
        first = checkpoints[-1][0] if checkpoints else 0
        needed = disk_bytes(case, first)
        free = shutil.disk_usage(self.path).free + own_files.bytes_of(self._earlier)
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
                for path in own_files.owned(self.path):
                    path.unlink()
            if self._earlier:
                own_files.restore(self.path)
        with suppress(OSError):
            self._lock.remove()
            if self._made and not any(self.path.iterdir()):
                self.path.rmdir()
        self._lock.close()


def _refuse_inputs(case: "Case", replaced: list[Path]) -> None:
    """CaseError if the case reads a file that --overwrite would delete."""
    inputs = [
        (f"{fluid.initial.where}.file", fluid.initial.file and file_of(fluid.initial.file))
        for fluid in case.fluids
    ]
    for k, body in enumerate(case.bodies):
        name = (body.mask or "").rpartition(":")[0]
        inputs.append((f"body.{k}.mask", case.directory / name if name else None))
        shape_files = body.shape.files() if body.shape else ()
        inputs += [(f"body.{body.label}.shape", file) for file in shape_files]
    files = {path.resolve() for path in replaced if not path.is_symlink()}
    for where, path in inputs:
        if path is not None and path.resolve() in files:
            raise CaseError(
                f"'{path}' is one of the files that --overwrite replaces; copy it to another "
                "folder, or write elsewhere with --output DIR",
                where,
                case.path,
            )


def disk_bytes(case: "Case", first: int = 0) -> int:
    """Bytes that the outputs of a run from step `first` to its last will need."""
    last = max(first, case.run.steps)
    return sum(output.disk_bytes(case, output.times(first, last)) for output in case.outputs)
