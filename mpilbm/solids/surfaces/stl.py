"""Reads STL files: binary, and text, which is read by words.

    solid NAME
      facet normal N N N
        outer loop
          vertex X Y Z      (three times)
        endloop
      endfacet              (any number of facets)
    endsolid NAME           (any number of solids)

A name is what follows in the line of `solid` and `endsolid`. In a file without line ends it extends
to the next facet. White space between words does not matter, and neither does the case of letters.
"""

import re
from itertools import chain

import numpy as np

from mpilbm.core.units import counted
from mpilbm.solids import Floats, Ints
from mpilbm.solids.surfaces import (
    LINE_END,
    Unreadable,
    as_ascii,
    is_number,
    line_number,
    not_a_number,
    numbers,
    shown,
)

HEADER, TRIANGLE = 84, 50  # bytes of a binary file
RECORD = np.dtype([("normal", "<f4", 3), ("vertices", "<f4", (3, 3)), ("attribute", "<u2")])
HEAD = 512  # bytes in which text and binary files differ
END = b"\0\x1a"  # characters that may follow the end of a text
BLOCK = 1 << 15  # facets that are converted to numbers together

NUMBER = ""  # in FACET_WORDS
VERTEX = ("vertex", NUMBER, NUMBER, NUMBER)
HEAD_WORDS = ("facet", "normal", NUMBER, NUMBER, NUMBER, "outer", "loop")
FACET_WORDS = (*HEAD_WORDS, *VERTEX, *VERTEX, *VERTEX, "endloop", "endfacet")
NORMALS = range(2, 5)  # of these words; normals are not used
_VERTEX = rb"vertex" + 3 * rb"\s+([^\s_]+)" + rb"\s+"
_HEAD = rb"\s*facet\s+normal" + 3 * rb"\s+\S+" + rb"\s+outer\s+loop\s+"
FACET = re.compile(_HEAD + 3 * _VERTEX + rb"end\s*loop\s+end\s*facet(?=\s|\Z)", re.IGNORECASE)
SOLID = re.compile(rb"\s*solid(?=\s|\Z)", re.IGNORECASE)
ENDSOLID = re.compile(rb"\s*end\s*solid(?=\s|\Z)", re.IGNORECASE)
IGNORED = re.compile(rb"\s*(?:color\b|#)[^\r\n]*", re.IGNORECASE)  # lines that some programs add
NAME_END = re.compile(  # the end of its line, or the next facet
    rb"(?P<line>\r\n|\r|\n)|(?<!\S)facet\s+normal\s+[-+.\d]", re.IGNORECASE
)
NEXT_SOLID = re.compile(rb"(?<!\S)solid(?!\S)", re.IGNORECASE)
WORD = re.compile(rb"\S+")


def surface(data: bytes) -> tuple[Floats, Ints]:
    """Vertices (3 n, 3) and triangles (n, 3) of a file; raises Unreadable."""
    found = _corners(data).reshape(-1, 3)
    return found, np.arange(len(found)).reshape(-1, 3)


def _corners(data: bytes) -> Floats:
    count = int.from_bytes(data[HEADER - 4 : HEADER], "little")
    if len(data) >= HEADER and len(data) == HEADER + TRIANGLE * count:
        found = np.frombuffer(data, RECORD, count, HEADER)["vertices"]
        return found.astype(np.float64)
    if _is_binary(data):
        raise Unreadable(
            f"it has {len(data):,} bytes, but {HEADER + TRIANGLE * count:,} follow from the "
            f"{counted(count, 'triangle')} in its header: it is incomplete or damaged"
        )
    text = as_ascii(data).rstrip(END)
    return _of_text(text) if text.strip() else np.empty((0, 3, 3))


def _is_binary(data: bytes) -> bool:
    """Whether a file that does not have the length of a binary file is a damaged one.

    Its first triangles contain null characters, unlike text, except in UTF-16.
    """
    if len(data) < HEADER or data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    head = data[:HEAD].rstrip(END)
    return b"\0" in head or not (SOLID.match(head) or b"facet" in data[: 8 * HEAD].lower())


def _of_text(data: bytes) -> Floats:
    blocks: list[Floats] = [np.empty(0)]
    at, begin = 0, -1  # position, and that of the solid that contains it
    while WORD.search(data, at):
        if begin >= 0:
            at = _facets(data, at, blocks)
        if found := ENDSOLID.match(data, at) if begin >= 0 else None:
            at, begin = _after_name(data, found.end(), ended=True)
        elif found := SOLID.match(data, at) if begin < 0 else None:
            at, begin = _after_name(data, found.end(), ended=False)
        elif found := IGNORED.match(data, at):
            at = found.end()
        else:
            raise _problem(data, at, begin)
    if begin >= 0:
        raise _problem(data, at, begin)
    return np.concatenate(blocks).reshape(-1, 3, 3)


def _after_name(data: bytes, at: int, ended: bool) -> tuple[int, int]:
    """The position after the name at `at`, and that of the solid that contains it, or -1.

    ended: whether the name follows `endsolid`.
    """
    found = NAME_END.search(data, at)
    end = found.start() if found else len(data)
    if not ended:
        return end, at
    if found is None or found["line"]:
        return end, -1
    solid = NEXT_SOLID.search(data, at, end)
    if solid:
        return end, solid.start()
    line = LINE_END.search(data, at)
    return line.start() if line else len(data), -1


def _facets(data: bytes, at: int, blocks: list[Floats]) -> int:
    """Append the corners of the facets from a position on to blocks; return the position after."""
    match = FACET.match
    while True:
        begin = at
        rows: list[tuple[bytes, ...]] = []
        while len(rows) < BLOCK and (found := match(data, at)):
            rows.append(found.groups())
            at = found.end()
        try:
            blocks.append(numbers(chain.from_iterable(rows)))
        except ValueError:
            raise _wrong_number(data, begin) from None
        if len(rows) < BLOCK:
            return at


def _wrong_number(data: bytes, at: int) -> Unreadable:
    """The error for the first facet from a position on with a word that is not a number."""
    while found := FACET.match(data, at):
        for k, word in enumerate(found.groups(), 1):
            if not is_number(word):
                return not_a_number(line_number(data, found.start(k)), word)
        at = found.end()
    return Unreadable("it has a word in place of a number")


def _problem(data: bytes, at: int, begin: int) -> Unreadable:
    """The error where neither a facet nor the end of a solid follows.

    begin: position of the solid that contains it, or -1.
    """
    words = WORD.finditer(data, at)
    if begin < 0:
        return _unexpected(data, "'solid'", next(words, None), begin)
    for k, wanted in enumerate(FACET_WORDS):
        found = next(words, None)
        word = found[0] if found else b""
        if found and word.lower() == b"end" and wanted.startswith("end"):  # such as `end loop`
            word += (next(words, None) or [b""])[0]
        expected = f"'{wanted}'" if wanted else "a number"
        if k == 0:
            expected = "'facet' or 'endsolid'"
        if found is None or (wanted and word.lower() != wanted.encode()):
            if found and b"," in word:
                return not_a_number(line_number(data, found.start()), word)
            return _unexpected(data, expected, found, begin)
        if not wanted and not is_number(word) and (k not in NORMALS or b"," in word):
            return not_a_number(line_number(data, found.start()), word)
    return _unexpected(data, "a facet", WORD.search(data, at), begin)


def _unexpected(
    data: bytes, expected: str, found: re.Match[bytes] | None, begin: int
) -> Unreadable:
    """The error for a word that is not the expected one, or for the end of the file."""
    if found is None:
        return Unreadable(
            f"it ends in line {line_number(data, len(data.rstrip()))} where {expected} is expected "
            f"in the solid of line {line_number(data, begin)}: it is incomplete"
        )
    cut = " at the end of the file: it is incomplete" if found.end() == len(data) else ""
    line = line_number(data, found.start())
    return Unreadable(f"line {line}: expected {expected}, found {shown(found[0])}{cut}")
