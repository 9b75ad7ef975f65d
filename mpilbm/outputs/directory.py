"""The directory that a run writes to: held by one run at a time, never another run's by mistake."""

import fcntl
import json
import os
import shutil
import socket
from fnmatch import fnmatch
from pathlib import Path

from mpilbm import registry
from mpilbm.errors import CaseError, CommandError
from mpilbm.outputs.checkpoint import existing
from mpilbm.outputs.planes import PARTIAL
from mpilbm.units import in_words

LOCK = "mpilbm.lock"
SUMMARY = "summary.json"


def default_directory(case_path) -> Path:
    """`<file stem>.out` in the current directory."""
    return Path(f"{Path(case_path).stem}.out")


def make_folder(path: Path) -> None:
    """Make a folder and those above it; CommandError unless files can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f"write.probe{PARTIAL}"
        probe.write_bytes(b"")
        probe.unlink()
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

    The lock is one of the system (flock), which ends with the process however that ends; process
    and host stand in the file for the reader, and decide where a file system has no locks.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.notes: list[str] = []
        self._lock = None
        self._made = False

    def claim(self, case, restart=None, overwrite: bool = False) -> list[str]:
        """Make, lock and clear the directory; returns notes for the user.

        Without `restart` or `overwrite` it must not hold another run's files; `overwrite` alone
        removes those that mpilbm wrote. Rank 0 does this, before anything else of a run. Raises
        CommandError if the directory cannot be had, CaseError if the disk is too small.
        """
        self._make()
        self._take_lock()
        try:
            owned = self.owned()
            others = [path for path in owned if not path.name.endswith(PARTIAL)]
            if others and restart is None and not overwrite:
                raise CommandError(
                    f"{self.path} holds another run's files ({_some(others)}); write elsewhere "
                    "with --output DIR, go on with --restart auto, or replace them with --overwrite"
                )
            for path in owned:
                if path.name.endswith(PARTIAL) or (overwrite and restart is None):
                    path.unlink()
            self._check_space(case, existing(self.path) if restart else [])
            return self.notes
        except BaseException:
            self.release()
            raise

    def _make(self):
        self._made = not os.path.lexists(self.path)
        make_folder(self.path)

    def owned(self) -> list[Path]:
        """The files in it that mpilbm wrote, by their names."""
        patterns = [SUMMARY, "*" + PARTIAL]
        for name in registry.names("outputs"):
            patterns += registry.find("outputs", name).files
        patterns += [pattern + PARTIAL for pattern in patterns]
        return sorted(
            path
            for path in self.path.iterdir()
            if not path.is_dir() and any(fnmatch(path.name, pattern) for pattern in patterns)
        )

    def _take_lock(self):
        path = self.path / LOCK
        while True:
            lock = open(path, "a+")  # noqa: SIM115 (open for the whole run)
            self._refuse_if_held(lock)
            if path.exists() and os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                break
            lock.close()  # its holder has removed it in between
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        lock.flush()
        self._lock = lock

    def _refuse_if_held(self, lock):
        lock.seek(0)
        holder = _holder(lock.read())
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
        if holder:
            self.notes.append(f"took over the lock of {who}, which is gone")

    def _check_space(self, case, before):
        first = before[-1][0] if before else 0
        needed = disk_bytes(case, first)
        free = shutil.disk_usage(self.path).free
        if needed > free:
            raise CaseError(
                f"the outputs need {in_words(needed)}, but {self.path} has only "
                f"{in_words(free)} free; write fewer with a larger `every`, or elsewhere with "
                "--output DIR",
                "output",
                case.path,
            )

    def release(self):
        """Give the directory back; one that was made in vain goes."""
        if self._lock is None:
            return
        (self.path / LOCK).unlink(missing_ok=True)
        self._lock.close()
        self._lock = None
        if self._made and not any(self.path.iterdir()):
            self.path.rmdir()


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
