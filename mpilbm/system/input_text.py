"""Text files of the user, read after a look at what they are: a device or a pipe may never end."""

import os
import stat
from pathlib import Path

MOST = 16 << 20  # bytes


class NotATextFile(Exception):
    """What is wrong with a file, and what is allowed."""


def read_text(path: Path, encoding: str = "utf-8", most: int = MOST) -> str:
    """The text of a regular file of at most so many bytes.

    Raises NotATextFile for another kind of file, a larger file or another encoding, OSError if the
    file cannot be opened.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotATextFile("is no regular file; allowed: a text file on a disk")
        data = b"" if status.st_size > most else file.read(most + 1)
    if max(status.st_size, len(data)) > most:
        raise NotATextFile(f"is too large; allowed: at most {most >> 20} MiB")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise NotATextFile("is not UTF-8 text; save it as UTF-8") from None


def _without_waiting(path, flags: int) -> int:
    """Opens a pipe too, which would else wait for somebody who writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)
