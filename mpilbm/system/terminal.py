"""Standard output and standard error: whatever happens to them, the program goes on.

`guard` replaces both streams, so this holds for print, click, rich and Python's own messages alike.
A closed stream discards its text. A text that cannot be written (a reader that has ended, a full
disk, a terminal that is gone) is lost, and `require_written` reports it to the verbs whose result
it is. Control characters in names are written as escapes, see printable.py.
"""

import errno
import io
import os
import re
import select
import sys

from mpilbm.errors import FileSystemError, MpilbmError
from mpilbm.printable import one_line, several_lines

COLOUR = re.compile("(\x1b\\[[0-9;]*m)")


class _Descriptor(io.RawIOBase):
    """A file descriptor to write to; `error` is the first that occurred."""

    def __init__(self, number: int):
        self.number, self.error = number, None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.number

    def isatty(self) -> bool:
        return os.isatty(self.number)

    def write(self, data) -> int:
        while True:
            try:
                return os.write(self.number, data)
            except BlockingIOError:  # a launcher may have made its pipe non-blocking
                select.select((), (self.number,), ())
            except OSError as error:
                self.error = self.error or error
                return len(data)


class _Stream(io.TextIOWrapper):
    """Text for a descriptor; on a terminal the colours of our own messages pass."""

    def __init__(self, descriptor: _Descriptor, encoding: str, **buffering):
        buffer = io.BufferedWriter(descriptor)
        super().__init__(buffer, encoding, errors="backslashreplace", **buffering)
        self.descriptor = descriptor

    def write(self, text: str) -> int:
        parts = COLOUR.split(text) if self.isatty() else [text]
        parts[::2] = map(several_lines, parts[::2])
        super().write("".join(parts))
        return len(text)


def guard() -> None:
    """Replace sys.stdout and sys.stderr; to be called before any file is opened."""
    for number in range(3):  # or else the next file would get the number of a closed stream
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout, sys.stderr = _guarded(1, sys.stdout), _guarded(2, sys.stderr)


def _guarded(number: int, stream: io.TextIOWrapper | None) -> _Stream:
    """A stream with the encoding and buffering of Python's own, which is None if it was closed."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    lines = any(getattr(stream, name, False) for name in ("line_buffering", "write_through"))
    return _Stream(_Descriptor(number), encoding, line_buffering=lines)


def unfiltered() -> io.TextIOBase:
    """sys.stdout for a library that moves the cursor; its caller escapes names."""
    if not isinstance(sys.stdout, _Stream):
        return sys.stdout
    sys.stdout.flush()
    buffer = io.BufferedWriter(_Descriptor(sys.stdout.fileno()))
    return io.TextIOWrapper(buffer, sys.stdout.encoding, "backslashreplace", line_buffering=True)


def require_written() -> None:
    """End with an error if a part of the output was lost, unless its reader needed no more."""
    if not isinstance(sys.stdout, _Stream):
        return
    sys.stdout.flush()
    error = sys.stdout.descriptor.error
    if error is not None and error.errno != errno.EPIPE:
        text = f"standard output: {os.strerror(error.errno)}; the output is incomplete"
        tell(FileSystemError(f"{text}: write it to another place"))
        sys.exit(FileSystemError.exit_code)


def say(text: str) -> None:
    """Write a line for the user to stderr."""
    print(one_line(text), file=sys.stderr, flush=True)


def tell(error: MpilbmError | str, who: str = "") -> None:
    """Write each line of an error to stderr, in one go, so that those of ranks do not mix."""
    lead = "error: " if getattr(error, "failed", True) else ""
    lines = several_lines(str(error)).split("\n")
    sys.stderr.write("".join(f"mpilbm: {lead}{who}{line}\n" for line in lines))
    sys.stderr.flush()
