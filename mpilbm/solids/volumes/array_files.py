"""Reads arrays from .npy, .npz, HDF5 and .raw files."""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.hdf5 import Hdf5File, attribute, dataset_names, opened, require_intact
from mpilbm.core.files.input_arrays import (
    AGAIN,
    Header,
    array_bytes,
    hdf5_dataset,
    npy_array,
    npy_header,
    reading,
)
from mpilbm.solids.volumes import Source, Stream, Volume, mapped, require_stored
from mpilbm.solids.volumes.spacing import side
from mpilbm.solids.volumes.text_headers import require_sizes

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
        missing = f"{source.path.name} has no {what} of this name"
        raise ValueError(f"is missing: {missing}; it has {listed}")
    fix = f"name one as {source.path.name}:NAME"
    raise ValueError(f"has {len(names)} {what}s; {fix}; it has {listed}")


def _array(path: Path, info: zipfile.ZipInfo, header: Header, begin: int) -> Any:
    """The array of a member of an archive; begin: the bytes before its first value."""
    shape, fortran, dtype = header
    stored, needed = info.file_size - begin, array_bytes(shape, dtype)
    if stored != needed:
        what = f"an array of shape {shape} and type {dtype.name}"
        raise ValueError(f"is damaged: {what} has {needed} bytes, found {stored}; {AGAIN}")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        fix = "save it by np.savez or np.savez_compressed"
        raise ValueError(f"has a compression that NumPy does not write; {fix}")
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


def dataset(source: Source) -> Volume:
    """The dataset `item` of an HDF5 file, or its only one. Verifies the digest of the file."""
    require_intact(source.path)
    item = source.item
    if not item:
        with opened(source.path) as file:
            item = chosen(source, dataset_names(file), "dataset")
    return checked(source.path, item)


def checked(path: Path, item: str) -> Volume:
    """A dataset of numbers of a file whose digest has been verified."""
    array = Dataset(path, item)
    return Volume(array, array.chunk, array.spacing)


class Dataset:
    """A dataset; indexing opens the file and reads from it."""

    def __init__(self, path: Path, item: str):
        self.path, self.item = path, item
        with opened(path) as file:
            values = hdf5_dataset(file, path, item, "biuf")
            self.shape: tuple[int, ...] = values.shape
            self.dtype: np.dtype = values.dtype
            chunks = values.chunks or (1, 1)
            self.spacing = _spacing(file, item)
        self.chunk = chunks[1 if len(chunks) == 3 and self.shape[0] == 1 else 0]

    def __getitem__(self, index: Any) -> NDArray[Any]:
        with opened(self.path) as file:
            return hdf5_dataset(file, self.path, self.item, "biuf")[index]


def _spacing(file: Hdf5File, item: str) -> tuple[float, ...]:
    """Sides of a voxel along x, y[, z] from `element_size_um` of a dataset (ImageJ, ilastik), in
    the order of its axes, or from the image of VTKHDF; () if they are unknown.
    """
    image = item.strip("/").startswith("VTKHDF/")
    group, name, step = ("VTKHDF", "Spacing", 1) if image else (item, "element_size_um", -1)
    try:
        return tuple(map(side, attribute(file, group, name, np.ndarray).tolist()[::step]))
    except (ValueError, TypeError):
        return ()


def raw(source: Source) -> Volume:
    """The voxels of a file; `size`, `type` and `order` describe it."""
    missing = [key for key in ("size", "type") if not getattr(source, key)]
    if missing or source.size is None:
        raise ValueError(
            f"has no header; give {' and '.join(missing)}, such as size = [512, 512, 512], "
            'type = "uint8"'
        )
    require_sizes(source.size)
    axes = "xyz"[: len(source.size)]
    order = source.order or axes
    if sorted(order) != list(axes):
        raise ValueError(
            f"has a size of {len(axes)} numbers, order = '{order}'; allowed: the axes {axes} in "
            "the order from the fastest to the slowest"
        )
    slowest_first = order[::-1]
    shape = tuple(source.size[axes.index(axis)] for axis in slowest_first)
    array = mapped(source.path, _voxel_type(source.type), shape, exact=True)
    return Volume(array.transpose([slowest_first.index(axis) for axis in axes[::-1]]))


def _voxel_type(name: str) -> np.dtype:
    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        found = np.dtype(object)
    if found.kind not in "biuf":
        raise ValueError(
            f"has the unknown type = '{name}'; allowed: a NumPy type such as uint8, int16, >u2 "
            "(big-endian) or float32"
        )
    return found
