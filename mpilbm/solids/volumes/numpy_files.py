"""Reads .npy and .npz files; arrays that are not compressed are mapped into memory."""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mpilbm.core.files.input_arrays import (
    AGAIN,
    Header,
    array_bytes,
    npy_array,
    npy_header,
    reading,
)
from mpilbm.solids.volumes.volume import Source, Stream, Volume, mapped, require_stored

LOCAL_HEADER = 30  # bytes before the names in the local header of a zip member


def npy(source: Source) -> Volume:
    """The array of a .npy file, mapped into memory."""
    return Volume(npy_array(source.path))


def npz(source: Source) -> Volume:
    """The array `item` of a .npz file, or its only one.

    Mapped into memory if it is not compressed, otherwise decompressed plane by plane.
    """
    with reading("as .npz"):
        archive = zipfile.ZipFile(source.path)
        names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
    with archive:
        name = chosen(source, names, "array")
        with reading("as .npz"):
            info = archive.getinfo(f"{name}.npy")
            file = archive.open(info)
        with file:
            header = npy_header(file, ".npz")
            begin = file.tell()
    return Volume(_array(source.path, info, header, begin))


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


def _array(path: Path, info: zipfile.ZipInfo, header: Header, begin: int) -> Any:
    """The array of a member of an archive; begin: the bytes before its first value."""
    shape, fortran, dtype = header
    stored, needed = info.file_size - begin, array_bytes(shape, dtype)
    if stored != needed:
        raise ValueError(f"is damaged: an array of shape {shape} and type {dtype.name} has "
                         f"{needed} bytes, found {stored}; {AGAIN}")  # fmt: skip
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("has a compression that NumPy does not write; save it by np.savez or "
                         "np.savez_compressed")  # fmt: skip
    if info.compress_type == zipfile.ZIP_DEFLATED:
        if fortran:  # planes are not contiguous, so the array is read as a whole
            require_stored(info.file_size, info.compress_size)
            with reading("as .npz"), np.load(path) as archive:
                return archive[info.filename.removesuffix(".npy")]
        opener = partial(_member, path, info.filename)
        return Stream(opener, dtype, shape, info.compress_size, begin)
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
