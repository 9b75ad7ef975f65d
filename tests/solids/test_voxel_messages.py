"""Shape "voxels": messages for unusable files and options."""

import gzip
import sys
import zlib
from zipfile import ZipFile

import h5py
import numpy as np
import pytest
import tifffile
from PIL import Image
from support.voxel_files import (
    GREY,
    NX,
    NY,
    NZ,
    SHAPE,
    WIDE,
    cells,
    folder,
    folder_tif,
    hdf5,
    meta_header,
    mha,
    mha_compressed,
    npy,
    npz,
    npz_compressed,
    nrrd,
    nrrd_gzip,
    nrrd_header,
    shape,
    solid,
    tif,
    tif_compressed,
)

from mpilbm.core.errors import CaseError
from mpilbm.solids.shapes import voxels


@pytest.fixture(autouse=True)
def _forget():
    voxels._opened.cache_clear()


def problem(folder, file, dimensions=3, **options):
    with pytest.raises(ValueError, match=r".") as error:
        shape(folder, file, dimensions, **options)
    return str(error.value)


def test_files_that_are_missing_or_unknown(tmp_path):
    assert problem(tmp_path, "a.npy") == (
        f"'a.npy' is missing: there is no file {tmp_path / 'a.npy'}; paths are relative to the "
        "folder of the case"
    )
    assert "is missing: there is no file" in problem(tmp_path, "a.h5:rock")
    assert "is missing: there is no file" in problem(tmp_path, "n" * 300 + ".npy")
    (tmp_path / "a.dcm").write_text("")
    assert "'a.dcm' has the unknown ending '.dcm'; allowed: .npy, .npz," in problem(
        tmp_path, "a.dcm"
    )
    (tmp_path / "empty").mkdir()
    assert "is a folder without images; allowed: .png" in problem(tmp_path, "empty")


def test_arrays_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", dry=GREY, wet=GREY)
    assert "has 2 arrays; name one as a.npz:NAME; it has dry, wet" in problem(tmp_path, "a.npz")
    assert "a.npz has no array of this name; it has dry, wet" in problem(tmp_path, "a.npz:moist")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["dry"], file["wet"] = GREY, GREY
    assert "has 2 datasets; name one as a.h5:NAME; it has dry, wet" in problem(tmp_path, "a.h5")
    assert "a.h5 has no dataset 'moist'; it has dry, wet" in problem(tmp_path, "a.h5:moist")


def test_files_without_header(tmp_path):
    GREY.tofile(tmp_path / "a.raw")
    size = [NX, NY, NZ]
    assert "has no header; give size and type, such as" in problem(tmp_path, "a.raw")
    assert "has no header; give type, such as" in problem(tmp_path, "a.raw", size=size)
    text = problem(tmp_path, "a.raw", size=size, type="uint16")
    assert "is truncated: 12 x 5 x 7 voxels of type uint16 are 840 bytes, found 420" in text
    text = problem(tmp_path, "a.raw", size=[NX, NY, 6], type="uint8")
    assert "is larger: 12 x 5 x 6 voxels of type uint8 are 360 bytes, found 420; change" in text
    for name in ("voxel", "O", "U3", "i4,i4"):
        assert f"has the unknown type = '{name}'; allowed: a NumPy type such as" in problem(
            tmp_path, "a.raw", size=size, type=name
        )
    assert "order = 'xy'; allowed: the axes xyz" in problem(
        tmp_path, "a.raw", size=size, type="u1", order="xy"
    )
    assert "has the size [12, 0, 7]; allowed" in problem(
        tmp_path, "a.raw", size=[12, 0, 7], type="u1"
    )


@pytest.mark.parametrize("writer", [npy, tif, nrrd, folder])
def test_size_and_type_of_a_file_with_a_header(writer, tmp_path):
    options = writer(tmp_path, GREY) | {"size": [NX, NY, NZ], "type": "uint8"}
    assert "which contains its own size and type; remove size and type" in problem(
        tmp_path, **options
    )


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("128", "cannot be used with solid = '128', which is not a condition; allowed: a compar"),
        (">= many", "which is not a condition"),
        (">= 1e999", "which is not a condition"),
        ("=> 3", "which is not a condition"),
        (">= 300", "has type uint8, for which solid = '>= 300' holds for no value from 0 to 255"),
        (">= 0", "holds for all values from 0 to 255; change solid"),
        ("== 0.5", "holds for no value"),
        ([1, 300], "has type uint8, but solid contains the label 300; allowed: labels from 0 to"),
        ([], "has type uint8, but solid contains no label"),
    ],
)
def test_conditions_that_are_wrong(condition, text, tmp_path):
    np.save(tmp_path / "a.npy", GREY)
    assert text in problem(tmp_path, "a.npy", solid=condition)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dimensions": 2}, "has 3 dimensions, shape (7, 5, 12); allowed: 2 in 2D"),
        ({"at": [1, 2]}, "at = [1.0, 2.0] has 2 entries; give 3 (x, y, z) in 3D"),
        ({"mirror": [True]}, "mirror = [True] has 1 entry; give 3 (x, y, z) in 3D"),
        ({"crop": [[0, 1]]}, "crop = [(0, 1)] has 1 entry; give 3"),
        ({"pad": [1]}, "pad = [1] has 1 entry; give 3"),
        ({"pad": -1}, "pad = -1 is negative; allowed: 0 or more; remove voxels with crop"),
        ({"crop": [[0, 12], [0, 6], [0, 7]]}, "'a.npy' has 5 voxels along y, crop is [0, 6] there"),
        ({"crop": [[3, 3], [0, 5], [0, 7]]}, "'a.npy' has 12 voxels along x, crop is [3, 3] there"),
        ({"coarsen": 2}, "has 7 voxels along z, which is not a multiple of coarsen = 2; give crop"),
        ({"coarsen": 2, "refine": 2}, "has coarsen = 2 and refine = 2; allowed: one of them"),
    ],
)
def test_options_that_are_wrong(options, text, tmp_path):
    np.save(tmp_path / "a.npy", GREY)
    assert text in problem(tmp_path, "a.npy", **options)


def test_types_that_are_wrong(tmp_path):
    np.save(tmp_path / "a.npy", np.full(SHAPE, "solid"))
    assert "'a.npy' has type <U5; save it as bool or uint8" in problem(tmp_path, "a.npy")
    np.savez(tmp_path / "b.npz", np.full(SHAPE, None))
    assert "'b.npz' contains Python objects" in problem(tmp_path, "b.npz")
    np.save(tmp_path / "c.npy", np.zeros((0, 5, 12)))
    assert "'c.npy' " in problem(tmp_path, "c.npy")
    colours = np.stack([GREY[0]] * 3, axis=-1)
    Image.fromarray(colours).save(tmp_path / "d.png")
    assert "'d.png' is a colour image (mode RGB); allowed: grey images" in problem(
        tmp_path, "d.png", 2
    )
    tifffile.imwrite(tmp_path / "e.tif", colours, photometric="rgb")
    assert "'e.tif' has pages of shape" in problem(tmp_path, "e.tif", 2)


def test_nan_is_neither_solid_nor_fluid(tmp_path):
    values = GREY.astype(np.float32)
    values[4, 1, 2] = np.nan
    np.save(tmp_path / "a.npy", values)
    found = shape(tmp_path, "a.npy", solid="> 3")
    with pytest.raises(CaseError, match=r"a.npy' has nan in planes 0 to 6, which is neither"):
        cells(found, (NX, NY, NZ))


@pytest.mark.parametrize(
    "writer", [npy, npz, npz_compressed, hdf5, tif, tif_compressed, nrrd, nrrd_gzip, mha,
               mha_compressed, folder]
)  # fmt: skip
def test_damaged_files(writer, tmp_path):
    """Empty, cut anywhere, and with other bytes: a message, or unreadable planes."""
    options = writer(tmp_path, np.tile(GREY, (1, 8, 8)))
    path = tmp_path / options["file"].partition(":")[0]
    path = path if path.is_file() else path / "s5.png"
    whole = path.read_bytes()
    half = len(whole) // 2
    for damaged in (b"", b"PK\x03\x04", whole[:20], whole[:half], b"\n" * len(whole)):
        path.write_bytes(damaged)
        voxels._opened.cache_clear()
        with pytest.raises((ValueError, CaseError), match=r"' (is|has|cannot|ends)"):
            cells(shape(tmp_path, **options), (8 * NX, 8 * NY, NZ))


def test_a_stream_with_a_wrong_checksum_is_refused(tmp_path):
    options = nrrd_gzip(tmp_path, GREY)
    path = tmp_path / options["file"]
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(CaseError, match=r"cannot be decompressed \(CRC check failed"):
        cells(shape(tmp_path, **options), (NX, NY, NZ))


def test_truncated_streams_name_the_plane(tmp_path):
    header, data = nrrd_header(GREY, encoding="gzip")
    (tmp_path / "a.nrrd").write_bytes(header + gzip.compress(data[:3].tobytes()))
    with pytest.raises(CaseError, match=r"a.nrrd' is truncated: it ends in plane 3 of 7; write"):
        solid(tmp_path, "a.nrrd")


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("type", "block", "has the type 'block'; allowed: signed char"),
        ("encoding", "bzip2", "has the encoding 'bzip2'"),
        ("sizes", "a b", "has the sizes 'a b' in its header; allowed: integers"),
        ("sizes", "3 12 5 7", "has the size [3, 12, 5, 7]; allowed: two or three"),
        ("data file", "LIST", "has its data in several files"),
        ("data file", "b.raw", "is incomplete: there is no data file"),
        ("sizes", "1_2 5 7", "has the sizes '1_2 5 7' in its header; allowed: integers"),
        ("sizes", "-12 -5 7", "has the size [-12, -5, 7]; allowed: two or three numbers above 0"),
        ("dimension", "2", "has dimension 2 and the size [12, 5, 7] in its header; allowed: a num"),
        ("byte skip", "-5", "has byte skip -5 in its header; allowed: 0 or more, or -1 if the dat"),
        ("byteskip", "-2", "has byte skip -2 in its header; allowed: 0 or more, or -1 if the data"),
        ("byte skip", "", "has the byte skip '' in its header; allowed: integers"),
        ("byte skip", "3 4", "has the byte skip '3 4' in its header; allowed: one integer"),
        ("byte skip", "9" * 30, "in its header; allowed: integers"),
        ("byte skip", "9" * 18, "is truncated: 12 x 5 x 7 voxels of type uint8 are 420 bytes"),
        ("line skip", "-1", "has line skip -1 in its header; allowed: 0 or more"),
        ("line skip", "9" * 12, "has line skip 999999999999 in its header, but a.nrrd ends"),
    ],
)
def test_nrrd_headers_that_are_not_supported(field, value, text, tmp_path):
    header, data = nrrd_header(GREY, **{field: value})
    (tmp_path / "a.nrrd").write_bytes(header + data.tobytes())
    assert text in problem(tmp_path, "a.nrrd")


def test_nrrd_without_byte_order(tmp_path):
    header, data = nrrd_header(WIDE)
    (tmp_path / "a.nrrd").write_bytes(header.replace(b"endian: little\n", b"") + data.tobytes())
    assert "has no endian in its header; allowed: little, big" in problem(tmp_path, "a.nrrd")


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("ElementType", "MET_ARRAY", "has the ElementType 'MET_ARRAY'; allowed: MET_CHAR"),
        ("DimSize", "many", "has the DimSize 'many' in its header; allowed: integers"),
        ("DimSize", "12 -5 -7", "has the size [12, -5, -7]; allowed: two or three numbers above 0"),
        ("NDims", "2", "has NDims 2 and the size [12, 5, 7] in its header; allowed: a number for"),
        ("HeaderSize", "-7", "has HeaderSize -7 in its header; allowed: 0 or more, or -1 if the d"),
        ("HeaderSize", "7", "has HeaderSize 7, but its header has 158 bytes; allowed: 0, 158 or"),
        ("HeaderSize", "9" * 18, "is truncated: 12 x 5 x 7 voxels of type uint8 are 420 bytes"),
        ("ElementNumberOfChannels", "3", "has several channels"),
        ("BinaryData", "False", "has its data as text"),
        ("ElementDataFile", "LIST", "has its data in several files"),
        ("ElementDataFile", "b.raw", "is incomplete: there is no data file"),
    ],
)
def test_meta_headers_that_are_not_supported(field, value, text, tmp_path):
    (tmp_path / "a.mha").write_bytes(meta_header(GREY, **{field: value}) + GREY.tobytes())
    assert text in problem(tmp_path, "a.mha")


@pytest.mark.parametrize("skip", [-1, 3])
def test_compressed_meta_images_begin_behind_their_header(skip, tmp_path):
    header = meta_header(GREY, CompressedData="True", ElementDataFile="a.zraw", HeaderSize=skip)
    (tmp_path / "a.mhd").write_bytes(header)
    (tmp_path / "a.zraw").write_bytes(b"abc" + zlib.compress(GREY.tobytes()))
    if skip < 0:
        assert "allowed for compressed data: 0 or more" in problem(tmp_path, "a.mhd")
    else:
        found = solid(tmp_path, "a.mhd", solid=">= 128")
        assert np.array_equal(found, GREY >= 128)


def test_gzip_has_no_byte_skip_from_the_end(tmp_path):
    header, data = nrrd_header(GREY, encoding="gzip", **{"byte skip": -1})
    (tmp_path / "a.nrrd").write_bytes(header + gzip.compress(data.tobytes()))
    text = "has byte skip -1 in its header; allowed for the encoding 'gzip': 0 or more"
    assert text in problem(tmp_path, "a.nrrd")


def test_header_size_counts_from_the_beginning_of_the_file(tmp_path):
    """As in MetaIO, also if the data follow the header."""
    header = meta_header(GREY, HeaderSize=200)
    (tmp_path / "a.mha").write_bytes(header.ljust(200, b" ") + GREY.tobytes())
    assert np.array_equal(solid(tmp_path, "a.mha", solid=">= 128"), GREY >= 128)


@pytest.mark.parametrize("kind", ["nrrd", "mha"])
def test_data_at_the_end_do_not_overlap_the_header(kind, tmp_path):
    if kind == "nrrd":
        header, _ = nrrd_header(GREY, **{"byte skip": -1})
    else:
        header = meta_header(GREY, HeaderSize=-1)
    (tmp_path / f"a.{kind}").write_bytes(header + b"more" + GREY.tobytes())
    assert np.array_equal(solid(tmp_path, f"a.{kind}", solid=">= 128"), GREY >= 128)
    (tmp_path / f"a.{kind}").write_bytes(header + GREY.tobytes()[:-5])
    assert "are 420 bytes, found 415" in problem(tmp_path, f"a.{kind}")


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_an_array_ends_with_its_member_of_an_archive(write, tmp_path):
    """Beyond it there are other members and the list of the archive."""
    write(tmp_path / "a.npz", rock=GREY, other=WIDE)
    name, replaced = tmp_path / "a.npz", tmp_path / "b.npz"
    with (
        ZipFile(name) as archive,
        ZipFile(replaced, "w", archive.infolist()[0].compress_type) as to,
    ):
        for each in archive.namelist():
            to.writestr(each, archive.read(each).replace(b"(7, 5, 12)", b"(8, 5, 12)"))
    text = "is damaged: an array of shape (8, 5, 12) and type uint8 has 480 bytes, found 420"
    assert text in problem(tmp_path, "b.npz:rock")


def test_images_that_differ(tmp_path):
    folder(tmp_path, GREY)
    Image.fromarray(GREY[0, :3]).save(tmp_path / "slices" / "s7.png")
    with pytest.raises(CaseError, match=r"s5.png is 12 x 5 uint8, s7.png is 12 x 3 uint8; save"):
        solid(tmp_path, "slices")


def test_stacks_with_several_series(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(GREY[0])
        file.write(WIDE[0, :3])
    assert "has 2 series of pages; allowed: one" in problem(tmp_path, "a.tif")


@pytest.mark.parametrize(
    ("writer", "package"), [(tif, "tifffile"), (folder, "PIL"), (folder_tif, "tifffile")]
)
def test_missing_packages(writer, package, tmp_path, monkeypatch):
    options = writer(tmp_path, GREY)
    monkeypatch.setitem(sys.modules, package, None)
    assert "install it: pip install 'mpilbm[scans]'" in problem(tmp_path, **options)
