"""Selects the reader of a volume by the ending of its file name."""

from collections.abc import Callable
from dataclasses import dataclass
from os.path import exists, isdir, isfile  # False for a name that is too long
from pathlib import Path

from mpilbm.core.files.input_arrays import RELATIVE
from mpilbm.core.printable import one_line
from mpilbm.solids.volumes import Source, Volume, array_files, images, text_headers

LONGEST = 1000  # characters of a message


@dataclass(frozen=True)
class Format:
    """A file format.

    read   the volume of a source; ValueError, whose text follows the name of the file
    items  whether a file contains several arrays: "file:name"
    bare   whether a file has no header, so that the case gives size and type
    """

    read: Callable[[Source], Volume]
    items: bool = False
    bare: bool = False


FORMATS = {
    ".npy": Format(array_files.npy),
    ".npz": Format(array_files.npz, items=True),
    ".h5": Format(array_files.dataset, items=True),
    ".hdf5": Format(array_files.dataset, items=True),
    ".vtkhdf": Format(array_files.dataset, items=True),
    ".tif": Format(images.stack),
    ".tiff": Format(images.stack),
    ".png": Format(images.single),
    ".bmp": Format(images.single),
    ".raw": Format(array_files.raw, bare=True),
    ".nrrd": Format(text_headers.nrrd),
    ".nhdr": Format(text_headers.nrrd),
    ".mhd": Format(text_headers.metaimage),
    ".mha": Format(text_headers.metaimage),
}
FOLDER = Format(images.folder)


def located(directory: Path, file: str) -> tuple[Path, str]:
    """The path of "file" or "file:name", relative to a folder, and the name of the array or ""."""
    name, _, item = file.rpartition(":")
    ending = FORMATS.get(Path(name).suffix.lower())
    if name and ending and ending.items and not exists(directory / file):
        return directory / name, item
    return directory / file, ""


def open_volume(source: Source) -> Volume:
    """The volume of a source.

    Raises ValueError, whose text follows the name of the file: missing file, unknown ending, wrong
    or damaged content, missing package, or `size`, `type` and `order` for a file with a header.
    """
    path = source.path
    if not (isfile(path) or isdir(path)):
        raise ValueError(f"is missing: there is no file {path}; {RELATIVE}")
    kind = FOLDER if isdir(path) else FORMATS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            f"has the unknown ending '{path.suffix}'; allowed: {', '.join(FORMATS)}, or a folder "
            "of images; rename or convert it"
        )
    given = [key for key in ("size", "type", "order") if getattr(source, key)]
    if given and not kind.bare:
        what = "folder of images" if kind is FOLDER else f"{path.suffix} file"
        raise ValueError(
            f"is a {what}, which contains its own size and type; remove {' and '.join(given)}"
        )
    try:
        return kind.read(source)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # with text of the file, which may be long
        raise ValueError(one_line(error, LONGEST)) from None


def absolute(source: Source) -> str:
    """The absolute "file" or "file:name" of a source."""
    path = source.path.absolute()
    return f"{path}:{source.item}" if source.item else str(path)
