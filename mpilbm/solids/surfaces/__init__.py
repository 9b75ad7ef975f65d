"""Triangulated surfaces: reading them, solid cells and distances of links, reports about them.

`read` loads a surface with `stl`, `obj` or `ply`, which share what is here: places in a text, and
errors of wrong numbers. `surface` answers which points are inside and where links meet the surface,
`examine` finds thin and overlapping parts, `findings` compares it with the box.
"""

import re
from collections.abc import Iterable

import numpy as np

from mpilbm.core import files
from mpilbm.core.printable import one_line
from mpilbm.solids import Floats

LINE_END = re.compile(rb"\r\n|\r|\n")
FORTRAN = re.compile(rb"[-+]?[\d.]+[dD][-+]?\d+")
DECIMAL_COMMA = re.compile(rb"[-+]?\d*,\d*([eE][-+]?\d+)?")
SHOWN = 40  # characters of a word that are quoted
AGAIN = "write the file again"


class Unreadable(Exception):
    """A file cannot be read: `reason`, and what the user can do, `fix`."""

    def __init__(self, reason: str, fix: str = AGAIN):
        super().__init__(reason)
        self.reason, self.fix = reason, fix


def as_ascii(data: bytes) -> bytes:
    """The text in a coding in which ASCII characters are single bytes, without a byte order mark.

    Other characters occur in names and comments only, so UTF-8 and Latin-1 are left as they are.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError:
            raise Unreadable("it is not text in UTF-16, as its first bytes say") from None
    return data.removeprefix(b"\xef\xbb\xbf")


def line_number(data: bytes, position: int) -> int:
    """The number of the line, from 1, that contains a position."""
    return 1 + sum(1 for _ in LINE_END.finditer(data, 0, position))


def shown(word: bytes) -> str:
    """A word of the file in quotes."""
    text = one_line(word.decode("utf-8", "replace"))
    return f"'{text[:SHOWN]}…'" if len(text) > SHOWN else f"'{text}'"


def numbers(words: Iterable[bytes]) -> Floats:
    """The numbers that the words are; ValueError if one is not a number."""
    found = list(words)
    if b"_" in b" ".join(found):  # which `float` accepts, as in 1_000
        raise ValueError
    return np.array(list(map(float, found)), np.float64)


def is_number(word: bytes) -> bool:
    """Whether `numbers` accepts a word."""
    return b"_" not in word and files.is_number(word)


def not_a_number(line: int, word: bytes) -> Unreadable:
    """The error for a word in a line where a number is expected."""
    where = f"line {line}: {shown(word)}"
    if DECIMAL_COMMA.fullmatch(word) and any(48 <= c < 58 for c in word):
        return Unreadable(
            f"{where} has a decimal comma; allowed: a decimal point",
            "replace the commas, or set the language of the exporting program to English",
        )
    if b"," in word:
        reason = f"{where} has a comma; allowed: spaces between numbers"
        return Unreadable(reason, "replace the commas by spaces")
    if FORTRAN.fullmatch(word):
        reason = f"{where} has the exponent D of Fortran; allowed: E"
        return Unreadable(reason, "replace D by E in the numbers")
    return Unreadable(f"{where} is not a number")
