"""The directory that a run writes to: held by one run at a time, never another run's by mistake."""

import fcntl
import json
import os
import shutil
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from mpilbm.errors import CaseError, CommandError
from mpilbm.storage import own_files
from mpilbm.storage.checkpoint_names import existing
from mpilbm.storage.files import PARTIAL
from mpilbm.units import counted, in_words

LOCK = "mpilbm.lock"
MOST_LOCK = 4096  # bytes


def default_directory(case_path) -> Path:
    """`<file stem>.out` in the current directory."""
    return Path(f"{Path(case_path).stem}.out")


def make_folder(path: Path) -> None:
    """Make a folder and those above it; CommandError unless files can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        above = (each for each in (path, *path.parents) if os.path.lexists(each))
        found = next((each for each in above if not os.path.isdir(each)), None)
        problem = f"{found} is no folder" if found else error.strerror
        raise CommandError(
            f"cannot write to the output directory {path}: {problem}; choose another with "
            "--output DIR"
        ) from error


class RunDirectory:
    """The output directory of a run, held from `claim` to `release` by a lock file.

    The lock is one of the system (flock), which ends with the process however that ends; the
    file names process and host, for the reader and for a file system without locks.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.notes: list[str] = []
        self._lock = None
        self._made = False
        self._earlier: list[Path] = []  # files that --overwrite is to replace
        self._aside = False  # whether they are in the subfolder

    def claim(self, case, restart=None, overwrite: bool = False) -> list[str]:
        """Make and lock the directory; returns notes for the user.

        Without `restart` or `overwrite` it must not hold another run's files; `overwrite` has
        `set_aside` move those that mpilbm wrote and `discard` delete them. Rank 0 does this, before
        anything else of a run. Raises CommandError if the directory cannot be had, CaseError if the
        disk is too small or the case reads a file that would be deleted.
        """
        if overwrite and restart is not None:
            raise CommandError(
                f"--restart {restart} --overwrite: a restart continues the files of the earlier "
                "run; remove --overwrite, or write elsewhere with --output DIR"
            )
        self._make()
        self._take_lock()
        try:
            self._recover()
            owned = own_files.owned(self.path)
            others = [path for path in owned if not path.name.endswith(PARTIAL)]
            if others and restart is None and not overwrite:
                raise CommandError(
                    f"{self.path} holds another run's files ({_some(others)}); write elsewhere "
                    "with --output DIR, go on with --restart auto, or replace them with --overwrite"
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

    def _recover(self):
        """Complete what a killed start with --overwrite left."""
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

    def _make(self):
        self._made = not os.path.lexists(self.path)
        make_folder(self.path)

    def _take_lock(self):
        path = self.path / LOCK
        while True:
            lock = _open_lock(path)
            self._refuse_if_held(lock)
            if path.exists() and os.path.samestat(os.fstat(lock.fileno()), path.lstat()):
                break
            lock.close()  # its holder has removed it in between
        lock.seek(0)
        lock.truncate()
        lock.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        lock.flush()
        self._lock = lock

    def _refuse_if_held(self, lock):
        lock.seek(0)
        text = lock.read().strip("\0")  # which a power failure may leave
        holder = _holder(text)
        who = "process {pid} on {host}".format(**holder) if holder else "another process"
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = False
        except BlockingIOError:
            held = True
        except OSError:  # a file system without locks
            held = bool(holder) and _alive(holder)
        if held:
            lock.close()
            raise CommandError(
                f"{self.path} is in use by {who}; wait for it, or write elsewhere with --output DIR"
            )
        if text and not holder:
            lock.close()
            raise _no_lock(self.path / LOCK)
        if holder:
            self.notes.append(f"took over the lock of {who}, which is gone")

    def _check_space(self, case, before):
        first = before[-1][0] if before else 0
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

    def release(self):
        """Release the directory, and remove it if this run made it and left nothing in it.

        After a failed start the files of the earlier run are moved back. Errors are ignored, as in
        a directory that was removed: the error that ended the run says more.
        """
        if self._lock is None:
            return
        with suppress(OSError):
            if self._aside:  # so the files of ours in this folder are of the failed start
                for path in own_files.owned(self.path):
                    path.unlink()
            if self._earlier:
                own_files.restore(self.path)
        with suppress(OSError):
            (self.path / LOCK).unlink(missing_ok=True)
            if self._made and not any(self.path.iterdir()):
                self.path.rmdir()
        self._lock.close()
        self._lock = None


def _refuse_inputs(case, replaced: list[Path]) -> None:
    """CaseError if the case reads a file that --overwrite would delete."""
    inputs = {f"{fluid.initial.where}.file": fluid.initial.file for fluid in case.fluids}
    for k, body in enumerate(case.bodies):
        name = (body.mask or "").rpartition(":")[0]
        inputs[f"body.{k}.mask"] = case.directory / name if name else None
    files = {path.resolve() for path in replaced if not path.is_symlink()}
    for where, path in inputs.items():
        if path is not None and path.resolve() in files:
            raise CaseError(
                f"'{path}' is one of the files that --overwrite replaces; copy it to another "
                "folder, or write elsewhere with --output DIR",
                where,
                case.path,
            )


def _open_lock(path: Path):
    """The lock file, open for reading and writing; CommandError if it is another's file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        number = os.open(path, flags, 0o666)
    except OSError as error:
        if path.is_symlink() or path.is_dir():
            raise _no_lock(path) from error
        raise
    status = os.fstat(number)
    ours = stat.S_ISREG(status.st_mode) and status.st_nlink <= 1 and status.st_size < MOST_LOCK
    if not ours:
        os.close(number)
        raise _no_lock(path)
    return open(number, "r+", errors="replace")


def _no_lock(path: Path) -> CommandError:
    return CommandError(f"{path} is no lock file of mpilbm; move it to another place")


def disk_bytes(case, first: int = 0) -> int:
    """Bytes that the outputs of a run from step `first` to its last will need."""
    last = max(first, case.run.steps)
    return sum(output.disk_bytes(case, output.times(first, last)) for output in case.outputs)


def _holder(text: str) -> dict:
    try:
        found = json.loads(text)
        return found if {"pid", "host"} <= found.keys() else {}
    except (ValueError, AttributeError):
        return {}


def _alive(holder: dict) -> bool:
    """Whether that process runs; of other hosts nothing is known, so no."""
    if holder["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _some(paths) -> str:
    names = [path.name for path in paths]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
