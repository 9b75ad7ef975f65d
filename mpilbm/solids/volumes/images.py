"""Reads grey images by Pillow and tifffile: one image in 2D, a folder of images in 3D."""

import re
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.input_arrays import reading
from mpilbm.solids.volumes import tiff
from mpilbm.solids.volumes.spacing import side
from mpilbm.solids.volumes.volume import Pages, Source, Volume

ENDINGS = (".png", ".bmp", ".tif", ".tiff")
GREY = ("1", "L", "P", "I", "I;16", "I;16L", "I;16B", "F")  # modes of Pillow; P: palette indices


def single(source: Source) -> Volume:
    """One image [y, x]; its first row is y = 0."""
    return read(source.path)


def folder(source: Source) -> Volume:
    """The images of a folder as planes, in the natural order of their names: 2 before 10."""
    paths = [each for each in source.path.iterdir() if each.suffix.lower() in ENDINGS]
    paths = sorted((each for each in paths if not each.name.startswith(".")), key=_natural)
    if not paths:
        raise ValueError(f"is a folder without images; allowed: {', '.join(ENDINGS)}; name the "
                         "folder of the slices")  # fmt: skip
    images = ImageFolder(paths)
    return Volume(images, 1, (*images.first.spacing, nan), images.first.notes)


class ImageFolder(Pages):
    """The images of a folder, read one by one."""

    def __init__(self, paths: list[Path]):
        self.paths = paths
        self.first = self._read(0)
        array = self.first.array
        self.shape, self.dtype = (len(paths), *array.shape), array.dtype

    def page(self, k: int) -> NDArray[Any]:
        """Image k; ValueError if its size or type is not that of the first one."""
        image = np.asarray(self._read(k).array[:])
        if (image.shape, image.dtype) != (self.shape[1:], self.dtype):
            kinds = _kind(self.shape[1:], self.dtype), _kind(image.shape, image.dtype)
            raise ValueError(f"has images that differ: {self.paths[0].name} is {kinds[0]}, "
                             f"{self.paths[k].name} is {kinds[1]}; save all alike")  # fmt: skip
        return image

    def _read(self, k: int) -> Volume:
        try:
            return read(self.paths[k])
        except ValueError as error:
            raise ValueError(f"has the image {self.paths[k].name}, which {error}") from None


def read(path: Path) -> Volume:
    """A grey image [y, x]; ValueError if it cannot be read."""
    if path.suffix.lower() in (".tif", ".tiff"):
        volume = tiff.stack(Source(path))
        if len(volume.array.shape) != 2:
            raise ValueError(f"has {volume.array.shape[0]} pages; allowed: one image")
        return volume
    try:
        from PIL import Image
    except ImportError:
        raise ValueError("requires Pillow; install it: pip install 'mpilbm[scans]'") from None
    with reading("as an image"):
        try:
            with Image.open(path) as image:
                mode, array, palette = image.mode, np.asarray(image), image.getpalette()
                pixels = image.info.get("dpi", image.info.get("aspect", ()))  # per unit
                spacing = [side(1 / n) if n else nan for n in pixels]
        except Image.DecompressionBombError:
            array = None
    if array is None:
        raise ValueError("has too many pixels for this format; convert it to .tif")
    if mode not in GREY:
        raise ValueError(f"is a colour image (mode {mode}); allowed: grey images; convert it")
    convert, note = tiff.of_palette(np.array(palette or []).reshape(-1, 3))
    array = convert(array) if convert else array
    return Volume(array, 1, tuple(spacing), (note,) if note else ())


def _natural(path: Path) -> list[tuple[int, str]]:
    """A key that orders numbers in names by value."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(each), "") if each.isdecimal() else (-1, each) for each in parts]


def _kind(shape: tuple[int, ...], dtype: np.dtype) -> str:
    return f"{shape[1]} x {shape[0]} {dtype.name}"
