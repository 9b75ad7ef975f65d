"""Reads the vertices and faces of PLY files, as text and binary; no file that they name is opened.

The header lists elements, such as `vertex` and `face`, with their numbers and their properties,
numbers and lists of numbers. The data follow in this order.
"""

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Self

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

TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
         "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
         "int32": "i4", "uint32": "u4", "int64": "i8", "uint64": "u8", "float16": "f2",
         "float32": "f4", "float64": "f8"}  # fmt: skip
FORMATS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
INDICES = "vertex_indices", "vertex_index"
LARGEST = 2**53  # below which float64 holds all whole numbers
WORD = re.compile(rb"\S+")
HEADER_END = re.compile(rb"(?:\A|[\r\n])[ \t]*end_header[ \t]*(?:\r\n|\r|\n|\Z)")


@dataclass
class Element:
    """An element of the header: properties of numbers, {name: type}, and of lists.

    lists: {name: (type of the length, type of the entries)}. order: the names of both.
    """

    name: str
    count: int
    numbers: dict[str, str] = field(default_factory=dict)
    lists: dict[str, tuple[str, str]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def as_doubles(self) -> Self:
        """The element with float64 for all types."""
        return replace(
            self,
            numbers=dict.fromkeys(self.numbers, "f8"),
            lists=dict.fromkeys(self.lists, ("f8", "f8")),
        )


@dataclass
class Table:
    """The data of an element.

    columns  {name: (count,)} of properties that are numbers
    lists    {name: (entries of all lists one after another, lengths of the lists)}
    """

    columns: dict[str, NDArray] = field(default_factory=dict)
    lists: dict[str, tuple[NDArray, Ints]] = field(default_factory=dict)


def surface(data: bytes) -> tuple[Floats, Ints]:
    """Vertices (m, 3) and triangles (n, 3) of a file; raises Unreadable."""
    end = HEADER_END.search(data)
    if not data.startswith(b"ply") or not end:
        raise Unreadable("it does not begin with a header from 'ply' to 'end_header'")
    order, elements = _header(data[: end.start()])
    read = _of_bytes if order else _of_text
    tables = read(data, end.end(), order, elements)
    vertices, faces = tables.get("vertex", Table()), tables.get("face", Table())
    if not set("xyz") <= vertices.columns.keys():
        raise Unreadable("its header names no vertices with the properties x, y and z")
    points = np.stack([vertices.columns[axis].astype(np.float64) for axis in "xyz"], axis=1)
    return points, _triangles(faces, points)


def _triangles(faces: Table, points: Floats) -> Ints:
    """The triangles of the faces between points (m, 3)."""
    name = next((name for name in INDICES if name in faces.lists), "")
    if not name and len(faces.lists) > 1:
        raise Unreadable(f"its header names no faces with a list {' or '.join(INDICES)}")
    if not faces.lists:
        return np.empty((0, 3), np.int64)
    indices, lengths = faces.lists[name or next(iter(faces.lists))]
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
                    elements[-1].lists[name] = (TYPES[length], TYPES[entries])
                    elements[-1].order.append(name)
                case ["property", kind, name]:
                    elements[-1].numbers[name] = TYPES[kind]
                    elements[-1].order.append(name)
                case [] | ["comment" | "obj_info", *_]:
                    pass
                case _:
                    raise ValueError
        except (KeyError, ValueError, IndexError):
            raise Unreadable(f"line {number}: {shown(line)} is not a line of a header "
                             "of PLY") from None  # fmt: skip
    if order is None:
        raise Unreadable("its header has no line 'format'")
    if len({each.name for each in elements}) < len(elements) or any(
        len(set(each.order)) < len(each.order) for each in elements
    ):
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
    try:
        tables = _of_bytes(values.tobytes(), 0, "=", [each.as_doubles() for each in elements])
    except Unreadable:
        if wrong is None:
            raise
        place = next(islice(WORD.finditer(data, at), wrong, None)).start()
        raise not_a_number(line_number(data, place), words[wrong]) from None
    for element in elements:  # with the precision that the header states
        columns = tables[element.name].columns if element.name in tables else {}
        for name, column in columns.items():
            if element.numbers[name][0] == "f":
                with np.errstate(over="ignore"):
                    columns[name] = column.astype(element.numbers[name])
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
    if not element.count or not element.order:
        nothing = np.empty(0), np.empty(0, np.int64)
        columns = dict.fromkeys(element.numbers, nothing[0])
        return Table(columns, dict.fromkeys(element.lists, nothing)), at
    counts, end = {}, at  # lengths of the lists in the first row
    for name in element.order:
        if name in element.numbers:
            end += np.dtype(element.numbers[name]).itemsize
            continue
        length, entry = (np.dtype(order + kind) for kind in element.lists[name])
        counts[name] = _length(data, end, length, element)
        end += length.itemsize + counts[name] * entry.itemsize
    size = (end - at) * element.count
    if end > len(data) or (size > len(data) - at and not counts):
        raise _cut_short(element)
    if size > len(data) - at:
        return None
    rows = np.frombuffer(data, np.dtype(_fields(order, element, counts)), element.count, at)
    if any((rows[f"{name}#"] != count).any() for name, count in counts.items()):
        return None
    lists = {
        name: (rows[f"{name}."].reshape(-1), np.full(element.count, count, np.int64))
        for name, count in counts.items()
    }
    return Table({name: rows[f"{name}."] for name in element.numbers}, lists), at + size


def _fields(order: str, element: Element, counts: dict[str, int]) -> list[tuple]:
    """The fields of a row, `name.`, preceded by `name#` with the length of a list."""
    fields: list[tuple] = []
    for name in element.order:
        if name in element.numbers:
            fields.append((f"{name}.", order + element.numbers[name]))
        else:
            length, entry = (order + kind for kind in element.lists[name])
            fields += [(f"{name}#", length), (f"{name}.", entry, (counts[name],))]
    return fields


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
    found: dict[str, list[NDArray]] = {name: [] for name in element.order}
    kinds = {name: np.dtype(order + kind) for name, kind in element.numbers.items()}
    kinds |= {name: np.dtype(order + kind) for name, (_, kind) in element.lists.items()}
    lengths = {name: np.dtype(order + kind) for name, (kind, _) in element.lists.items()}
    for _ in range(element.count):
        for name in element.order:
            count = 1
            if name in lengths:
                count = _length(data, at, lengths[name], element)
                at += lengths[name].itemsize
            if at + count * kinds[name].itemsize > len(data):
                raise _cut_short(element)
            found[name].append(np.frombuffer(data, kinds[name], count, at))
            at += count * kinds[name].itemsize
    joined = {name: np.concatenate(each) for name, each in found.items()}
    lists = {
        name: (joined[name], np.array([each.size for each in found[name]], np.int64))
        for name in lengths
    }
    return Table({name: joined[name] for name in element.numbers}, lists), at
