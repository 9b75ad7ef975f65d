"""Reads the vertices and faces of PLY files, as text and binary; no file that they name is opened.

The header lists elements, such as `vertex` and `face`, with their numbers and their properties,
numbers and lists of numbers. The data follow in this order.
"""

import re
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.units import counted
from mpilbm.solids import Floats, Ints
from mpilbm.solids.surfaces import (
    LINE_END,
    Unreadable,
    is_number,
    line_number,
    not_a_number,
    numbers,
    shown,
)
from mpilbm.solids.surfaces.triangles import triangles

NAMES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64"
OLD_NAMES = {"char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16"}
OLD_NAMES |= {"int": "int32", "uint": "uint32", "float": "float32", "double": "float64"}
TYPES = {name: np.dtype(name).str[1:] for name in NAMES.split()}
TYPES |= {old: TYPES[name] for old, name in OLD_NAMES.items()}
FORMATS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
INDICES = "vertex_indices", "vertex_index"
LARGEST = 2**53  # below which float64 holds all whole numbers
WORD = re.compile(rb"\S+")
HEADER_END = re.compile(rb"(?:\A|[\r\n])[ \t]*end_header[ \t]*(?:\r\n|\r|\n|\Z)")
# of each property its entries in all rows and, if these are lists, their lengths
Table = dict[str, tuple[NDArray, Ints | None]]


@dataclass(frozen=True)
class Element:
    """An element of the header, with `count` rows.

    properties: the name of each, the type of the length of its list, "" for a number, and the type
    of its entries.
    """

    name: str
    count: int
    properties: list[tuple[str, str, str]] = field(default_factory=list)


def surface(data: bytes) -> tuple[Floats, Ints]:
    """Vertices (m, 3) and triangles (n, 3) of a file; raises Unreadable."""
    end = HEADER_END.search(data)
    if not data.startswith(b"ply") or not end:
        raise Unreadable("it does not begin with a header from 'ply' to 'end_header'")
    order, elements = _header(data[: end.start()])
    read = _of_bytes if order else _of_text
    tables = read(data, end.end(), order, elements)
    columns = {k: v for k, (v, lengths) in tables.get("vertex", {}).items() if lengths is None}
    if not set("xyz") <= columns.keys():
        raise Unreadable("its header names no vertices with the properties x, y and z")
    points = np.stack([columns[axis].astype(np.float64) for axis in "xyz"], axis=1)
    return points, _triangles(tables.get("face", {}), points)


def _triangles(faces: Table, points: Floats) -> Ints:
    lists = {k: (v, lengths) for k, (v, lengths) in faces.items() if lengths is not None}
    name = next((name for name in INDICES if name in lists), "")
    if not name and len(lists) > 1:
        raise Unreadable(f"its header names no faces with a list {' or '.join(INDICES)}")
    if not lists:
        return np.empty((0, 3), np.int64)
    indices, lengths = lists[name or next(iter(lists))]
    if (lengths < 3).any():
        short = int((lengths < 3).argmax())
        corners = counted(int(lengths[short]), "corner")
        raise Unreadable(f"face {short} (counted from 0) has {corners}; allowed: 3 or more")
    if not (np.abs(indices) < LARGEST).all() or (indices != np.floor(indices)).any():
        raise Unreadable("it has faces whose vertices are not whole numbers")
    return triangles(indices.astype(np.int64), lengths, points)


def _header(text: bytes) -> tuple[str, list[Element]]:
    """The byte order, "" for text, and the elements."""
    order, elements = None, []
    for number, line in enumerate(LINE_END.split(text)[1:], 2):
        words = line.decode("latin-1").split()
        try:
            match words:
                case ["format", name, *_]:
                    order = FORMATS[name]
                case ["element", name, count]:
                    elements.append(Element(name, int(count)))
                    if elements[-1].count < 0:
                        raise ValueError
                case ["property", "list", length, entries, name]:
                    elements[-1].properties.append((name, TYPES[length], TYPES[entries]))
                case ["property", kind, name]:
                    elements[-1].properties.append((name, "", TYPES[kind]))
                case [] | ["comment" | "obj_info", *_]:
                    pass
                case _:
                    raise ValueError
        except (KeyError, ValueError, IndexError):
            wrong = f"line {number}: {shown(line)} is not a line of a header of PLY"
            raise Unreadable(wrong) from None
    if order is None:
        raise Unreadable("its header has no line 'format'")
    for names in ([e.name for e in elements], *([p[0] for p in e.properties] for e in elements)):
        if len(set(names)) < len(names):
            raise Unreadable("its header has two elements or properties with the same name")
    return order, elements


