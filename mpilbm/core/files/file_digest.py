"""Checksums of files: a digest at the end of HDF5 files and tables, and one in JSON files.

    | file | crc32 of each piece, uint32 | extents, 3 uint64 each: offset, pieces, bytes | tail |

The extents cover the file without a gap. Each extent is divided into pieces of equal size: a
dataset into its planes; the metadata between datasets is one piece. The tail has a fixed length
and ends with a BLAKE2b digest of everything after the file. It is verified before HDF5 opens the
file. HDF5 ignores bytes after its own end of the file, and removes them when it opens the file for
writing.

The digest of a table to which rows are added has gaps in place of the rows, which have checksums of
their own, see storage/tables.py.

Several ranks share the verification: each verifies the same part of every extent. Of a dataset it
thus reads the planes of its own slab, and the file is read once in total.

JSON files have the checksum of their content under the key `crc32`.
"""

import json
import os
import stat
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAGIC = b"\x89mpilbm\n"
WHOLE, WITH_GAPS = 1, 2  # versions: the extents cover the whole file, or not
TAIL = struct.Struct("<8sIIQQ32s")  # magic, version, extents, pieces, bytes of the file, digest
SIGNED = TAIL.size - 32
BLOCK_BYTES = 8 << 20


class DamagedFileError(Exception):
    """The bytes of a file differ from those that were written."""


class NoDigestError(DamagedFileError):
    """A file does not end with a digest."""


class Extent(NamedTuple):
    """A part of a file: `pieces` pieces of `size` bytes each, from the byte `offset` on."""

    offset: int
    pieces: int
    size: int

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + self.pieces * self.size


def trailer(extents: list[Extent], sums: np.ndarray) -> bytes:
    """The bytes to append to a file; `sums` are the crc32 of all pieces in the extents' order."""
    return _trailer(WHOLE, extents, sums, extents[-1].end if extents else 0)


def trailer_with_gaps(number: int, size: int, gaps: Iterable[tuple[int, int]]) -> bytes:
    """The bytes to append to an open file of `size` bytes, but for the gaps (begin, end)."""
    extents, begin = list[Extent](), 0
    for end, following in [*sorted(gaps), (size, size)]:
        if begin < end:
            extents.append(Extent(begin, 1, end - begin))
        begin = max(begin, following)
    sums = [piece_sums(number, extent, range(1)) for extent in extents]
    return _trailer(WITH_GAPS, extents, np.concatenate(sums), size)


def _trailer(version: int, extents: list[Extent], sums: np.ndarray, size: int) -> bytes:
    table = np.asarray(sums, "<u4").tobytes() + np.array(extents, "<u8").tobytes()
    tail = TAIL.pack(MAGIC, version, len(extents), len(sums), size, bytes(32))[:SIGNED]
    return table + tail + blake2b(table + tail, digest_size=32).digest()


def verify(
    path: str | Path, begin: int = 0, end: int = 1, of: int = 1, known: Collection[int] = ()
) -> None:
    """Read the pieces k with begin / of <= k / pieces < end / of, and compare their checksums.

    Extents at the offsets `known` are not read.
    Raises NoDigestError if the file does not end with a digest, DamagedFileError if its bytes
    differ from those that were written, OSError if it cannot be read.
    """
    with opened(path) as number:
        extents, sums = _table(number)
        first = 0
        for extent in extents:
            share = range(extent.pieces * begin // of, extent.pieces * end // of)
            if extent.offset not in known:
                compare(number, extent, share, sums[first + share.start : first + share.stop])
            first += extent.pieces


def has_digest(path: str | Path) -> bool:
    """Whether a file ends with the tail of a digest, intact or not."""
    with opened(path) as number:
        return _tail(number)[1].startswith(MAGIC)


def piece_sums(number: int, extent: Extent, share: range) -> np.ndarray:
    """The crc32 of some pieces of an extent, read from an open file."""
    sums = np.zeros(len(share), np.uint32)
    together = max(1, BLOCK_BYTES // extent.size)
    buffer = memoryview(bytearray(min(BLOCK_BYTES, together * extent.size)))
    for first in range(share.start, share.stop, together):
        last = min(first + together, share.stop)
        place, end = extent.offset + first * extent.size, extent.offset + last * extent.size
        k, left, crc = first - share.start, extent.size, 0
        while place < end:
            view = _read(number, buffer[: end - place], place)
            place += len(view)
            while view:  # the rest of a piece, or whole pieces
                crc = zlib.crc32(view[:left], crc)
                done = min(left, len(view))
                view, left = view[done:], left - done
                if not left:
                    sums[k] = crc
                    k, left, crc = k + 1, extent.size, 0
    return sums


@contextmanager
def opened(path: str | Path) -> Iterator[int]:
    """The descriptor of a regular file; DamagedFileError for a folder, a pipe or a device."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise DamagedFileError("it is not a regular file")
        yield number
    finally:
        os.close(number)


def _tail(number: int) -> tuple[int, bytes]:
    """The size of an open file, and its last bytes."""
    size = os.fstat(number).st_size
    return size, os.pread(number, TAIL.size, max(0, size - TAIL.size))


def _table(number: int) -> tuple[list[Extent], np.ndarray]:
    """The extents and checksums of an open file, verified by the digest."""
    size, tail = _tail(number)
    if len(tail) < TAIL.size or not tail.startswith(MAGIC):
        raise NoDigestError("it does not end with a digest")
    _, version, count, pieces, body, digest = TAIL.unpack(tail)
    if body + 4 * pieces + 24 * count + TAIL.size != size:
        raise DamagedFileError("its length differs from that written")
    table = bytearray(4 * pieces + 24 * count)
    view, place = memoryview(table), body
    while view:
        done = len(_read(number, view, place))
        view, place = view[done:], place + done
    if blake2b(bytes(table) + tail[:SIGNED], digest_size=32).digest() != digest:
        raise DamagedFileError("its digest does not match")
    if version not in (WHOLE, WITH_GAPS):
        raise DamagedFileError(
            f"its digest has version {version}; allowed: {WHOLE} and {WITH_GAPS}"
        )
    rows = np.frombuffer(table, "<u8", offset=4 * pieces).reshape(-1, 3).tolist()
    extents = [Extent(*row) for row in rows]
    ends = [0, *(extent.end for extent in extents)]
    begins = [*(extent.offset for extent in extents), body]
    gaps = any(begin != end for begin, end in zip(begins, ends, strict=True))
    if any(extent.size < 1 for extent in extents) or (gaps and version == WHOLE):
        raise DamagedFileError("its digest does not cover the whole file")
    return extents, np.frombuffer(table, "<u4", count=pieces)


def compare(number: int, extent: Extent, share: range, expected: np.ndarray) -> None:
    """Read some pieces of an extent; DamagedFileError if these are not their checksums."""
    wrong = np.flatnonzero(piece_sums(number, extent, share) != expected)
    if len(wrong):
        begin = extent.offset + (share.start + int(wrong[0])) * extent.size
        raise DamagedFileError(f"bytes {begin} to {begin + extent.size - 1} have a wrong checksum")


def _read(number: int, buffer: memoryview, place: int) -> memoryview:
    """The bytes of one read, at least one; DamagedFileError at the end of the file."""
    done = os.preadv(number, [buffer], place)
    if not done:
        raise DamagedFileError(f"it ends at byte {place}")
    return buffer[:done]


KEY = "crc32"


class DamagedJsonError(ValueError):
    """The content of a file differs from that written."""


def sealed(content: dict[str, Any]) -> str:
    """The text of a file with this content and its checksum."""
    return _text({**content, KEY: _checksum(content)})


def unsealed(text: str, verify: bool = True) -> dict[str, Any]:
    """The content of a file without its checksum; `verify`: compare them, if it has one.

    Raises DamagedJsonError, or ValueError if the text is no JSON with keys and values.
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("it is no table of keys and values")
    known = content.pop(KEY, None)
    if verify and known not in (None, _checksum(content)):
        raise DamagedJsonError("its checksum is wrong")
    return content


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"


def _checksum(content: dict[str, Any]) -> str:
    return f"{zlib.crc32(_text(content).encode()):08x}"
