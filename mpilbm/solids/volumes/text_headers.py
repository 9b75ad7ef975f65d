"""Reads NRRD (.nrrd, .nhdr) and MetaImage (.mha, .mhd): a text header, and raw or compressed data.

All problems raise a ValueError whose text follows the name of the file.

[Teem: definition of NRRD file format, https://teem.sourceforge.net/nrrd/format.html]
[Kitware: MetaIO documentation, https://itk.org/Wiki/ITK/MetaIO/Documentation]
"""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import prod
from os.path import isfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpilbm.core.files.input_arrays import AGAIN
from mpilbm.core.units import counted
from mpilbm.solids.volumes import Source, Stream, Volume, mapped
from mpilbm.solids.volumes.spacing import of_directions, side

Data = tuple[Path, np.dtype, tuple[int, ...], int, int]  # file, type, sizes, first byte, skip
Opened = Callable[[Path, int], BinaryIO]  # the decompressed content from a byte on
Spacing = tuple[tuple[float, ...], tuple[str, ...]]  # sides along x, y[, z], and notes; see Volume

NRRD_NAMES = {
    "i1": "signed char|int8",
    "i2": "short|short int|signed short|signed short int|int16",
    "i4": "int|signed int|int32",
    "i8": "longlong|long long|long long int|signed long long|signed long long int|int64",
    "u1": "uchar|unsigned char|uint8",
    "u2": "ushort|unsigned short|unsigned short int|uint16",
    "u4": "uint|unsigned int|uint32",
    "u8": "ulonglong|unsigned long long|unsigned long long int|uint64",
    "f4": "float",
    "f8": "double",
}
NRRD_TYPES = {
    each: code
    for code, names in NRRD_NAMES.items()
    for name in names.split("|")
    for each in ((name, f"{name}_t") if name[-1].isdigit() else (name,))
}
META_TYPES = {
    f"MET_{'U' if kind == 'u' else ''}{name}": f"{kind}{size}"
    for name, size in {"CHAR": 1, "SHORT": 2, "INT": 4, "LONG_LONG": 8}.items()
    for kind in "iu"
} | {"MET_FLOAT": "f4", "MET_DOUBLE": "f8"}
META_MATRICES = "TransformMatrix", "Rotation", "Orientation"  # names of one key
INTEGER = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
VECTOR = re.compile(r"none|\(([^()]*)\)")
LONGEST = 1 << 16  # bytes of a line of a header, and lines
BLOCK = 1 << 18  # compressed bytes that are read at a time


def nrrd(source: Source) -> Volume:
    """The array of an NRRD file; raw data are mapped into memory, gzip is read plane by plane."""
    fields, begin = _nrrd_header(source.path)
    if "sizes" not in fields:
        raise ValueError(f"has no sizes in its header; {AGAIN}")
    sizes = _sizes(fields["sizes"], "sizes", _nrrd_number(fields, "dimension"), "dimension")
    kind = NRRD_TYPES.get(fields.get("type", "").lower())
    if kind is None:
        allowed = f"allowed: {', '.join(NRRD_TYPES)}; convert it"
        raise ValueError(f"has the type '{fields.get('type', '')}'; {allowed}")
    endian = {"little": "<", "big": ">"}.get(fields.get("endian", "").lower())
    if endian is None and kind[1] != "1":
        raise ValueError(f"has no endian in its header; allowed: little, big; {AGAIN}")
    name = fields.get("data file", fields.get("datafile"))
    path, begin = (source.path, begin) if name is None else (_data_file(source.path, name), 0)
    begin = _after_lines(path, begin, _nrrd_number(fields, "line skip") or 0)
    encoding, skip = fields.get("encoding", "").lower(), _nrrd_number(fields, "byte skip") or 0
    spacing, dtype = _nrrd_spacing(fields, len(sizes)), np.dtype((endian or "") + kind)
    if encoding not in ("raw", "gzip", "gz"):
        raise ValueError(f"has the encoding '{encoding}'; allowed: raw and gzip; convert it")
    if skip < 0 and encoding != "raw":
        allowed = f"allowed for the encoding '{encoding}': 0 or more; correct the header"
        raise ValueError(f"has byte skip {skip} in its header; {allowed}")
    opened = None if encoding == "raw" else _unzipped
    return _volume((path, dtype, sizes, begin, skip), spacing, "byte skip", opened)


