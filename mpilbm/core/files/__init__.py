"""Files of the user: reading them, their digests, their origin.

This module reads text; devices and pipes, which may never end, are refused.
"""

import os
import stat
from pathlib import Path

MOST = 16 << 20  # bytes


class NotATextFile(Exception):
    """A file is not a text file; the message says what is allowed."""


def read_text(path: Path, encoding: str = "utf-8", most: int = MOST) -> str:
    """The text of a regular file of at most `most` bytes.

    Raises NotATextFile for another kind of file, a larger file or another encoding; OSError if the
    file cannot be opened.
    """
    if "\0" in str(path):
        raise NotATextFile("is not a path: it contains a null character; remove it")
    # without blocking: a pipe may never have a writer
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotATextFile("is not a regular file; allowed: a text file on a disk")
        data = b"" if status.st_size > most else file.read(most + 1)
    if max(status.st_size, len(data)) > most:
        raise NotATextFile(f"is too large; allowed: at most {most >> 20} MiB")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise NotATextFile("is not UTF-8 text; save it as UTF-8") from None


def is_number(text: str | bytes) -> bool:
    """Whether `float` can convert the text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def file_state(path: Path) -> tuple[int, ...]:
    """Numbers that change with the content of a file: size, time, inode; empty if there is none.

    A cache of what was read from a file has them in its key.
    """
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a null character in the name
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino
