"""Reads .npy and .npz files; arrays that are not compressed are mapped into memory."""

import zipfile
import zlib
from functools import partial
from math import prod
from pathlib import Path
from tokenize import TokenError  # of a damaged header
from typing import Any, BinaryIO

import numpy as np

from mpilbm.case.input_fields import npy_array
from mpilbm.geometry.volumes.volume import AGAIN, Skipping, Source, Stream, Volume, mapped

LOCAL_HEADER = 30  # bytes before the names in the local header of a zip member
Header = tuple[tuple[int, ...], bool, np.dtype]  # shape, Fortran order, type


def npy(source: Source) -> Volume:
    """The array of a .npy file, mapped into memory."""
    return Volume(npy_array(source.path))


def npz(source: Source) -> Volume:
    """The array `item` of a .npz file, or its only one.

    Mapped into memory if it is not compressed, otherwise decompressed plane by plane.
    """
    path = source.path
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
            name = chosen(source, names, "array")
            info = archive.getinfo(f"{name}.npy")
            with archive.open(info) as file:
                shape, fortran, dtype = _header(file)
                begin = file.tell()
        return Volume(_array(path, info, shape, fortran, dtype, begin))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ValueError(f"cannot be read as .npz ({error}); {AGAIN}") from None


def chosen(source: Source, names: list[str], what: str) -> str:
    """The name of the array to read; ValueError if it is missing or not unique."""
    if source.item in names:
        return source.item
    if not source.item and len(names) == 1:
        return names[0]
    listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "") if names else "none"
    if source.item:
        raise ValueError(f"is missing: {source.path.name} has no {what} of this name; "
                         f"it has {listed}")  # fmt: skip
    raise ValueError(
        f"has {len(names)} {what}s; name one as {source.path.name}:NAME; it has {listed}"
    )


def _header(file: Any) -> Header:
    """The header of a .npy file, which is read up to its first value."""
    try:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0}
        return read.get(version, np.lib.format.read_array_header_2_0)(file)
    except (ValueError, TypeError, TokenError, SyntaxError) as error:
        raise ValueError(f"cannot be read as .npz ({error}); {AGAIN}") from None


def _array(path: Path, info: zipfile.ZipInfo, shape, fortran: bool, dtype: np.dtype, begin: int):
    """The array of a member of an archive; begin: the bytes before its first value."""
    if dtype.hasobject:
        raise ValueError("contains Python objects; save it as bool or uint8")
    stored, needed = info.file_size - begin, prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or stored != needed:
        raise ValueError(f"is damaged: an array of shape {shape} and type {dtype.name} has "
                         f"{needed} bytes, found {stored}; {AGAIN}")  # fmt: skip
    if info.compress_type != zipfile.ZIP_STORED:
        if fortran:  # planes are not contiguous, so the array is read as a whole
            with np.load(path) as archive:
                return archive[info.filename.removesuffix(".npy")]
        return Stream(Skipping(partial(_member, path, info.filename), begin), dtype, shape)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(LOCAL_HEADER)
    names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    offset = info.header_offset + LOCAL_HEADER + names + begin
    array = mapped(path, dtype, shape[::-1] if fortran else shape, offset)
    return array.T if fortran else array


def _member(path: Path, name: str) -> BinaryIO:
    archive = zipfile.ZipFile(path)
    return archive.open(name)  # type: ignore[return-value]