def metaimage(source: Source) -> Volume:
    """The array of a MetaImage file; raw data are mapped into memory, zlib is read by planes."""
    keys, begin = _meta_header(source.path)
    given = _integer(keys["NDims"], "NDims") if "NDims" in keys else None
    sizes = _sizes(keys.get("DimSize", ""), "DimSize", given, "NDims")
    skip = _integer(keys.get("HeaderSize", "0"), "HeaderSize")
    if keys.get("ElementNumberOfChannels", "1") != "1":
        raise ValueError("has several channels; allowed: one number per voxel; convert it")
    if not _is_true(keys, "BinaryData", True):
        raise ValueError("has its data as text; allowed: BinaryData = True; convert it")
    kind = keys.get("ElementType", "")
    if kind not in META_TYPES:
        allowed = ", ".join(META_TYPES)
        raise ValueError(f"has the ElementType '{kind}'; allowed: {allowed}; convert it")
    big = _is_true(keys, "BinaryDataByteOrderMSB", _is_true(keys, "ElementByteOrderMSB", False))
    dtype, name = np.dtype((">" if big else "<") + META_TYPES[kind]), keys["ElementDataFile"]
    path, begin = (source.path, begin) if name == "LOCAL" else (_data_file(source.path, name), 0)
    if 0 < skip < begin:
        raise ValueError(
            f"has HeaderSize {skip}, but its header has {begin} bytes; allowed: 0, {begin} or "
            "more, or -1 if the data are the end of the file; correct the header"
        )
    skip -= begin if skip > 0 else 0  # it counts from the beginning of the data file
    spacing = _meta_spacing(keys, len(sizes))
    if not _is_true(keys, "CompressedData", False):
        return _volume((path, dtype, sizes, begin, skip), spacing, "HeaderSize", None)
    if skip < 0:
        allowed = "allowed for compressed data: 0 or more; correct the header"
        raise ValueError(f"has HeaderSize {skip} in its header; {allowed}")
    return _volume((path, dtype, sizes, begin + skip, 0), spacing, "HeaderSize", _inflated)


def _nrrd_header(path: Path) -> tuple[dict[str, str], int]:
    """The fields by name in lower case, and the place behind the header."""
    fields: dict[str, str] = {}
    with path.open("rb") as file:
        if not file.readline(LONGEST).startswith(b"NRRD000"):
            raise ValueError(f"is not an NRRD file: it does not begin with NRRD000; {AGAIN}")
        for line in _lines(file):
            if not line.rstrip("\r\n"):
                return fields, file.tell()
            name, found, value = line.partition(": ")
            if found and not line.startswith("#") and ":=" not in name:
                fields[name.strip().lower()] = value.strip()
    raise ValueError(f"has a header without end; {AGAIN}")


def _meta_header(path: Path) -> tuple[dict[str, str], int]:
    """The keys, and the place behind the last line, ElementDataFile."""
    keys: dict[str, str] = {}
    with path.open("rb") as file:
        for line in _lines(file):
            name, found, value = line.partition("=")
            if not found:
                break
            keys[name.strip()] = value.strip()
            if name.strip() == "ElementDataFile":
                return keys, file.tell()
    raise ValueError(f"is not a MetaImage file: it has no header with ElementDataFile; {AGAIN}")


def _lines(file: BinaryIO) -> Iterator[str]:
    for _ in range(LONGEST):
        yield file.readline(LONGEST).decode("latin-1")


def _nrrd_number(fields: dict[str, str], name: str) -> int | None:
    """The integer of a field, which may be written without spaces; None if it is missing."""
    text = fields.get(name, fields.get(name.replace(" ", "")))
    return None if text is None else _integer(text, name)


def _is_true(keys: dict[str, str], name: str, default: bool) -> bool:
    return keys.get(name, str(default)).lower() in ("true", "1")


def _nrrd_spacing(fields: dict[str, str], dimensions: int) -> Spacing:
    if "space directions" in fields:
        text = fields["space directions"]
        vectors = [_vector(found[1]) for found in VECTOR.finditer(text)]
        if len(vectors) != dimensions or VECTOR.sub("", text).strip():
            allowed = f"allowed: {dimensions} vectors, or none; {AGAIN}"
            raise ValueError(f"has the space directions '{text}' in its header; {allowed}")
        return of_directions(vectors, "space directions")
    if "spacings" in fields:
        return tuple(map(side, _numbers(fields["spacings"], "spacings", dimensions))), ()
    return (), ()


def _vector(text: str | None) -> tuple[float, ...]:
    """The numbers of a vector such as "1,0,0"; () for None, an axis without a direction."""
    if text is None:
        return ()
    return _numbers(text.replace(",", " "), "space directions", min(3, text.count(",") + 1))


def _meta_spacing(keys: dict[str, str], dimensions: int) -> Spacing:
    key = next((each for each in ("ElementSpacing", "ElementSize") if each in keys), None)
    sides = tuple(map(side, _numbers(keys[key], key, dimensions))) if key else ()
    name = next((each for each in META_MATRICES if each in keys), "")
    with suppress(ValueError):  # other texts, such as "RAI", are ignored
        parts = _numbers(keys.get(name, ""), name, dimensions**2)
        rows = [parts[k : k + dimensions] for k in range(0, len(parts), dimensions)]
        return sides, of_directions(rows, name)[1]
    return sides, ()


