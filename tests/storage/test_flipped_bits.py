"""A flipped bit in a file of mpilbm is never accepted, and never crashes or hangs HDF5."""

import os
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest
from support.flipped_bits import STEPS, case_of
from support.outputs_cases import flip_bit

from mpilbm.core.files.file_digest import DamagedFileError, Extent, trailer, verify
from mpilbm.core.machine import cache
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.storage.partial_file import find_places

EVERY = "MPILBM_TEST_ALL" in os.environ
RUNS = 1000 if EVERY else 12


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of a run with checkpoints of the steps 2, 4, 6 and 8."""
    folder = tmp_path_factory.mktemp("done")
    run(case_of(STEPS), Serial(), folder)
    return folder


def metadata(path) -> list[int]:
    """The bytes of a file without the values of its large datasets."""
    with h5py.File(path) as file:
        places = [place for place in find_places(file).values() if place.bytes > 400]
    assert places
    data = {k for place in places for k in range(place.offset, place.offset + place.bytes)}
    return sorted(set(range(path.stat().st_size)) - data)


@pytest.mark.parametrize("name", ["checkpoint_000000006.h5", "snapshot_000000004.vtkhdf"])
def test_any_flipped_bit_of_the_metadata_is_seen(done, tmp_path, name):
    path, random = tmp_path / name, np.random.default_rng(1)
    path.write_bytes((done / name).read_bytes())
    places = metadata(path)
    for place in places if EVERY else random.choice(places, 400, replace=False).tolist():
        bit = int(random.integers(8))
        flip_bit(path, place, bit)
        with pytest.raises(DamagedFileError):
            verify(path)
        flip_bit(path, place, bit)
    verify(path)


RESTARTS = """
import shutil, sys
from pathlib import Path
sys.path[:0] = {tests!r}
from support.outputs_cases import flip_bit
from support.flipped_bits import STEPS, case_of
from mpilbm.core.errors import CaseError
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run

done, folder = Path({done!r}), Path({folder!r})
older, newest, last = (done / f"checkpoint_00000000{{k}}.h5" for k in (4, 6, STEPS))
snapshot = done / "snapshot_000000004.vtkhdf"
out, given = folder / "out", folder / "given.h5"

def ends(case, **more):
    run(case, Serial(), out, **more)
    found = (out / last.name).read_bytes()
    shutil.rmtree(out)
    return found

def refused_or(expected, *case, **more):
    try:
        assert ends(*case, **more) == expected
    except CaseError as error:
        assert "digest" in str(error) or "damaged" in str(error), error
        shutil.rmtree(out, ignore_errors=True)

begun = case_of(STEPS, initial={{"file": str(given)}})
shutil.copy(snapshot, given)
of_snapshot = ends(begun)
for place, bit in {flips}:
    print("flipped", place, bit, file=sys.stderr)
    out.mkdir()
    for path in (older, newest):
        shutil.copy(path, out)
    flip_bit(out / newest.name, place, bit)
    assert ends(case_of(STEPS), restart="auto") == last.read_bytes()
    shutil.copy(newest, given)
    flip_bit(given, place, bit)
    refused_or(None, case_of(STEPS), restart=given)
    shutil.copy(snapshot, given)
    flip_bit(given, place % snapshot.stat().st_size, bit)
    refused_or(of_snapshot, begun)
print("all done")
"""


def test_runs_from_flipped_bits_fall_back_or_are_refused(done, tmp_path):
    """Whole runs in a child process with a time limit: `auto` ends in the bits of one undamaged."""
    places, random = metadata(done / "checkpoint_000000006.h5"), np.random.default_rng(2)
    text = RESTARTS.format(
        tests=sys.path,
        done=str(done),
        folder=str(tmp_path),
        flips=[
            (int(place), int(random.integers(8)))
            for place in random.choice(places, RUNS, replace=False)
        ],
    )
    result = subprocess.run(
        [sys.executable, "-c", text],
        env=os.environ | {"MPILBM_CACHE_DIR": str(cache.directory())},
        capture_output=True,
        text=True,
        timeout=3000 if EVERY else 100,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.endswith("all done\n")


def test_all_ranks_together_verify_every_byte(tmp_path):
    """Also of extents with fewer pieces than ranks."""
    path, content = tmp_path / "a", np.random.default_rng(3).bytes(44)
    extents = [Extent(0, 1, 7), Extent(7, 5, 3), Extent(22, 2, 11)]
    begins = [(e.offset + k * e.size, e.size) for e in extents for k in range(e.pieces)]
    sums = [zlib.crc32(content[begin : begin + size]) for begin, size in begins]
    path.write_bytes(content + trailer(extents, sums))
    for place in range(path.stat().st_size):
        flip_bit(path, place)
        seen = 0
        for rank in range(3):
            try:
                verify(path, 4 * rank, 4 * rank + 4, 12)
            except DamagedFileError:
                seen += 1
        assert seen == (1 if place < len(content) else 3)
        flip_bit(path, place)
    verify(path)


def test_pieces_larger_than_what_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("mpilbm.core.files.file_digest.BLOCK_BYTES", 4)
    test_all_ranks_together_verify_every_byte(tmp_path)
