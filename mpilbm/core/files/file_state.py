"""Whether a file has changed since it was read."""

from pathlib import Path


def file_state(path: Path) -> tuple[int, ...]:
    """Numbers that change with the content of a file: size, time, inode; empty if there is none.

    A cache of what was read from a file has them in its key.
    """
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a null character in the name
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino
