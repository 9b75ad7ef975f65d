"""Reads the vertices and faces of OBJ files; no other file that they name is opened.

    v X Y Z ...         a vertex; further numbers are ignored
    f A B C ...         a face of three or more vertices, each I, I/T, I//N or I/T/N

I counts vertices from 1, or backwards from -1, the last vertex before this line. Lines that begin
with other words are ignored, and so is what follows a `#`. A backslash at the end joins a line to
the next one, but not in a comment or in the name of a file of materials, `mtllib`.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from mpilbm.core.units import counted
from mpilbm.solids import Floats, Ints
from mpilbm.solids.surfaces import (
    LINE_END,
    Unreadable,
    as_ascii,
    is_number,
    not_a_number,
    numbers,
    shown,
)
from mpilbm.solids.surfaces.triangles import triangles

Words = Sequence[bytes]


def surface(data: bytes) -> tuple[Floats, Ints]:
    """Vertices (m, 3) and triangles (n, 3) of a file; raises Unreadable."""
    text = as_ascii(data)
    if b"\0" in text:
        raise Unreadable("it is not text: it contains null characters")
    lines = _lines(text)
    words: list[Words] = []  # of vertices
    faces: list[list[int]] = []
    try:
        for line in lines:
            found = line.split()
            if not found:
                continue
            if found[0] == b"v":
                _, x, y, z, *_ = found
                words.append((x, y, z))
            elif found[0] == b"f":
                faces.append(_face(found, len(words)))
        vertices = numbers(chain.from_iterable(words)).reshape(-1, 3)
        if faces and max(map(max, faces)) >= len(words):
            raise ValueError
    except ValueError:
        raise _problem(lines, len(words)) from None
    corners = np.fromiter(chain.from_iterable(faces), np.int64)
    return vertices, triangles(corners, np.fromiter(map(len, faces), np.int64), vertices)


def _lines(text: bytes) -> list[bytes]:
    """The lines. Where a backslash joins lines, the first one has the words of all."""
    lines = LINE_END.split(text) if b"\r" in text else text.split(b"\n")
    if b"#" in text:
        lines = [line.split(b"#", 1)[0] for line in lines]
    if b"\\" not in text:
        return lines
    first, parts = 0, [b""]
    for k, line in enumerate(lines):
        joins = line.rstrip().endswith(b"\\") and not line.startswith(b"mtllib")
        parts.append(line.rstrip()[:-1] if joins else line)
        lines[k] = b""
        if not joins:
            lines[first] = b" ".join(parts)
            first, parts = k + 1, []
    return lines


def _face(words: Words, before: int) -> list[int]:
    """The vertices of a face, counted from 0; `before` is the number of vertices before it.

    Raises ValueError for fewer than three vertices, for other words, 0, and vertices before 1.
    """
    numbers = [int(word.split(b"/", 1)[0]) for word in words[1:]]
    face = [k - 1 if k > 0 else k + before for k in numbers]
    if len(face) < 3 or min(face) < 0 or 0 in numbers:
        raise ValueError
    return face


def _problem(lines: Sequence[bytes], count: int) -> Unreadable:
    """The first error in the lines of a file with `count` vertices."""
    before = 0
    for number, line in enumerate(lines, 1):
        kind, *words = line.split() or [b""]
        if kind == b"v":
            before += 1
            wrong = next((word for word in words[:3] if not is_number(word)), None)
            if wrong is not None:
                return not_a_number(number, wrong)
            if len(words) < 3:
                found = counted(len(words), "number")
                return Unreadable(f"line {number}: a vertex has {found}; allowed: 3 or more")
        elif kind == b"f":
            reason = _wrong_face([kind, *words], before, count)
            if reason:
                return Unreadable(f"line {number}: {reason}")
    return Unreadable("it has a word in place of a number")


def _wrong_face(words: Words, before: int, count: int) -> str:
    if len(words) < 4:
        return f"a face has {len(words) - 1} vertices; allowed: 3 or more"
    for word in words[1:]:
        try:
            index = int(word.split(b"/", 1)[0])
        except ValueError:
            return f"{shown(word)} is not the number of a vertex"
        if not (1 <= index <= count or -before <= index <= -1):
            return (
                f"a face has the vertex {index}, but {before} vertices precede the line and the "
                f"file has {count}"
            )
    return ""
