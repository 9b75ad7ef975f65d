"""Standard output and standard error: a run continues even if they cannot be written.

`guard` replaces both streams, for print, click, rich and the messages of Python itself. A closed
stream discards its text. Text that cannot be written (the reader has ended, the disk is full, the
terminal is closed) is lost, and `require_written` reports this for commands whose result is their
output. Control characters in names are written as escapes, see printable.py.
"""

import errno
import io
import os
import re
import select
import sys
from typing import Any, TextIO

from mpilbm.core.errors import FileSystemError, MpilbmError
from mpilbm.core.printable import one_line, several_lines

COLOUR = re.compile("(\x1b\\[[0-9;]*m)")


class _Descriptor(io.RawIOBase):
    """A file descriptor to write to; `error` is the first error."""

    def __init__(self, number: int):
        self.number = number
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.number

    def isatty(self) -> bool:
        return os.isatty(self.number)

    def write(self, data: Any) -> int:
        while True:
            try:
                return os.write(self.number, data)
            except BlockingIOError:  # a launcher may have made its pipe non-blocking
                select.select((), (self.number,), ())
            except OSError as error:
                self.error = self.error or error
                return len(data)


class _Stream(io.TextIOWrapper):
    """Text for a descriptor; escapes control characters, on a terminal except colours."""

    def __init__(self, descriptor: _Descriptor, encoding: str, line_buffering: bool = False):
        buffer = io.BufferedWriter(descriptor)
        super().__init__(buffer, encoding, "backslashreplace", line_buffering=line_buffering)
        self.descriptor = descriptor

    def write(self, text: str) -> int:
        parts = COLOUR.split(text) if self.isatty() else [text]
        parts[::2] = map(several_lines, parts[::2])
        super().write("".join(parts))
        return len(text)


def guard() -> None:
    """Replace sys.stdout and sys.stderr; to be called before any file is opened."""
    for number in range(3):  # else the next opened file would get the number of a closed stream
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout, sys.stderr = _guarded(1, sys.stdout), _guarded(2, sys.stderr)


def _guarded(number: int, stream: TextIO | None) -> _Stream:
    """A stream with the encoding and buffering of Python's stream, which is None if closed."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    lines = any(getattr(stream, name, False) for name in ("line_buffering", "write_through"))
    return _Stream(_Descriptor(number), encoding, line_buffering=lines)


def unfiltered() -> TextIO:
    """sys.stdout for a library that moves the cursor; its caller must escape names."""
    if not isinstance(sys.stdout, _Stream):
        return sys.stdout
    sys.stdout.flush()
    buffer = io.BufferedWriter(_Descriptor(sys.stdout.fileno()))
    return io.TextIOWrapper(buffer, sys.stdout.encoding, "backslashreplace", line_buffering=True)


def require_written() -> None:
    """End with an error if a part of the output was lost, unless its reader closed the pipe."""
    if not isinstance(sys.stdout, _Stream):
        return
    sys.stdout.flush()
    error = sys.stdout.descriptor.error
    if error is not None and error.errno != errno.EPIPE:
        text = f"standard output: {error.strerror}; the output is incomplete"
        print_error(FileSystemError(f"{text}: write it to another place"))
        sys.exit(FileSystemError.exit_code)


def print_line(text: str) -> None:
    """Write a line for the user to stderr."""
    print(one_line(text), file=sys.stderr, flush=True)


def print_error(error: MpilbmError | str, who: str = "") -> None:
    """Write the lines of an error to stderr, in one call, so that lines of ranks do not mix."""
    lead = "error: " if getattr(error, "failed", True) else ""
    lines = several_lines(str(error)).split("\n")
    sys.stderr.write("".join(f"mpilbm: {lead}{who}{line}\n" for line in lines))
    sys.stderr.flush()
