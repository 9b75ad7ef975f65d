"""Damaged volume files of each format end in solid cells or in one line (support/damaged_scans.py).

They are checked in a process of its own, whose memory is limited.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tifffile
from support import ROOT, TESTS
from support.damaged_scans import FORMATS
from support.voxel_files import GREY, nrrd_header, shape

from mpilbm.solids.shapes import voxels

FILES = 20_000 if os.environ.get("MPILBM_TEST_ALL") else 2000  # of all formats
KNOWN = "RLIMIT_DATA counts private mappings on Linux alone"


@pytest.fixture(autouse=True)
def _forget():
    voxels._opened.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason=KNOWN)
def test_damaged_files_end_in_one_line(tmp_path):
    count = -(-FILES // len(FORMATS))
    done = subprocess.run(
        [sys.executable, "-m", "support.damaged_scans", str(count), tmp_path],
        capture_output=True, text=True, cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{TESTS}:{ROOT}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == "", "a warning, such as of a file that is not closed"
    *broken, counts = map(json.loads, done.stdout.splitlines())
    for each in broken[:3]:
        print(f"{each['format']} {each['number']}: {each['what']}")
    assert counts == {"checked": count * len(FORMATS), "broken": 0}


def npy_bytes(shape_text, descr="'|u1'"):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape_text}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + GREY.tobytes()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (npy_bytes("(" + "-" * 9000 + "7, 5, 12)"), "cannot be read as .npy ("),
        (npy_bytes("(262144, 262144, 36)"), "is truncated: an array of shape (262144, 262144, 36)"),
        (npy_bytes("(7, -5, -12)"), "is damaged: its header has the shape (7, -5, -12)"),
        (npy_bytes("(7.0, 5, 12)"), "cannot be read as .npy (shape is not valid: (7.0, 5, 12))"),
        (npy_bytes("(7, 5, " + "9" * 4000 + ")"), "has the shape (7, 5, 2^62 or more)"),
        (npy_bytes("(2305843009213693951, 2, 2)"), "is damaged: its header has the shape (23058"),
        (npy_bytes("(0, 5, 12)"), "has no values: its shape is (0, 5, 12)"),
        (npy_bytes("(7, 5, 12)", "'|V0'"), "has no values: its shape is (7, 5, 12)"),
        (npy_bytes("(7, 5, 12)", "'|O'"), "contains Python objects; save it as bool or uint8"),
    ],
)
def test_headers_of_npy(content, text, tmp_path):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r".") as error:
        shape(tmp_path, "a.npy")
    assert text in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("sizes", ["12 5 999999999999", "9999999999 9999999999 7"])
def test_compressed_files_that_declare_more_than_they_contain(sizes, tmp_path):
    header, _ = nrrd_header(GREY, encoding="gzip", sizes=sizes)
    (tmp_path / "a.nrrd").write_bytes(header + b"x" * 100)
    with pytest.raises(ValueError, match=r"its header declares \d+ bytes, which 100 compressed by"):
        shape(tmp_path, "a.nrrd")


@pytest.mark.parametrize("bigtiff", [False, True])
def test_a_list_of_pages_that_is_circular(bigtiff, tmp_path):
    """Of 300 pages: tifffile looks for a circle at the 100th page only."""
    path = tmp_path / "a.tif"
    pages = np.zeros((300, 2, 3), np.uint8)
    tifffile.imwrite(path, pages, metadata=None, photometric="minisblack", bigtiff=bigtiff)
    with tifffile.TiffFile(path) as file:
        offsets = [page.offset for page in file.pages]
        last, tiff = file.pages[-1].offset, file.tiff
    content = bytearray(path.read_bytes())
    count = int.from_bytes(content[last : last + tiff.tagnosize], "little")
    end = last + tiff.tagnosize + count * tiff.tagsize
    content[end : end + tiff.offsetsize] = offsets[200].to_bytes(tiff.offsetsize, "little")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read as TIFF \(its list of pages is circular"):
        shape(tmp_path, "a.tif")
