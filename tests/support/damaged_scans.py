"""Damaged volume files: `python -m support.damaged_scans COUNT FOLDER`, COUNT of each format.

Requirements: `resolved` and all planes of the shape "voxels" end in solid cells or in a ValueError
with one line, within SECONDS, and the process uses at most GIGABYTES of memory. Prints a JSON line
for each violation, and one with the numbers of files.

To look at one file: a violation has its format and number, of which `damaged` returns the files.
"""

import json
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import tifffile
from PIL import Image

from mpilbm.core.errors import CaseError
from mpilbm.parallel.slabs import split  # noqa: F401  imported before the memory is limited
from mpilbm.solids.shapes import Flow, voxels
from support import voxel_files
from support.voxel_files import GREY, NX, NY, NZ, shape

SECONDS, GIGABYTES = 5.0, 1.0
SIZE = (NX, NY, NZ)
EXTREME = [
    b"0", b"-1", b"1", b"65536", b"4294967295", b"999999999999", b"9" * 18, b"9" * 400, b"1e300",
    b"nan", b"0.5", b"", b"-" * 9000, b"(" * 900, b"None", b"True", b"1, -1", b"none", b"'", b"%d",
    b"LIST", b"/dev/zero", b"\0", b"2.5e12", b"262144, 262144, 36",
]  # fmt: skip


class TooSlow(BaseException):
    """Not derived from Exception, so that no handler of the program catches it."""


def raise_too_slow(*_):
    raise TooSlow


def png(path, array):
    Image.fromarray(array[0]).save(path / "a.png")
    return {"file": "a.png"}


def png_palette(path, array):
    image = Image.fromarray(array[0]).convert("P")
    image.save(path / "b.png", dpi=(300, 300))
    return {"file": "b.png"}


def tif_palette(path, array):
    colours = np.repeat(np.arange(256, dtype=np.uint16)[None, ::-1] * 256, 3, axis=0)
    tifffile.imwrite(path / "a.tif", array, photometric="palette", colormap=colours)
    return {"file": "a.tif"}


def tif_appended(path, array):
    for plane in array:
        tifffile.imwrite(path / "b.tif", plane, append=True, photometric="miniswhite")
    return {"file": "b.tif"}


def tif_ome(path, array):
    metadata = {"axes": "ZYX", "PhysicalSizeX": 1, "PhysicalSizeY": 1, "PhysicalSizeZ": 1}
    tifffile.imwrite(path / "a.ome.tif", array, ome=True, metadata=metadata)
    return {"file": "a.ome.tif"}


def nrrd_vectors(path, array):
    header, data = voxel_files.nrrd_header(
        array, **{"space dimension": 3, "space directions": "(1,0,0) (0,1,0) (0,0,1)"}
    )
    (path / "a.nrrd").write_bytes(header + data.tobytes())
    return {"file": "a.nrrd"}


def nrrd_skips(path, array):
    header, data = voxel_files.nrrd_header(array, **{"line skip": 0, "byte skip": 0})
    (path / "a.nrrd").write_bytes(header + data.tobytes())
    return {"file": "a.nrrd"}


def mha_spacing(path, array):
    header = voxel_files.meta_header(
        array, ElementSpacing="1 1 1", TransformMatrix="1 0 0 0 1 0 0 0 1", HeaderSize="0"
    )
    (path / "a.mha").write_bytes(header + array.tobytes())
    return {"file": "a.mha"}


FORMATS = {
    "tiff": [voxel_files.tif, voxel_files.tif_big_endian, voxel_files.tif_compressed,
             voxel_files.tif_imagej, tif_palette, tif_appended, tif_ome],
    "nrrd": [voxel_files.nrrd, voxel_files.nrrd_gzip, voxel_files.nrrd_detached,
             voxel_files.nrrd_detached_gzip, nrrd_vectors, nrrd_skips],
    "metaimage": [voxel_files.mha, voxel_files.mha_compressed, voxel_files.mhd,
                  voxel_files.mhd_compressed, mha_spacing],
    "hdf5": [voxel_files.hdf5, voxel_files.hdf5_chunks],
    "numpy": [voxel_files.npy, voxel_files.npy_fortran, voxel_files.npz, voxel_files.npz_fortran,
              voxel_files.npz_compressed, voxel_files.npz_compressed_fortran],
    "raw": [voxel_files.raw, voxel_files.raw_big_endian],
    "image": [png, png_palette],
}  # fmt: skip


