"""Films made from pictures: MP4 with imageio-ffmpeg, else GIF with Pillow."""

import errno
import struct
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.core.files.file_origin import FILM_COMMENT
from mpilbm.storage import partial_of, whole

PER_SECOND = 12  # pictures
MISSING = (
    "film: requires imageio-ffmpeg (MP4) or Pillow (GIF); neither is installed; pip install "
    "'mpilbm[film]'"
)


def ending() -> str | None:
    """The kind of film that can be made here: ".mp4", ".gif" or None."""
    if find_spec("imageio_ffmpeg") and find_spec("PIL"):
        return ".mp4"
    return ".gif" if find_spec("PIL") else None


def write_film(path: Path, pictures: Sequence[Path]) -> None:
    """Write a film of PNG files; `path` ends with .mp4 or .gif. OSError if that fails."""
    if path.suffix == ".gif":
        _write_gif(path, pictures)
    else:
        _write_mp4(path, pictures)


def _frames(pictures: Sequence[Path]) -> Iterator[np.ndarray]:
    """The pictures (rows, columns, 3), all with the even size of the first one."""
    from PIL import Image

    size: tuple[int, int] | None = None
    for path in pictures:
        with Image.open(path) as image:
            pixels = image.convert("RGB")
        size = size or (pixels.width // 2 * 2, pixels.height // 2 * 2)
        yield np.asarray(pixels.crop((0, 0, *size)))


def _write_mp4(path: Path, pictures: Sequence[Path]) -> None:
    import imageio_ffmpeg

    partial = partial_of(path)
    frames = _frames(pictures)
    first = next(frames)
    size = first.shape[1], first.shape[0]
    options = ["-f", "mp4", "-crf", "20", "-metadata", f"comment={FILM_COMMENT}"]
    encoding = {"fps": PER_SECOND, "codec": "libx264", "macro_block_size": 2}
    writer: Any = imageio_ffmpeg.write_frames(str(partial), size, output_params=options, **encoding)
    writer.send(None)
    try:
        try:
            writer.send(np.ascontiguousarray(first))
            for frame in frames:
                writer.send(np.ascontiguousarray(frame))
        finally:
            writer.close()
        _require_complete(partial)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _require_complete(path: Path) -> None:
    """OSError unless an MP4 file has its index, the box `moov`, which ffmpeg writes last.

    imageio-ffmpeg does not report that the disk was full. [Format: ISO/IEC 14496-12]
    """
    place, end = 0, path.stat().st_size
    with open(path, "rb") as file:
        while place < end:
            file.seek(place)
            size, kind, large = struct.unpack(">I4sQ", file.read(16).ljust(16, b"\0"))
            place += large if size == 1 else size or end
            if kind == b"moov" and place <= end:
                return
    raise OSError(errno.EIO, "the film is not complete; is the disk full?", str(path))


def _write_gif(path: Path, pictures: Sequence[Path]) -> None:
    from PIL import Image

    first, *rest = (Image.fromarray(frame) for frame in _frames(pictures))
    with whole(path, "wb") as file:
        timing = {"loop": 0, "duration": 1000 // PER_SECOND}
        comment = FILM_COMMENT.encode()
        first.save(file, "GIF", save_all=True, append_images=rest, comment=comment, **timing)
