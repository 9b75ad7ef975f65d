"""Shape "voxels": spacing of voxels, axes of the scanner, grey values of images."""

import gzip
import struct
import zlib
from functools import partial
from uuid import uuid4

import h5py
import numpy as np
import pytest
import tifffile
from PIL import Image
from support.geometry_cases import make_case
from support.voxel_files import GREY, NX, NY, NZ, check, meta_header, nrrd_header, shape, solid

from mpilbm.core.registry import make
from mpilbm.solids.shapes import Flow, voxels
from mpilbm.solids.volumes.spacing import Resampled


@pytest.fixture(autouse=True)
def _forget():
    voxels._opened.cache_clear()


def notes(folder, file, **options):
    found = shape(folder, file, **options)
    case = make_case(make("lattices", "D3Q19"), (NX, NY, NZ), "xyz")
    found = found.findings(case, "body.rock.shape", Flow(0, None))
    return [each.line for each in found if each.where != "body.rock.shape.solid"]


def nrrd(path, **fields):
    header, data = nrrd_header(GREY, **fields)
    (path / "a.nrrd").write_bytes(header + data.tobytes())
    return "a.nrrd"


def mha(path, **fields):
    (path / "a.mha").write_bytes(meta_header(GREY, **fields) + GREY.tobytes())
    return "a.mha"


def tif(path, array=GREY, **options):
    tifffile.imwrite(path / "a.tif", array, **{"photometric": "minisblack"} | options)
    return "a.tif"


def imagej_in_nm(path, side):
    """Cubes as ImageJ writes them: whole pixels for 1000000 nm."""
    pixels = (1_000_000 // side, 1_000_000)
    metadata = {"spacing": float(side), "unit": "nm"}
    return tif(path, imagej=True, resolution=(pixels, pixels), metadata=metadata)


def ome(path):
    metadata = {"axes": "ZYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 500, "PhysicalSizeZ": 2e-3,
                "PhysicalSizeYUnit": "nm", "PhysicalSizeZUnit": "mm"}  # fmt: skip
    tifffile.imwrite(path / "a.ome.tif", GREY, metadata=metadata)
    return "a.ome.tif"


def ome_text(path, unit, quote='"'):
    """As other programs write it, with an annotation that is no size of the image."""
    sizes = "".join(f" PhysicalSize{axis}={quote}{size}{quote} PhysicalSize{axis}Unit={quote}{unit}"
                    f"{quote}" for axis, size in zip("XYZ", (3, 3, 12), strict=True))  # fmt: skip
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">'
        '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="12" SizeY="5" SizeZ="7" '
        f'SizeC="1" SizeT="1"{sizes}><Channel ID="Channel:0:0" SamplesPerPixel="1"/>'
        f'<TiffData IFD="0" PlaneCount="7"/></Pixels></Image>'
        '<StructuredAnnotations PhysicalSizeZ="3"/></OME>'
    )
    tifffile.imwrite(path / "a.ome.tif", GREY, description=text.encode(), metadata=None,
                     photometric="minisblack")  # fmt: skip
    return "a.ome.tif"


def vtkhdf(path):
    with h5py.File(path / "a.vtkhdf", "w") as file:
        file["VTKHDF/CellData/rock"] = GREY
        file["VTKHDF"].attrs["Spacing"] = np.array([1.0, 1.0, 4.0])
    return "a.vtkhdf"


def element_size(path):
    with h5py.File(path / "a.h5", "w") as file:
        file["rock"] = GREY
        file["rock"].attrs["element_size_um"] = np.array([4.0, 1.0, 1.0])
    return "a.h5"


FOUR = [
    partial(nrrd, spacings="1 1 4"),
    partial(nrrd, spacings="0.25 nan 1"),
    partial(nrrd, **{"space directions": "(0.5,0,0) (0,0.5,0) (0,0,2)"}),
    partial(mha, ElementSpacing="1 1 4"),
    partial(mha, ElementSize="1 1 -4"),
    partial(tif, imagej=True, metadata={"spacing": 4.0, "unit": "um"}),
    partial(tif, imagej=True, resolution=(5, 5), metadata={"spacing": 0.8}),
    ome,
    partial(ome_text, unit="\u03bcm"),  # the Greek letter
    partial(ome_text, unit="&#181;m", quote="'"),
    partial(ome_text, unit="pixel"),  # of unknown length
    vtkhdf,
    element_size,
]


