"""Reads .nrrd files and detached headers (.nhdr), with raw or gzip encoding.

[Teem: definition of NRRD file format, https://teem.sourceforge.net/nrrd/format.html]
"""

import gzip
import re
from functools import partial
from os.path import isfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpilbm.core.files.input_arrays import AGAIN
from mpilbm.core.units import counted
from mpilbm.solids.volumes.header_fields import (
    integer,
    integers,
    numbers,
    raw_data,
    refuse_dimensions,
    refuse_sizes,
)
from mpilbm.solids.volumes.spacing import of_directions, side
from mpilbm.solids.volumes.volume import Source, Stream, Volume

INTEGERS = {"i1": "signed char|int8", "i2": "short|short int|signed short|signed short int|int16",
            "i4": "int|signed int|int32", "i8": "longlong|long long|long long int|signed long long"
            "|signed long long int|int64"}  # fmt: skip
UNSIGNED = {"u1": "uchar|unsigned char|uint8", "u2": "ushort|unsigned short|unsigned short int"
            "|uint16", "u4": "uint|unsigned int|uint32", "u8": "ulonglong|unsigned long long"
            "|unsigned long long int|uint64"}  # fmt: skip
TYPES = {
    each: code
    for code, names in (INTEGERS | UNSIGNED | {"f4": "float", "f8": "double"}).items()
    for name in names.split("|")
    for each in ((name, f"{name}_t") if name[-1].isdigit() else (name,))
}
VECTOR = re.compile(r"none|\(([^()]*)\)")
LONGEST = 1 << 16  # bytes of a line of the header, and lines


def nrrd(source: Source) -> Volume:
    """The array of a file; raw data are mapped into memory, gzip is read plane by plane."""
    fields, begin = _header(source.path)
    if "sizes" not in fields:
        raise ValueError(f"has no sizes in its header; {AGAIN}")
    sizes = integers(fields["sizes"], "sizes")
    refuse_sizes(sizes)
    refuse_dimensions(_number(fields, "dimension", len(sizes)), "dimension", sizes)
    dtype, shape = _dtype(fields), sizes[::-1]
    path, begin = _data(source.path, fields, begin)
    begin = _after_lines(path, begin, _number(fields, "line skip", 0))
    encoding, skip = fields.get("encoding", "").lower(), _number(fields, "byte skip", 0)
    spacing, notes = _spacing(fields, len(sizes))
    if encoding == "raw":
        array: Any = raw_data(path, dtype, shape, begin, skip, "byte skip")
        return Volume(array, spacing=spacing, notes=notes)
    if encoding not in ("gzip", "gz"):
        raise ValueError(f"has the encoding '{encoding}'; allowed: raw and gzip; convert it")
    if skip < 0:
        raise ValueError(f"has byte skip {skip} in its header; allowed for the encoding "
                         f"'{encoding}': 0 or more; correct the header")  # fmt: skip
    stored = path.stat().st_size - begin
    array = Stream(partial(_unzipped, path, begin), dtype, shape, stored, skip)
    return Volume(array, spacing=spacing, notes=notes)


def _header(path: Path) -> tuple[dict[str, str], int]:
    """The fields of a header by name in lower case, and the place behind it."""
    fields: dict[str, str] = {}
    with path.open("rb") as file:
        if not file.readline(LONGEST).startswith(b"NRRD000"):
            raise ValueError(f"is not an NRRD file: it does not begin with NRRD000; {AGAIN}")
        for _ in range(LONGEST):
            line = file.readline(LONGEST).decode("latin-1").rstrip("\r\n")
            if not line:
                return fields, file.tell()
            name, found, value = line.partition(": ")
            if found and not line.startswith("#") and ":=" not in name:
                fields[name.strip().lower()] = value.strip()
    raise ValueError(f"has a header without end; {AGAIN}")


def _number(fields: dict[str, str], name: str, default: int) -> int:
    """The integer of a field that may be missing, or written without spaces."""
    text = fields.get(name, fields.get(name.replace(" ", "")))
    return default if text is None else integer(text, name)


def _spacing(fields: dict[str, str], dimensions: int) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Sides of a voxel along x, y[, z], and a note on swapped axes; see Volume."""
    if "space directions" in fields:
        text = fields["space directions"]
        vectors = [_vector(found[1]) for found in VECTOR.finditer(text)]
        if len(vectors) != dimensions or VECTOR.sub("", text).strip():
            raise ValueError(f"has the space directions '{text}' in its header; "
                             f"allowed: {dimensions} vectors, or none; {AGAIN}")  # fmt: skip
        return of_directions(vectors, "space directions")
    if "spacings" in fields:
        return tuple(map(side, numbers(fields["spacings"], "spacings", dimensions))), ()
    return (), ()


def _vector(text: str | None) -> tuple[float, ...]:
    """The numbers of a vector such as "1,0,0"; () for None, an axis without a direction."""
    if text is None:
        return ()
    return numbers(text.replace(",", " "), "space directions", min(3, text.count(",") + 1))


def _dtype(fields: dict[str, str]) -> np.dtype:
    kind = TYPES.get(fields.get("type", "").lower())
    if kind is None:
        raise ValueError(f"has the type '{fields.get('type', '')}'; allowed: {', '.join(TYPES)}; "
                         "convert it")  # fmt: skip
    endian = {"little": "<", "big": ">"}.get(fields.get("endian", "").lower())
    if endian is None and kind[1] != "1":
        raise ValueError(f"has no endian in its header; allowed: little, big; {AGAIN}")
    return np.dtype((endian or "") + kind)


def _data(header: Path, fields: dict[str, str], begin: int) -> tuple[Path, int]:
    """The file of the data, and where they begin."""
    name = fields.get("data file", fields.get("datafile"))
    if name is None:
        return header, begin
    path = header.parent / name
    if name.startswith("LIST") or "%" in name:
        raise ValueError("has its data in several files; allowed: one file; convert it")
    if not isfile(path):
        raise ValueError(f"is incomplete: there is no data file {path}; copy it there")
    return path, 0


def _after_lines(path: Path, begin: int, lines: int) -> int:
    """The place behind a number of lines; ValueError if the file has no such lines."""
    with path.open("rb") as file:
        file.seek(begin)
        for number in range(lines):
            if not file.readline():
                raise ValueError(f"has line skip {lines} in its header, but {path.name} ends after "
                                 f"{counted(number, 'line')}; correct the header")  # fmt: skip
        if lines < 0:
            raise ValueError(f"has line skip {lines} in its header; allowed: 0 or more; correct "
                             "the header")  # fmt: skip
        return file.tell()


def _unzipped(path: Path, begin: int) -> BinaryIO:
    file: Any = path.open("rb")
    file.seek(begin)
    unzipped: Any = gzip.GzipFile(fileobj=file)
    unzipped.myfileobj = file  # closed together with it
    return unzipped
