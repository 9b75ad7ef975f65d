"""Volume files in each format, and the solid cells of the shape "voxels"."""

import gzip
import zlib
from types import SimpleNamespace

import h5py
import numpy as np
import tifffile
from click.testing import CliRunner
from PIL import Image

from mpilbm.cli import cli
from mpilbm.core.registry import make

SHAPE = NZ, NY, NX = 7, 5, 12
GREY = np.random.default_rng(1).integers(0, 256, SHAPE).astype(np.uint8)
WIDE = (GREY.astype(np.int16) - 100) * 7


CASE = """
[lattice]
name = "D3Q19"
[domain]
size = [12, 5, {planes}]
periodic = [true, true, true]
[fluid]
viscosity = 0.1
[[body]]
label = "rock"
shape = {shape}
boundary = {{name = "bounce_back"}}
[run]
steps = 1
"""


def check(folder, file, planes=NZ, more="", shape='{{name = "voxels", file = "{file}"{more}}}'):
    """The result of `mpilbm check` of a case with a file in a folder; `more`: options as TOML."""
    text = CASE.format(planes=planes, shape=shape.format(file=file, more=more))
    (folder / "case.toml").write_text(text)
    return CliRunner().invoke(cli, ["check", str(folder / "case.toml")])


def shape(folder, file, dimensions=3, **options):
    """The resolved shape of a file."""
    case = SimpleNamespace(directory=folder, dimensions=dimensions)
    return make("shapes", {"name": "voxels", "file": file, **options}).resolved(case)


def cells(found, size):
    """The solid cells [z, y, x] of a box of this size (nx, ny[, nz])."""
    axes = [np.arange(n) + 0.5 for n in reversed(size)]
    points = np.meshgrid(*axes, indexing="ij", sparse=True)[::-1]
    return np.broadcast_to(found.inside(*points), size[::-1])


def solid(folder, file, box=(NX, NY, NZ), **options):
    return cells(shape(folder, file, len(box), **options), box)


# Writers of an array; each returns the options of the shape.


def npy(path, array):
    np.save(path / "a.npy", array)
    return {"file": "a.npy"}


def npy_fortran(path, array):
    np.save(path / "a.npy", np.asfortranarray(array))
    return {"file": "a.npy"}


def npz(path, array):
    np.savez(path / "a.npz", rock=array)
    return {"file": "a.npz"}


def npz_fortran(path, array):
    np.savez(path / "a.npz", rock=np.asfortranarray(array))
    return {"file": "a.npz"}


def npz_compressed(path, array):
    np.savez_compressed(path / "a.npz", other=array[:1], rock=array)
    return {"file": "a.npz:rock"}


def npz_compressed_fortran(path, array):
    np.savez_compressed(path / "a.npz", rock=np.asfortranarray(array))
    return {"file": "a.npz:rock"}


def hdf5(path, array):
    with h5py.File(path / "a.h5", "w") as file:
        file["scan/rock"], file["other"] = array, 1
    return {"file": "a.h5:scan/rock"}


def hdf5_chunks(path, array):
    with h5py.File(path / "a.hdf5", "w") as file:
        chunks = (3, *array.shape[1:])
        file.create_dataset("rock", data=array, chunks=chunks, compression="gzip")
    return {"file": "a.hdf5"}


def tif(path, array):
    tifffile.imwrite(path / "a.tif", array, photometric="minisblack")
    return {"file": "a.tif"}


def tif_big_endian(path, array):
    tifffile.imwrite(path / "a.TIFF", array, photometric="minisblack", byteorder=">")
    return {"file": "a.TIFF"}


def tif_compressed(path, array):
    tifffile.imwrite(path / "a.tiff", array, compression="zlib", photometric="minisblack")
    return {"file": "a.tiff"}


def tif_imagej(path, array):
    tifffile.imwrite(path / "a.tif", array.astype(np.uint16), imagej=True)
    return {"file": "a.tif"}


def raw(path, array):
    array.tofile(path / "a.raw")
    return {"file": "a.raw", "size": array.shape[::-1], "type": array.dtype.str}


def raw_big_endian(path, array):
    array.astype(">i4").tofile(path / "a.raw")
    return {"file": "a.raw", "size": array.shape[::-1], "type": ">i4", "order": "xyz"}


def raw_z_first(path, array):
    array.T.copy().tofile(path / "a.raw")
    return {"file": "a.raw", "size": array.shape[::-1], "type": array.dtype.str, "order": "zyx"}


def raw_mixed(path, array):
    array.transpose(1, 0, 2).copy().tofile(path / "a.raw")  # slowest y, then z, fastest x
    return {"file": "a.raw", "size": array.shape[::-1], "type": array.dtype.str, "order": "xzy"}


def nrrd_header(array, **more):
    endian = ">" if more.get("endian") == "big" else "<"
    kind = {"u1": "uchar", "i2": "short"}[array.dtype.str[1:]]
    fields = {"type": kind, "dimension": array.ndim, "encoding": "raw", "endian": "little",
              "sizes": " ".join(map(str, array.shape[::-1]))} | more  # fmt: skip
    lines = ["NRRD0004", "# a comment", *(f"{k}: {v}" for k, v in fields.items()), "key:=value"]
    return "\n".join([*lines, "", ""]).encode(), array.astype(array.dtype.newbyteorder(endian))


def nrrd(path, array):
    header, data = nrrd_header(array)
    (path / "a.nrrd").write_bytes(header + data.tobytes())
    return {"file": "a.nrrd"}


def nrrd_gzip(path, array):
    header, data = nrrd_header(array, encoding="gzip", endian="big")
    (path / "a.nrrd").write_bytes(header + gzip.compress(data.tobytes()))
    return {"file": "a.nrrd"}


def nrrd_detached(path, array):
    header, data = nrrd_header(array, **{"data file": "a.bin", "line skip": 1, "byte skip": 3})
    (path / "a.nhdr").write_bytes(header)
    (path / "a.bin").write_bytes(b"a line\nabc" + data.tobytes())
    return {"file": "a.nhdr"}


def nrrd_from_the_end(path, array):
    header, data = nrrd_header(array, **{"datafile": "a.bin", "byteskip": -1})
    (path / "a.nhdr").write_bytes(header)
    (path / "a.bin").write_bytes(b"unknown" + data.tobytes())
    return {"file": "a.nhdr"}


def nrrd_detached_gzip(path, array):
    header, data = nrrd_header(array, encoding="gz", **{"data file": "a.gz", "byte skip": 3})
    (path / "a.nhdr").write_bytes(header)
    (path / "a.gz").write_bytes(gzip.compress(b"abc" + data.tobytes()))
    return {"file": "a.nhdr"}


def meta_header(array, **more):
    kind = {"u1": "MET_UCHAR", "i2": "MET_SHORT"}[array.dtype.str[1:]]
    fields = {"ObjectType": "Image", "NDims": array.ndim, "BinaryData": "True",
              "BinaryDataByteOrderMSB": "False", "ElementType": kind,
              "DimSize": " ".join(map(str, array.shape[::-1]))}  # fmt: skip
    fields |= {"ElementDataFile": "LOCAL"} | more
    return "".join(f"{key} = {value}\n" for key, value in sorted(
        fields.items(), key=lambda item: item[0] == "ElementDataFile")).encode()  # fmt: skip


def mha(path, array):
    (path / "a.mha").write_bytes(meta_header(array) + array.tobytes())
    return {"file": "a.mha"}


def mha_compressed(path, array):
    header = meta_header(array, CompressedData="True")
    (path / "a.mha").write_bytes(header + zlib.compress(array.tobytes()))
    return {"file": "a.mha"}


def mhd(path, array):
    header = meta_header(array, ElementDataFile="a.bin", BinaryDataByteOrderMSB="True")
    (path / "a.mhd").write_bytes(b"HeaderSize = -1\n" + header)
    (path / "a.bin").write_bytes(b"head" + array.astype(array.dtype.newbyteorder(">")).tobytes())
    return {"file": "a.mhd"}


def mhd_compressed(path, array):
    header = meta_header(array, ElementDataFile="a.zraw", CompressedData="True")
    (path / "a.mhd").write_bytes(header)
    (path / "a.zraw").write_bytes(zlib.compress(array.tobytes()))
    return {"file": "a.mhd"}


def folder(path, array, ending="png"):
    (path / "slices").mkdir()
    (path / "slices" / "notes.txt").write_text("not an image")
    for k, plane in enumerate(array, 5):  # 5 … 11: in the order of the numbers, not of the text
        if ending == "tif":
            tifffile.imwrite(path / "slices" / f"s{k}.tif", plane)
        else:
            Image.fromarray(plane).save(path / "slices" / f"s{k}.{ending}")
    return {"file": "slices"}


def folder_bmp(path, array):
    return folder(path, array, "bmp")


def folder_tif(path, array):
    return folder(path, array, "tif")


SIGNED = [npy, npy_fortran, npz, npz_fortran, npz_compressed, npz_compressed_fortran, hdf5,
          hdf5_chunks, tif, tif_big_endian, tif_compressed, raw, raw_big_endian, raw_z_first,
          raw_mixed, nrrd, nrrd_gzip, nrrd_detached, nrrd_from_the_end, nrrd_detached_gzip, mha,
          mha_compressed, mhd, mhd_compressed, folder_tif]  # fmt: skip
WRITERS = [*SIGNED, tif_imagej, folder, folder_bmp]