@pytest.mark.parametrize("write", FOUR)
def test_voxels_that_are_no_cubes_are_refused_or_resampled(write, tmp_path):
    file = write(tmp_path)
    done = check(tmp_path, file)
    assert done.exit_code != 0
    assert "x 4 along x, y, z (the shortest is 1), and a cell is a cube; set " in done.output
    assert "resample = true to resample it to 12 x 5 x 28 cubes by the nearest" in done.output
    wanted = np.repeat(GREY, 4, axis=0) >= 128
    found = solid(tmp_path, file, (NX, NY, 4 * NZ), solid=">= 128", resample=True)
    np.testing.assert_array_equal(found, wanted)
    (note,) = notes(tmp_path, file, resample=False, solid=">= 128")
    assert note.startswith("note: body.rock.shape.file: the voxels have the sides ")
    assert np.array_equal(solid(tmp_path, file, solid=">= 128", resample=False), GREY >= 128)
    done = check(tmp_path, file, 4 * NZ, ', resample = true, solid = ">= 128"')
    assert done.exit_code == 0
    assert "shape.file: resampled from 12 x 5 x 7 voxels with the sides 1 x " in done.output


@pytest.mark.parametrize(
    "write",
    [
        partial(nrrd, spacings="2 2 2.0001"),
        partial(nrrd, spacings="nan nan 0"),
        partial(nrrd, **{"space directions": "(2,0,0) none (0,0,2)"}),
        partial(mha, ElementSpacing="0.1 0.1 0.1"),
        partial(tif, imagej=True, resolution=(5, 5)),  # the spacing along z is unknown
        partial(tif, resolution=(72, 72)),
        partial(imagej_in_nm, side=3000),
        partial(imagej_in_nm, side=7000),
        partial(mha, Orientation="RAI"),
    ],
)
def test_cubes_and_unknown_sides_are_used(write, tmp_path):
    file = write(tmp_path)
    assert notes(tmp_path, file) == []
    assert np.array_equal(solid(tmp_path, file, solid=">= 128"), GREY >= 128)


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (partial(nrrd, spacings="1 1"), "has the spacings '1 1' in its header; allowed: 3 numbers"),
        (partial(nrrd, **{"space directions": "(1,0,0) (0,1"}), "allowed: 3 vectors, or none"),
        (partial(mha, ElementSpacing="1 1 x"), "has the ElementSpacing '1 1 x' in its header"),
        (partial(mha, ElementSpacing="1 1 1e-9"), "allowed: a ratio of 100 at most; correct the"),
    ],
)
def test_sides_that_are_refused(write, text, tmp_path):
    file = write(tmp_path)
    with pytest.raises(ValueError, match=r".") as error:
        shape(tmp_path, file, resample=True)
    assert text in str(error.value)


@pytest.mark.parametrize(("array", "dimensions"), [(GREY[0], 3), (GREY[None], 3), (GREY, 2)])
def test_another_number_of_dimensions_is_refused_before_the_sides(array, dimensions, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["rock"] = array
        file["rock"].attrs["element_size_um"] = np.array([4.0, 2.0, 1.0])
    with pytest.raises(ValueError, match=rf"has {array.ndim} dimensions, .* in {dimensions}D"):
        shape(tmp_path, "a.h5", dimensions)


def test_two_sides_of_a_volume_are_those_of_x_and_y(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["rock"] = GREY
        file["rock"].attrs["element_size_um"] = np.array([2.0, 1.0])
    found = solid(tmp_path, "a.h5", (NX, 2 * NY, NZ), solid=">= 128", resample=True)
    np.testing.assert_array_equal(found, np.repeat(GREY, 2, axis=1) >= 128)


@pytest.mark.parametrize(
    ("write", "along"),
    [
        (partial(nrrd, **{"space directions": "(0,0,1) (0,1,0) (1,0,0)"}), "z, y, x"),
        (partial(nrrd, **{"space directions": "(-1,0,0) (0,-1,0) (0,0,1)"}), "-x, -y, z"),
        (partial(nrrd, **{"space directions": "(0.8,0.6,0) (-0.6,0.8,0) none"}),
         "about x, about y, ?"),
        (partial(mha, TransformMatrix="0 1 0 1 0 0 0 0 1"), "y, x, z"),
    ],
)  # fmt: skip
def test_axes_of_the_scanner_are_noted(write, along, tmp_path):
    file = write(tmp_path)
    (note,) = notes(tmp_path, file)
    assert f"places the stored axes x, y, z along {along} of the scanner; the stored axes" in note
    assert np.array_equal(solid(tmp_path, file, solid=">= 128"), GREY >= 128)


@pytest.mark.parametrize("encoding", ["raw", "gzip"])
def test_resampled_before_the_other_options(encoding, tmp_path):
    """Planes may be read in any order, and a compressed file is read once if they are in order."""
    header, data = nrrd_header(GREY, encoding=encoding, spacings="1 2 2.5")
    data = data.tobytes()
    (tmp_path / "a.nrrd").write_bytes(header + (gzip.compress(data) if "g" in encoding else data))
    at = [np.minimum(((np.arange(n) + 0.5) / s).astype(int), m - 1)
          for n, s, m in ((round(2.5 * NZ), 2.5, NZ), (2 * NY, 2, NY))]  # fmt: skip
    wanted = (GREY[at[0]][:, at[1]] >= 128)[2:16, 1:9, 3:]
    options = {"solid": ">= 128", "resample": True, "crop": [[3, NX], [1, 9], [2, 16]]}
    found = solid(tmp_path, "a.nrrd", (NX - 3, 8, 14), **options)
    np.testing.assert_array_equal(found, wanted)
    planes = shape(tmp_path, "a.nrrd", **options)._planes()
    for k in (13, 0, 5, 5, 4, 12):
        np.testing.assert_array_equal(planes.plane(k), wanted[k])


def test_a_plane_is_read_once_for_all_of_its_cubes():
    class Ordered:
        shape, dtype, following = GREY.shape, GREY.dtype, 0

        def __getitem__(self, index):
            first = index if isinstance(index, slice) else index[0]
            assert first.start == self.following
            self.following = first.stop
            return GREY[index]

    array = Resampled(Ordered(), (1, 1, 4))
    wanted = np.repeat(GREY, 4, axis=0)
    for k in range(0, 4 * NZ, 3):
        assert array.following >= k
        np.testing.assert_array_equal(array[k : k + 3, :2, 1:], wanted[k : k + 3, :2, 1:])


# --- grey values


def test_grey_values_of_tiff(tmp_path):
    """WhiteIsZero is inverted, and a grey palette applied; the indices of colours are kept."""
    reverse = np.repeat(np.arange(256, dtype=np.uint16)[None, ::-1] * 257, 3, axis=0)
    colours = np.random.default_rng(1).integers(0, 2**16, (3, 256)).astype(np.uint16)
    white = tmp_path / "white.tif"
    tifffile.imwrite(white, GREY, photometric="miniswhite")
    tifffile.imwrite(tmp_path / "zip.tif", GREY, photometric="miniswhite", compression="zlib")
    wide = GREY.astype(np.uint16) * 256
    tifffile.imwrite(tmp_path / "wide.tif", wide, photometric="miniswhite")
    tifffile.imwrite(tmp_path / "grey.tif", GREY, photometric="palette", colormap=reverse)
    tifffile.imwrite(tmp_path / "colour.tif", GREY, photometric="palette", colormap=colours)
    tifffile.imwrite(tmp_path / "bits.tif", GREY > 99, photometric="miniswhite")
    for name, condition, wanted in (
        ("white", "> 200", GREY < 55), ("zip", "> 200", GREY < 55), ("grey", "> 200", GREY < 55),
        ("wide", "> 65000", 65535 - wide.astype(int) > 65000), ("colour", "> 200", GREY > 200),
        ("bits", None, GREY <= 99),
    ):  # fmt: skip
        found = solid(tmp_path, f"{name}.tif", solid=condition)
        np.testing.assert_array_equal(found, wanted, name)
    assert notes(tmp_path, "white.tif") == [
        "note: body.rock.shape.file: 0 is white in this file (WhiteIsZero): a stored v is read as "
        "255 - v"
    ]
    assert "indices of a palette with colours" in notes(tmp_path, "colour.tif")[0]


def test_palettes_and_resolutions_of_images(tmp_path):
    image = Image.fromarray(GREY[0]).convert("P")
    image.putpalette(np.repeat(np.arange(256)[::-1], 3).astype(np.uint8).tobytes())
    image.save(tmp_path / "grey.png")
    image.putpalette(np.random.default_rng(1).integers(0, 256, 768).astype(np.uint8).tobytes())
    image.save(tmp_path / "colour.png", dpi=(100, 100))
    image.save(tmp_path / "long.png", dpi=(100, 200))
    box = (NX, NY)
    assert np.array_equal(solid(tmp_path, "grey.png", box, solid="> 200"), GREY[0] < 55)
    assert np.array_equal(solid(tmp_path, "colour.png", box, solid="> 200"), GREY[0] > 200)
    with pytest.raises(ValueError, match=r"long.png' has voxels with the sides 2 x 1 along x, y"):
        shape(tmp_path, "long.png", 2)


def test_a_resolution_without_a_unit(tmp_path):
    """PNG: 1 pixel along x is as long as 4 along y."""
    Image.fromarray(GREY[0]).save(tmp_path / "a.png")
    chunk = b"pHYs" + struct.pack(">IIB", 1, 4, 0)
    stored = (tmp_path / "a.png").read_bytes()
    parts = stored[:33], struct.pack(">I", 9), chunk, struct.pack(">I", zlib.crc32(chunk))
    (tmp_path / "a.png").write_bytes(b"".join(parts) + stored[33:])
    with pytest.raises(ValueError, match=r"has voxels with the sides 4 x 1 along x, y"):
        shape(tmp_path, "a.png", 2)


def test_a_palette_with_8_bits(tmp_path):
    """TIFF requires 16 bits; some programs write values up to 255."""
    reverse = np.repeat(np.arange(256, dtype=np.uint16)[None, ::-1], 3, axis=0)
    file = tif(tmp_path, photometric="palette", colormap=reverse)
    assert np.array_equal(solid(tmp_path, file, solid="> 200"), GREY < 55)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_white_is_zero_of_values_without_a_largest_one(dtype, tmp_path):
    file = tif(tmp_path, array=GREY.astype(dtype), photometric="miniswhite")
    assert notes(tmp_path, file) == [
        "note: body.rock.shape.file: 0 is white in this file (WhiteIsZero), but values of type "
        f"{dtype} have no largest one: they are not inverted"
    ]
    assert np.array_equal(solid(tmp_path, file, solid="> 200"), GREY > 200)


def test_an_ome_set_of_files(tmp_path):
    numbers = [uuid4().urn for _ in range(2)]
    pages = "".join(
        f'<TiffData IFD="0" FirstZ="{k}" PlaneCount="1"><UUID FileName="{k}.ome.tif">{number}'
        "</UUID></TiffData>" for k, number in enumerate(numbers)
    )  # fmt: skip
    for k, number in enumerate(numbers):
        text = (
            '<?xml version="1.0" encoding="UTF-8"?><OME UUID="' + number + '" xmlns='
            '"http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels '
            'ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="12" SizeY="5" SizeZ="2" '
            f'SizeC="1" SizeT="1"><Channel ID="Channel:0:0" SamplesPerPixel="1"/>{pages}'
            "</Pixels></Image></OME>"
        )
        tifffile.imwrite(tmp_path / f"{k}.ome.tif", GREY[k], description=text.encode(),
                         metadata=None, photometric="minisblack")  # fmt: skip
    found = solid(tmp_path, "0.ome.tif", (NX, NY, 2), solid=">= 128")
    assert np.array_equal(found, GREY[:2] >= 128)
    for lost, kept in ("10", "01"):
        (tmp_path / f"{lost}.ome.tif").rename(tmp_path / "away")
        voxels._opened.cache_clear()
        with pytest.raises(ValueError, match=r"is incomplete: 1 of its 2 pages are in other files"):
            shape(tmp_path, f"{kept}.ome.tif")
        (tmp_path / "away").rename(tmp_path / f"{lost}.ome.tif")


def test_pages_that_were_appended_are_a_stack(tmp_path):
    for plane in GREY:
        tifffile.imwrite(tmp_path / "a.tif", plane, append=True, photometric="minisblack")
    tifffile.imwrite(tmp_path / "b.tif", GREY[:3], photometric="miniswhite")
    for plane in GREY[3:]:
        tifffile.imwrite(tmp_path / "b.tif", plane, append=True, photometric="miniswhite")
    assert np.array_equal(solid(tmp_path, "a.tif", solid=">= 128"), GREY >= 128)
    assert np.array_equal(solid(tmp_path, "b.tif", solid=">= 128"), GREY < 128)
