"""Errors of libraries that read files of users, as one message."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mpilbm.core.printable import one_line

AGAIN = "write or copy it again"
MOST = 200  # characters of the error of a library


@contextmanager
def reading(what: str, fix: str = AGAIN) -> Iterator[None]:
    """Any error of a library that reads a file becomes a ValueError; its warnings are ignored.

    Parsers raise errors of any class for damaged files, MemoryError and RecursionError included.
    what: such as "as TIFF"; the text of the ValueError follows the name of the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        text = one_line(error, MOST) or type(error).__name__
        raise ValueError(f"cannot be read {what} ({text}); {fix}") from None
