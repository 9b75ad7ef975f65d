"""The lock file of an output folder: at most one run writes to a folder at a time."""

import fcntl
import json
import os
import socket
import stat
from pathlib import Path
from typing import IO, NamedTuple

from mpilbm.core.errors import CommandError

LOCK = "mpilbm.lock"
MOST_LOCK = 4096  # bytes
NO_LOCKS = "this file system has no file locks"


class Holder(NamedTuple):
    """The process that a lock file names."""

    pid: int
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def elsewhere(self) -> bool:
        """Whether the process is one of another host."""
        return self.host != socket.gethostname()

    @property
    def alive(self) -> bool:
        """Whether the process runs; False for processes of other hosts, where this is unknown."""
        if self.elsewhere:
            return False
        try:
            os.kill(self.pid, 0)
        except OSError as error:
            return not isinstance(error, ProcessLookupError)
        return True


class FolderLock:
    """A lock of the system (flock) on a file in a folder, which ends when the process ends.

    The file contains the process and the host, for the reader and for file systems without locks.
    """

    def __init__(self, directory: Path):
        self.directory, self.path = directory, directory / LOCK
        self.problem = ""  # why the file system has no locks, as the system reports it
        self._file: IO[str] | None = None

    @property
    def held(self) -> bool:
        """Whether this process holds the lock."""
        return self._file is not None

    def take(self) -> Holder | None:
        """Lock the folder; returns a previous holder that ended without releasing it.

        Raises CommandError if another process holds the lock or the file is not a lock file.
        """
        while True:
            file = _open(self.path)
            previous = self._lock(file)
            if self.path.exists() and os.path.samestat(os.fstat(file.fileno()), self.path.lstat()):
                break
            file.close()  # its holder has removed it in between
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        self._file = file
        return previous

    def _lock(self, file: IO[str]) -> Holder | None:
        """Lock the open file; returns the holder that it names, which has ended."""
        file.seek(0)
        text = file.read().strip("\0")  # which a power failure may leave
        holder = _holder(text)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = False
        except BlockingIOError:
            held = True
        except OSError as error:  # a file system without locks
            held = holder is not None and (holder.alive or holder.elsewhere)
            self.problem = error.strerror or str(error)
        if held:
            file.close()
            remove = ""  # only the user knows the state of a holder of another host
            if self.problem and holder and holder.elsewhere:
                remove = f"remove {self.path} if it has ended ({NO_LOCKS}: {self.problem}), "
            raise CommandError(
                f"{self.directory} is in use by {holder or 'another process'}; wait for it, "
                f"{remove}or write elsewhere with --output DIR"
            )
        if text and not holder:
            file.close()
            raise _no_lock(self.path)
        return holder

    def remove(self) -> None:
        """Remove the lock file; the lock remains until `close`."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """End the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None


def holder_of(directory: Path) -> Holder | None:
    """The process that the lock file of a folder names; None without a lock file."""
    try:
        with open(directory / LOCK, encoding="utf-8", errors="replace") as file:
            return _holder(file.read(MOST_LOCK).strip("\0"))
    except OSError:
        return None


def _open(path: Path) -> IO[str]:
    """The lock file, open for reading and writing; CommandError if it is another file."""
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
    return open(number, "r+", encoding="utf-8", errors="replace")


def _no_lock(path: Path) -> CommandError:
    return CommandError(f"{path} is not a lock file of mpilbm; move it to another place")


def _holder(text: str) -> Holder | None:
    """The process that the text of a lock file names; None if it names none."""
    try:
        found = json.loads(text)
        return Holder(int(found["pid"]), found["host"])
    except (ValueError, TypeError, KeyError):
        return None
