"""Shape "voxels": every file format, the options, slabs, and messages for unusable files."""

import gzip
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import tifffile
from PIL import Image
from support.geometry_cases import make_case

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case
from mpilbm.errors import CaseError
from mpilbm.geometry.build import build
from mpilbm.geometry.shapes import voxels
from mpilbm.geometry.solids import padded_ids
from mpilbm.geometry.volumes import solid_planes, volume
from mpilbm.geometry.wall_motion import through
from mpilbm.parallel.slabs import split
from mpilbm.registry import make
from mpilbm.storage.directory import _refuse_inputs

SHAPE = NZ, NY, NX = 7, 5, 12
GREY = np.random.default_rng(1).integers(0, 256, SHAPE).astype(np.uint8)
WIDE = (GREY.astype(np.int16) - 100) * 7


@pytest.fixture(autouse=True)
def _forget():
    voxels._opened.cache_clear()


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


# --- formats: writers of an array; each returns the options of the shape


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


@pytest.mark.parametrize("writer", WRITERS, ids=lambda each: each.__name__)
def test_each_format_gives_the_cells_of_the_array(writer, tmp_path):
    options = writer(tmp_path, GREY) | {"solid": ">= 128"}
    np.testing.assert_array_equal(solid(tmp_path, **options), GREY >= 128)


@pytest.mark.parametrize("writer", SIGNED, ids=lambda each: each.__name__)
def test_each_format_reads_signed_numbers_of_two_bytes(writer, tmp_path):
    options = writer(tmp_path, WIDE) | {"solid": "-200 .. 300"}
    np.testing.assert_array_equal(solid(tmp_path, **options), (WIDE >= -200) & (WIDE <= 300))


@pytest.mark.parametrize("writer", WRITERS, ids=lambda each: each.__name__)
def test_planes_may_be_read_in_any_order(writer, tmp_path, monkeypatch):
    """With a cache of two planes, and one plane at a time."""
    monkeypatch.setattr(solid_planes, "CACHE", 2 * NY * NX // 8)
    monkeypatch.setattr(solid_planes, "BLOCK", 1)
    found = shape(tmp_path, **writer(tmp_path, GREY), solid=">= 128")
    x, y = np.arange(NX)[None, None] + 0.5, np.arange(NY)[None, :, None] + 0.5
    for k in (3, 6, 0, 2, 2, 5, 1):
        z = np.full((1, 1, 1), k + 0.5)
        np.testing.assert_array_equal(found.inside(x, y, z)[0], GREY[k] >= 128)
    np.testing.assert_array_equal(cells(found, (NX, NY, NZ)), GREY >= 128)


def test_images_and_arrays_in_two_dimensions(tmp_path):
    plane = GREY[0]
    Image.fromarray(plane).save(tmp_path / "a.png")
    Image.fromarray(plane).save(tmp_path / "a.bmp")
    Image.fromarray(plane > 127).save(tmp_path / "b.png")
    tifffile.imwrite(tmp_path / "a.tif", plane)
    tifffile.imwrite(tmp_path / "b.tif", plane, compression="zlib")
    np.save(tmp_path / "a.npy", plane)
    np.save(tmp_path / "b.npy", plane[None])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("one", data=plane[None], chunks=(1, 2, 3))
    header, data = nrrd_header(plane, encoding="gzip")
    (tmp_path / "a.nrrd").write_bytes(header + gzip.compress(data.tobytes()))
    plane.tofile(tmp_path / "a.raw")
    for name in ("a.png", "a.bmp", "a.tif", "b.tif", "a.npy", "b.npy", "a.h5", "a.nrrd"):
        found = solid(tmp_path, name, (NX, NY), solid="> 127")
        np.testing.assert_array_equal(found, plane > 127, name)
    np.testing.assert_array_equal(solid(tmp_path, "b.png", (NX, NY)), plane > 127)
    found = solid(tmp_path, "a.raw", (NX, NY), solid="> 127", size=(NX, NY), type="uint8")
    np.testing.assert_array_equal(found, plane > 127)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (None, lambda v: v != 0),
        ("<7", lambda v: v < 7),
        (" <= 7 ", lambda v: v <= 7),
        (">7.5", lambda v: v > 7.5),
        (">= 7", lambda v: v >= 7),
        ("== 7", lambda v: v == 7),
        ("!=7", lambda v: v != 7),
        ("5..7", lambda v: (v >= 5) & (v <= 7)),
        ("5.5 .. 70", lambda v: (v >= 5.5) & (v <= 70)),
        ([1, 5], lambda v: (v == 1) | (v == 5)),
        ([3], lambda v: v == 3),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, ">i4", np.float32])
def test_conditions(condition, holds, dtype, tmp_path):
    values = (GREY % 11).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    np.testing.assert_array_equal(solid(tmp_path, "a.npy", solid=condition), holds(values))


def test_booleans_are_compared_as_zero_and_one(tmp_path):
    np.save(tmp_path / "a.npy", GREY > 127)
    np.testing.assert_array_equal(solid(tmp_path, "a.npy", solid="== 0"), GREY <= 127)
    np.testing.assert_array_equal(solid(tmp_path, "a.npy", solid=[0]), GREY <= 127)
    np.testing.assert_array_equal(solid(tmp_path, "a.npy"), GREY > 127)


# --- options

CROP = [[2, 10], [1, 5], [0, 6]]
CROPPED = (GREY >= 128)[0:6, 1:5, 2:10]


@pytest.mark.parametrize("writer", [npy, nrrd_gzip, hdf5_chunks, tif_compressed])
def test_cropped_coarsened_mirrored_padded_and_placed(writer, tmp_path):
    """In this order, against NumPy."""
    options = writer(tmp_path, GREY) | {
        "solid": ">= 128", "crop": CROP, "coarsen": 2, "mirror": [True, False, True],
        "pad": [3, 0, 1], "at": [1, 2, -1],
    }  # fmt: skip
    wanted = CROPPED.reshape(3, 2, 2, 2, 4, 2).sum(axis=(1, 3, 5)) >= 4
    wanted = np.concatenate([wanted, wanted[:, :, ::-1]], axis=2)
    wanted = np.concatenate([wanted, wanted[::-1]], axis=0)
    wanted = np.pad(wanted, [(1, 1), (0, 0), (3, 3)])
    box = np.zeros((8, 6, 20), bool)
    box[0:7, 2:4, 1:15] = wanted[1:8]
    found = shape(tmp_path, **options)
    assert found.bounds() == ((1, 2, -1), (15, 4, 7))
    np.testing.assert_array_equal(cells(found, (20, 6, 8)), box)


def test_refined_and_mirrored(tmp_path):
    np.save(tmp_path / "a.npy", GREY)
    wanted = (GREY > 127).repeat(3, 0).repeat(3, 1).repeat(3, 2)
    wanted = np.concatenate([wanted, wanted[:, ::-1]], axis=1)
    options = {"solid": "> 127", "refine": 3, "mirror": [False, True, False]}
    found = solid(tmp_path, "a.npy", (3 * NX, 6 * NY, 3 * NZ), **options)
    np.testing.assert_array_equal(found, wanted)


def test_half_of_the_voxels_make_a_coarse_cell_solid(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]))
    found = solid(tmp_path, "a.npy", (2, 2), coarsen=2)
    assert found.tolist() == [[True, False], [False, True]]


def test_options_in_two_dimensions(tmp_path):
    np.save(tmp_path / "a.npy", GREY[0] > 127)
    options = {"crop": [[0, 4], [1, 3]], "mirror": [True, False], "pad": 1, "at": [0, 1]}
    cut = (GREY[0] > 127)[1:3, 0:4]
    wanted = np.zeros((6, 10), bool)
    wanted[2:4, 1:9] = np.concatenate([cut, cut[:, ::-1]], axis=1)
    np.testing.assert_array_equal(solid(tmp_path, "a.npy", (10, 6), **options), wanted)


def test_a_cell_takes_the_voxel_at_its_centre(tmp_path):
    """At a position between cells, such as one converted from millimetres."""
    np.save(tmp_path / "a.npy", np.array([[0, 1, 1, 0]]))
    for x, wanted in ((0.4, "0110"), (0.6, "0011"), (-0.6, "1100"), (1 - 1e-9, "0011")):
        found = solid(tmp_path, "a.npy", (4, 1), at=[x, 0])
        assert "".join(map(str, found[0].astype(int))) == wanted


def test_points_anywhere(tmp_path):
    """A voxel holds the points from its lower corner up to, but not at, its upper one."""
    np.save(tmp_path / "a.npy", GREY > 127)
    found = shape(tmp_path, "a.npy", at=[2, 0, 0])
    points = np.random.default_rng(2).uniform(-3, 15, (3, 2000))
    k = np.floor(points).astype(int) - np.array([[2], [0], [0]])
    within = ((k >= 0) & (k < np.array([[NX], [NY], [NZ]]))).all(axis=0)
    wanted = within.copy()
    wanted[within] = (GREY > 127)[tuple(k[::-1, within])]
    np.testing.assert_array_equal(found.inside(*points), wanted)
    assert found.inside(-1.0, 0.5, 0.5) == np.False_


# --- slabs


def case_of(folder, options, lattice="D3Q19", size=(NX, NY, NZ), periodic="xyz"):
    case = make_case(make("lattices", lattice), size, periodic, directory=folder)
    body = SimpleNamespace(label="rock", shape=shape(folder, **options), mask=None, boundary=None)
    case.bodies = (body,)
    return case


@pytest.mark.parametrize("writer", [npy, nrrd_gzip, tif_compressed, hdf5_chunks])
@pytest.mark.parametrize("lattice", ["D3Q19", "D3Q13"])
def test_slabs_have_the_cells_of_the_box(writer, lattice, tmp_path):
    values = np.random.default_rng(3).integers(0, 256, (8, 6, 12)).astype(np.uint8)
    case = case_of(tmp_path, writer(tmp_path, values) | {"solid": "> 99"}, lattice, (12, 6, 8))
    (whole,) = split(case.shape, 1, True)
    ids = padded_ids(case, whole)[1:-1]
    for plane, row, k in np.ndindex(ids.shape):
        x = case.lattice.x(plane, row, k)
        assert ids[plane, row, k] == (values[plane, row, x] > 99)
    for ranks in (2, 3):
        parts = [padded_ids(case, slab) for slab in split(case.shape, ranks, True)]
        np.testing.assert_array_equal(np.concatenate([part[1:-1] for part in parts]), ids)


class Counting:
    """An array that counts how often each plane is read."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.counts = np.zeros(len(array), int)

    def __getitem__(self, index):
        self.counts[index[0]] += 1
        return self.array[index]


@pytest.mark.parametrize("rank", [0, 1])
def test_each_rank_reads_its_planes_once(rank, tmp_path):
    values = np.random.default_rng(3).integers(0, 2, (40, 5, 12)).astype(np.uint8)
    case = case_of(tmp_path, npy(tmp_path, values), size=(12, 5, 40), periodic="xy")
    planes = case.bodies[0].shape._planes()
    planes.volume = volume.Volume(Counting(values))
    slab = split(case.shape, 2, False)[rank]
    for _ in range(3):
        padded_ids(case, slab)
    wanted = np.zeros(40, int)
    wanted[max(0, slab.begin - 1) : slab.end + 1] = 1
    assert planes.volume.array.counts.tolist() == wanted.tolist()


def test_a_compressed_file_is_decompressed_once(tmp_path, monkeypatch):
    values = np.random.default_rng(3).integers(0, 2, (40, 5, 12)).astype(np.uint8)
    case = case_of(tmp_path, nrrd_gzip(tmp_path, values), size=(12, 5, 40))
    stream = case.bodies[0].shape._planes().volume.array
    opener, opens = stream.opener, []
    stream.opener = lambda: opens.append(1) or opener()
    for rank in (1, 0, 1):
        padded_ids(case, split(case.shape, 2, True)[rank])
    assert len(opens) == 1


def test_the_optional_packages_are_imported_when_needed():
    text = "import sys, mpilbm.geometry.shapes.voxels; print(*{'tifffile', 'PIL'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "")


# --- in a case


def rock_case(folder, boundary="bounce_back", velocity=None, size=(12, 5, 7), **body):
    wall = {"name": boundary} | ({"velocity": velocity} if velocity else {})
    tables = {
        "lattice": {"name": "D3Q19"}, "fluid": {"viscosity": 0.1}, "run": {"steps": 1},
        "domain": {"size": list(size), "periodic": [True] * 3},
        "body": [{"label": "rock", "boundary": wall} | body],
    }  # fmt: skip
    return parse_case(tables, folder / "box.toml")


def rock_lists(case):
    return build(case, *split(case.shape, 1, True)).lists


VOXELS = {"name": "voxels", "file": "a.npy", "solid": ">= 128"}
BALL = {"name": "sphere", "centre": [1, 1, 1], "radius": 0.1}  # between the centres of cells


@pytest.mark.parametrize("boundary", ["bounce_back", "interpolated"])
def test_voxels_are_the_cells_and_links_of_a_mask(boundary, tmp_path):
    """With a wall half-way along each link; the same for a shape made of voxels."""
    np.save(tmp_path / "a.npy", GREY)
    np.save(tmp_path / "mask.npy", GREY >= 128)
    of_mask = rock_lists(rock_case(tmp_path, boundary, mask="mask.npy"))
    for each in (VOXELS, {"name": "union", "of": [VOXELS, BALL]}):
        lists = rock_lists(rock_case(tmp_path, boundary, shape=each))
        assert len(lists) == len(of_mask) == 1
        for found, wanted in zip(lists, of_mask, strict=True):
            np.testing.assert_array_equal(found.cells, wanted.cells)
            np.testing.assert_array_equal(found.links.bits, wanted.links.bits)
            assert boundary == "bounce_back" or (found.per_link.distance == 0.5).all()


def test_a_wall_on_voxels_may_move_in_any_direction(tmp_path):
    """There is no normal with which a velocity could be compared."""
    np.save(tmp_path / "a.npy", GREY)
    case = rock_case(tmp_path, velocity=[0.01, 0.02, 0.03], shape=VOXELS)
    assert rock_lists(case)
    assert through(case, *split(case.shape, 1, True), rock_lists(case)) == {}


def test_findings(tmp_path):
    np.save(tmp_path / "a.npy", GREY)
    assert [each.line for each in of_case(rock_case(tmp_path, shape=VOXELS))] == []
    (found,) = of_case(rock_case(tmp_path, "interpolated", shape=VOXELS))
    assert found.line.startswith(
        "warning: body.rock.boundary: 'interpolated' uses the distance of the wall along each "
        "link, but voxels have no distances: the wall is half-way along each link"
    )
    union = {"name": "union", "of": [BALL, VOXELS]}
    (found,) = of_case(rock_case(tmp_path, "interpolated", shape=union))
    assert "voxels have no distances" in found.line
    (found,) = of_case(rock_case(tmp_path, shape=VOXELS | {"pad": [2, 0, 0], "at": [-1, 0, 0]}))
    assert found.line == (
        "note: body.rock.shape.file: the volume has 16 x 5 x 7 cells from (-1, 0, 0), after crop, "
        "coarsen, refine, mirror and pad; the box has 12 x 5 x 7: cells outside the volume are "
        "fluid, and cells of the volume outside the box are not used"
    )


def test_messages_name_the_body(tmp_path):
    with pytest.raises(CaseError, match=r"box.toml: body.rock.shape: 'a.npy' is missing: there"):
        rock_case(tmp_path, shape=VOXELS)


def test_overwrite_keeps_the_file_of_a_shape(tmp_path):
    path = tmp_path / "snapshot_000000001.vtkhdf"
    with h5py.File(path, "w") as file:
        file["solid"] = GREY
    case = rock_case(tmp_path, shape={"name": "voxels", "file": f"{path.name}:solid"})
    assert case.bodies[0].shape.files() == [path]
    with pytest.raises(CaseError, match=r"body.rock.shape: '.*vtkhdf' is one of the files that"):
        _refuse_inputs(case, [path])
    union = {"name": "union", "of": [VOXELS | {"file": path.name}, VOXELS | {"file": path.name}]}
    assert make("shapes", union).files() == [Path(path.name)] * 2


# --- messages


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
        ("DimSize", "many", "has a DimSize or HeaderSize that is not an integer"),
        ("ElementNumberOfChannels", "3", "has several channels"),
        ("BinaryData", "False", "has its data as text"),
        ("ElementDataFile", "LIST", "has its data in several files"),
        ("ElementDataFile", "b.raw", "is incomplete: there is no data file"),
    ],
)
def test_meta_headers_that_are_not_supported(field, value, text, tmp_path):
    (tmp_path / "a.mha").write_bytes(meta_header(GREY, **{field: value}) + GREY.tobytes())
    assert text in problem(tmp_path, "a.mha")


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
