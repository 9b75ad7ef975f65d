"""Shape "voxels": every file format, the options, slabs, and the findings of a case."""

import gzip
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import tifffile
from PIL import Image
from support.geometry_cases import make_case
from support.voxel_files import (
    GREY,
    NX,
    NY,
    NZ,
    SIGNED,
    WIDE,
    WRITERS,
    cells,
    hdf5_chunks,
    npy,
    nrrd_gzip,
    nrrd_header,
    shape,
    solid,
    tif_compressed,
)

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.parallel.slabs import split
from mpilbm.solids.build import build
from mpilbm.solids.shapes import Flow, voxels
from mpilbm.solids.solid_cells import padded_ids
from mpilbm.solids.volumes import Volume, solid_planes
from mpilbm.solids.wall_motion import through
from mpilbm.storage.directory import _refuse_inputs


@pytest.fixture(autouse=True)
def _forget():
    voxels._opened.cache_clear()


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
    body = SimpleNamespace(
        label="rock", shape=shape(folder, **options), mask=None, boundary=None, motion=None
    )
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
    planes.volume = Volume(Counting(values))
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
    text = "import sys, mpilbm.solids.shapes.voxels; print(*{'tifffile', 'PIL'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=200)
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


@pytest.mark.parametrize("part", ["", ".of.1"])
def test_a_volume_of_another_size_than_the_box_is_reported(part, tmp_path):
    """Also one of the parts of a shape."""
    np.save(tmp_path / "a.npy", GREY)
    moved: dict = VOXELS | {"pad": [2, 0, 0], "at": [-1, 0, 0]}
    case = rock_case(tmp_path, shape={"name": "union", "of": [BALL, moved]} if part else moved)
    (found,) = case.bodies[0].shape.findings(case, "body.rock.shape", Flow(0, None))
    assert found.line == (
        f"note: body.rock.shape{part}.file: the volume has 16 x 5 x 7 cells from (-1, 0, 0), "
        "after crop, coarsen, refine, mirror and pad; the box has 12 x 5 x 7: cells outside the "
        "volume are fluid, and cells of the volume outside the box are not used"
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