def _sizes(text: str, key: str, dimensions: int | None, dimensions_key: str) -> tuple[int, ...]:
    """The voxels along x, y[, z], the value of `key`; dimensions: their number in the header."""
    sizes = _integers(text, key)
    require_sizes(sizes)
    if dimensions not in (None, len(sizes)):
        raise ValueError(
            f"has {dimensions_key} {dimensions} and the size {list(sizes)} in its header; allowed: "
            f"a number for each dimension; {AGAIN}"
        )
    return sizes


def require_sizes(sizes: tuple[int, ...]) -> None:
    """ValueError unless there are two or three sizes above 0."""
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ValueError(f"has the size {list(sizes)}; allowed: two or three numbers above 0")


def _integers(text: str, key: str) -> tuple[int, ...]:
    """The integers of the value of a key, at least one."""
    parts = text.split()
    if not parts or not all(map(INTEGER.fullmatch, parts)):
        raise ValueError(f"has the {key} '{text}' in its header; allowed: integers; {AGAIN}")
    return tuple(map(int, parts))


def _integer(text: str, key: str) -> int:
    found, *others = _integers(text, key)
    if others:
        raise ValueError(f"has the {key} '{text}' in its header; allowed: one integer; {AGAIN}")
    return found


def _numbers(text: str, key: str, count: int) -> tuple[float, ...]:
    try:
        found = tuple(map(float, text.split()))
    except ValueError:
        found = ()
    if len(found) != count:
        allowed = f"allowed: {counted(count, 'number')}; {AGAIN}"
        raise ValueError(f"has the {key} '{text}' in its header; {allowed}")
    return found


def _data_file(header: Path, name: str) -> Path:
    if name.split()[:1] == ["LIST"] or "%" in name:
        raise ValueError("has its data in several files; allowed: one file; convert it")
    path = header.parent / name
    if not isfile(path):
        raise ValueError(f"is incomplete: there is no data file {path}; copy it there")
    return path


def _after_lines(path: Path, begin: int, lines: int) -> int:
    with path.open("rb") as file:
        file.seek(begin)
        for number in range(lines):
            if not file.readline():
                ends = f"{path.name} ends after {counted(number, 'line')}; correct the header"
                raise ValueError(f"has line skip {lines} in its header, but {ends}")
        if lines < 0:
            allowed = "allowed: 0 or more; correct the header"
            raise ValueError(f"has line skip {lines} in its header; {allowed}")
        return file.tell()


def _volume(data: Data, spacing: Spacing, key: str, opened: Opened | None) -> Volume:
    """The volume of raw data, mapped into memory, or of compressed ones, which `opened` opens.

    key: that of `data.skip` in the header, which is -1 if raw data are the end of the file.
    """
    path, dtype, sizes, begin, skip = data
    shape = sizes[::-1]
    if opened:
        stored = path.stat().st_size - begin
        return Volume(Stream(partial(opened, path, begin), dtype, shape, stored, skip), 1, *spacing)
    if skip < -1:
        raise ValueError(
            f"has {key} {skip} in its header; allowed: 0 or more, or -1 if the data are the end of "
            "the file; correct the header"
        )
    end = path.stat().st_size - prod(shape) * dtype.itemsize
    begin = max(begin, end) if skip == -1 else begin + skip
    return Volume(mapped(path, dtype, shape, begin), 1, *spacing)


def _unzipped(path: Path, begin: int) -> BinaryIO:
    file: Any = path.open("rb")
    file.seek(begin)
    unzipped: Any = gzip.GzipFile(fileobj=file)
    unzipped.myfileobj = file  # closed together with it
    return unzipped


def _inflated(path: Path, begin: int) -> BinaryIO:
    file = path.open("rb")
    file.seek(begin)
    return io.BufferedReader(_Inflated(file), BLOCK)


class _Inflated(io.RawIOBase):
    """The decompressed content of a file of zlib data."""

    def __init__(self, file: BinaryIO):
        self.file, self.inflate = file, zlib.decompressobj()

    def readable(self) -> bool:
        """True, which BufferedReader requires."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the next compressed block permits; 0 at the end."""
        while not self.inflate.eof:
            data = self.inflate.unconsumed_tail or self.file.read(BLOCK)
            if not data:
                raise EOFError("the compressed data end too early")
            found = self.inflate.decompress(data, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
        return 0

    def close(self) -> None:
        """Close the file, too."""
        self.file.close()
        super().close()