@cache
def bases(kind):
    """The options and the intact files, contents by name, of each writer of a format."""
    found = []
    for writer in FORMATS[kind]:
        with tempfile.TemporaryDirectory() as folder:
            options = writer(Path(folder), GREY)
            found.append(
                (options, {each.name: each.read_bytes() for each in Path(folder).iterdir()})
            )
    return found


def damaged(kind, number):
    """The options of the shape, and the contents by name of damaged example `number`."""
    rng = random.Random(f"{kind} {number}")
    options, files = bases(kind)[number % len(bases(kind))]
    name = rng.choice(sorted(files))
    content = files[name]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        content = rng.choice([flipped, cut, joined, filled, replaced, replaced])(rng, content)
    if kind == "raw" and rng.random() < 0.7:
        size = [rng.choice([n, 0, -1, 2**31, 2**62, 10**18, n + 1]) for n in options["size"]]
        types = [options["type"], "f8", "V9", "O", "S0", "u1,", "(3,)u1", "x" * 500]
        options = options | {"size": tuple(size), "type": rng.choice(types)}
    return options, files | {name: content}


def flipped(rng, content):
    """Some bytes changed, mostly in the first quarter, where headers are."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 2, 8, 30])):
        end = len(changed) // rng.choice([1, 4, 4, 4])
        if end:
            changed[rng.randrange(end)] = rng.choice([0, 255, 1, 45, 127, 128, rng.randrange(256)])
    return bytes(changed)


def cut(rng, content):
    """Without a part, or without its end."""
    a, b = sorted(rng.choices(range(len(content) + 1), k=2))
    return content[:a] + (content[b:] if rng.random() < 0.5 else b"")


def joined(rng, content):
    """With a part of it inserted again."""
    a, b, c = sorted(rng.choices(range(len(content) + 1), k=3))
    return content[:c] + content[a:b] * rng.choice([1, 3]) + content[c:]


def filled(rng, content):
    """With a part that has one value."""
    a = rng.randrange(len(content) + 1)
    length = min(rng.choice([2, 4, 8, 64]), len(content) - a)
    return content[:a] + bytes([rng.choice([0, 255, 10, 32, 57])]) * length + content[a + length :]


def replaced(rng, content):
    """With another text in place of a number or a word of the header."""
    words = list(re.finditer(rb"[-+.\w]+", content[:2000]))
    if not words:
        return content
    word = rng.choice(words)
    return content[: word.start()] + rng.choice(EXTREME) + content[word.end() :]


def violation(folder, options):
    """The requirement that a file violates; empty if none."""
    voxels._opened.cache_clear()
    dimensions = 2 if options["file"].endswith("png") else 3
    size = SIZE[:dimensions]
    case = SimpleNamespace(domain=SimpleNamespace(size=size), dimensions=dimensions)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        found = shape(folder, dimensions=dimensions, **options)
        voxel_files.cells(found, size)
        found.findings(case, "body.rock.shape", Flow(0, None))
        found.contents()
    except TooSlow:
        return f"takes more than {SECONDS} s\n{traceback.format_exc()}"
    except (CaseError, ValueError) as error:
        text = str(error)
        if type(error) not in (CaseError, ValueError) or f"{options['file']}' " not in text:
            return "".join(traceback.format_exception(error))
        if "\n" in text or len(text) > 1500:
            return f"has a message of {len(text)} characters: {text[:1500]}"
    except Exception as error:  # what a user would see as a traceback
        return "".join(traceback.format_exception(error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def main(count, folder):
    """Check `count` files of each format."""
    signal.signal(signal.SIGALRM, raise_too_slow)
    resource.setrlimit(resource.RLIMIT_DATA, (int(GIGABYTES * 2**30),) * 2)
    warnings.simplefilter("error")
    broken = 0
    for kind in FORMATS:
        for number in range(count):
            options, files = damaged(kind, number)
            for name, content in files.items():
                (folder / name).write_bytes(content)
            if what := violation(folder, options):
                print(json.dumps({"format": kind, "number": number, "what": what[-3000:]}))
                broken += 1
    print(json.dumps({"checked": count * len(FORMATS), "broken": broken}))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
