"""Reads MetaImage files: .mha, and .mhd with a data file; raw or compressed by zlib.

[Kitware: MetaIO documentation, https://itk.org/Wiki/ITK/MetaIO/Documentation]
"""

import io
import zlib
from contextlib import suppress
from functools import partial
from os.path import isfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpilbm.core.files.input_arrays import AGAIN
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

TYPES = {
    "MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4",
    "MET_UINT": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}  # fmt: skip
MATRICES = "TransformMatrix", "Rotation", "Orientation"  # names of one key
LONGEST = 1 << 16  # bytes of a line of the header, and lines
BLOCK = 1 << 18  # compressed bytes that are read at a time


def metaimage(source: Source) -> Volume:
    """The array of a file; raw data are mapped into memory, zlib is read plane by plane."""
    keys, begin = _header(source.path)
    sizes = integers(keys.get("DimSize", ""), "DimSize")
    skip = integer(keys.get("HeaderSize", "0"), "HeaderSize")
    refuse_sizes(sizes)
    refuse_dimensions(integer(keys.get("NDims", str(len(sizes))), "NDims"), "NDims", sizes)
    if keys.get("ElementNumberOfChannels", "1") != "1":
        raise ValueError("has several channels; allowed: one number per voxel; convert it")
    if not _true(keys, "BinaryData", True):
        raise ValueError("has its data as text; allowed: BinaryData = True; convert it")
    dtype, shape = _dtype(keys), sizes[::-1]
    path, begin = _data(source.path, keys["ElementDataFile"], begin)
    if 0 < skip < begin:
        raise ValueError(f"has HeaderSize {skip}, but its header has {begin} bytes; allowed: 0, "
                         f"{begin} or more, or -1 if the data are the end of the file; correct "
                         "the header")  # fmt: skip
    skip -= begin if skip > 0 else 0  # it counts from the beginning of the data file
    spacing, notes = _spacing(keys, len(sizes))
    if not _true(keys, "CompressedData", False):
        array: Any = raw_data(path, dtype, shape, begin, skip, "HeaderSize")
        return Volume(array, spacing=spacing, notes=notes)
    if skip < 0:
        raise ValueError(f"has HeaderSize {skip} in its header; allowed for compressed data: 0 or "
                         "more; correct the header")  # fmt: skip
    stored = path.stat().st_size - begin - skip
    array = Stream(partial(_inflated, path, begin + skip), dtype, shape, stored)
    return Volume(array, spacing=spacing, notes=notes)


def _header(path: Path) -> tuple[dict[str, str], int]:
    """The keys of a header, and the place behind its last line, ElementDataFile."""
    keys: dict[str, str] = {}
    with path.open("rb") as file:
        for _ in range(LONGEST):
            line = file.readline(LONGEST).decode("latin-1")
            name, found, value = line.partition("=")
            if not found:
                break
            keys[name.strip()] = value.strip()
            if name.strip() == "ElementDataFile":
                return keys, file.tell()
    raise ValueError(f"is not a MetaImage file: it has no header with ElementDataFile; {AGAIN}")


def _spacing(keys: dict[str, str], dimensions: int) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Sides of a voxel along x, y[, z], and a note on swapped axes; see Volume."""
    key = next((each for each in ("ElementSpacing", "ElementSize") if each in keys), None)
    sides = tuple(map(side, numbers(keys[key], key, dimensions))) if key else ()
    name = next((each for each in MATRICES if each in keys), "")
    with suppress(ValueError):  # other texts, such as "RAI", are ignored
        parts = numbers(keys.get(name, ""), name, dimensions**2)
        rows = [parts[k : k + dimensions] for k in range(0, len(parts), dimensions)]
        return sides, of_directions(rows, name)[1]
    return sides, ()


def _true(keys: dict[str, str], name: str, default: bool) -> bool:
    return keys.get(name, str(default)).lower() in ("true", "1")


def _dtype(keys: dict[str, str]) -> np.dtype:
    found = keys.get("ElementType", "")
    if found not in TYPES:
        raise ValueError(f"has the ElementType '{found}'; allowed: {', '.join(TYPES)}; convert it")
    big = _true(keys, "BinaryDataByteOrderMSB", _true(keys, "ElementByteOrderMSB", False))
    return np.dtype((">" if big else "<") + TYPES[found])


def _data(header: Path, name: str, begin: int) -> tuple[Path, int]:
    """The file of the data, and where they begin."""
    if name == "LOCAL":
        return header, begin
    if name.split()[:1] == ["LIST"] or "%" in name:
        raise ValueError("has its data in several files; allowed: one file; convert it")
    path = header.parent / name
    if not isfile(path):
        raise ValueError(f"is incomplete: there is no data file {path}; copy it there")
    return path, 0


def _inflated(path: Path, begin: int) -> BinaryIO:
    file = path.open("rb")
    file.seek(begin)
    return io.BufferedReader(_Inflated(file), BLOCK)


class _Inflated(io.RawIOBase):
    """The decompressed content of a file of zlib data."""

    def __init__(self, file: BinaryIO):
        self.file, self.inflate = file, zlib.decompressobj()

    def readable(self) -> bool:
        """Always."""
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