def _cut_short(element: Element) -> Unreadable:
    return Unreadable(
        f"it ends in the data of the {element.count:,} elements {shown(element.name.encode())} of "
        "its header: it is incomplete or damaged"
    )


def _of_text(data: bytes, at: int, order: str, elements: list[Element]) -> dict[str, Table]:
    """The data of a text, which begin at a position: as of a binary file of float64."""
    words = data[at:].split()
    try:
        values, wrong = numbers(words), None
    except ValueError:
        wrong = next(k for k, word in enumerate(words) if not is_number(word))
        values = numbers(words[:wrong])
    doubles = [
        replace(
            each, properties=[(name, length and "f8", "f8") for name, length, _ in each.properties]
        )
        for each in elements
    ]
    try:
        tables = _of_bytes(values.tobytes(), 0, "=", doubles)
    except Unreadable:
        if wrong is None:
            raise
        place = next(islice(WORD.finditer(data, at), wrong, None)).start()
        raise not_a_number(line_number(data, place), words[wrong]) from None
    for element in elements:  # with the precision that the header states
        table = tables.get(element.name, {})
        for name, length, kind in element.properties:
            if name in table and not length and kind[0] == "f":
                with np.errstate(over="ignore"):
                    table[name] = table[name][0].astype(kind), None
    return tables


def _of_bytes(data: bytes, at: int, order: str, elements: list[Element]) -> dict[str, Table]:
    """The data of a binary file, which begin at a position, up to those of vertices and faces."""
    tables: dict[str, Table] = {}
    for element in elements:
        if {"vertex", "face"} <= tables.keys():
            break
        found = _uniform(data, at, order, element)
        tables[element.name], at = found or _various(data, at, order, element)
    return tables


def _uniform(data: bytes, at: int, order: str, element: Element) -> tuple[Table, int] | None:
    """The table of an element and the position after it, if each list has the same length in all.

    None if the lengths differ.
    """
    kinds = _typed(order, element)
    if not element.count or not kinds:
        none = np.empty(0, np.int64)
        return {name: (none, None if length is None else none) for name, length, _ in kinds}, at
    fields: list[tuple] = []  # of a row: `name#` the length of a list, `name.` its entries
    counts, end = {}, at  # lengths of the lists in the first row
    for name, length, entry in kinds:
        if length is not None:
            counts[name] = _length(data, end, length, element)
            fields.append((f"{name}#", length))
            end += length.itemsize
        fields.append((f"{name}.", entry, () if length is None else (counts[name],)))
        end += counts.get(name, 1) * entry.itemsize
    size = (end - at) * element.count
    if end > len(data) or (size > len(data) - at and not counts):
        raise _cut_short(element)
    if size > len(data) - at:
        return None
    rows = np.frombuffer(data, np.dtype(fields), element.count, at)
    if any((rows[f"{name}#"] != count).any() for name, count in counts.items()):
        return None
    lengths = {name: np.full(element.count, count, np.int64) for name, count in counts.items()}
    return {k: (rows[f"{k}."].reshape(-1), lengths.get(k)) for k, _, _ in kinds}, at + size


def _typed(order: str, element: Element) -> list[tuple[str, np.dtype | None, np.dtype]]:
    """The properties of an element with NumPy types; None as length of a number."""
    return [
        (name, np.dtype(order + length) if length else None, np.dtype(order + kind))
        for name, length, kind in element.properties
    ]


def _length(data: bytes, at: int, kind: np.dtype, element: Element) -> int:
    """The length of a list, which is stored at a position."""
    if at + kind.itemsize > len(data):
        raise _cut_short(element)
    value = np.frombuffer(data, kind, 1, at)[0]
    if not 0 <= value <= len(data) or value != int(value):
        name = shown(element.name.encode())
        raise Unreadable(f"a list of an element {name} has the length {value}")
    return int(value)


def _various(data: bytes, at: int, order: str, element: Element) -> tuple[Table, int]:
    """The table of an element, row by row, and the position after it."""
    kinds = _typed(order, element)
    found: list[list[NDArray]] = [[] for _ in kinds]
    for _ in range(element.count):
        for (_, length, entry), values in zip(kinds, found, strict=True):
            count = 1
            if length is not None:
                count = _length(data, at, length, element)
                at += length.itemsize
            if at + count * entry.itemsize > len(data):
                raise _cut_short(element)
            values.append(np.frombuffer(data, entry, count, at))
            at += count * entry.itemsize
    lengths = [np.array([each.size for each in values], np.int64) for values in found]
    return {
        name: (np.concatenate(values), None if kind is None else sizes)
        for (name, kind, _), values, sizes in zip(kinds, found, lengths, strict=True)
    }, at
