"""Reads grey images by Pillow and tifffile: one image in 2D, a folder or a TIFF stack in 3D.

TIFF stacks are mapped into memory if possible, otherwise read page by page.
"""

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from html import unescape
from math import nan, prod
from pathlib import Path
from struct import unpack
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.files.input_arrays import AGAIN, reading
from mpilbm.solids.volumes import Converted, Pages, Source, Volume, mapped
from mpilbm.solids.volumes.spacing import side

ENDINGS = (".png", ".bmp", ".tif", ".tiff")
GREY = ("1", "L", "P", "I", "I;16", "I;16L", "I;16B", "F")  # modes of Pillow; P: palette indices
MOST_PER_STORED_BYTE = 1 << 16  # of any compression of planes that do not all have one value
WHITE_IS_ZERO, PALETTE = 0, 3  # PhotometricInterpretation
X_RESOLUTION, Y_RESOLUTION = 282, 283  # tags: pixels per unit
OME_PIXELS = re.compile(r"<(?:\w+:)?Pixels\s[^>]*>")
OME_SIZE = re.compile(r"PhysicalSize([XYZ])(Unit)?\s*=\s*[\"']([^\"']*)")
METRES = {"Å": 1e-10, "nm": 1e-9, "µm": 1e-6, "\u03bcm": 1e-6, "um": 1e-6}
METRES |= {"mm": 1e-3, "cm": 1e-2, "m": 1.0}
IMAGEJ_UNITS = 1_000_000  # for which ImageJ writes a number of pixels, rounded down


def single(source: Source) -> Volume:
    """One image [y, x]; its first row is y = 0."""
    return read(source.path)


def folder(source: Source) -> Volume:
    """The images of a folder as planes, in the natural order of their names: 2 before 10."""
    paths = [each for each in source.path.iterdir() if each.suffix.lower() in ENDINGS]
    paths = sorted((each for each in paths if not each.name.startswith(".")), key=_natural)
    if not paths:
        allowed = f"allowed: {', '.join(ENDINGS)}; name the folder of the slices"
        raise ValueError(f"is a folder without images; {allowed}")
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
            first = f"{self.paths[0].name} is {_size(self.shape[1:], self.dtype)}"
            this = f"{self.paths[k].name} is {_size(image.shape, image.dtype)}"
            raise ValueError(f"has images that differ: {first}, {this}; save all alike")
        return image

    def _read(self, k: int) -> Volume:
        try:
            return read(self.paths[k])
        except ValueError as error:
            raise ValueError(f"has the image {self.paths[k].name}, which {error}") from None


def read(path: Path) -> Volume:
    """A grey image [y, x]; ValueError if it cannot be read."""
    if path.suffix.lower() in (".tif", ".tiff"):
        volume = stack(Source(path))
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
    convert, note = of_palette(np.array(palette or []).reshape(-1, 3))
    array = convert(array) if convert else array
    return Volume(array, 1, tuple(spacing), (note,) if note else ())


def _natural(path: Path) -> list[tuple[int, str]]:
    """A key that orders numbers in names by value."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(each), "") if each.isdecimal() else (-1, each) for each in parts]


def _size(shape: tuple[int, ...], dtype: np.dtype) -> str:
    return f"{shape[1]} x {shape[0]} {dtype.name}"


def stack(source: Source) -> Volume:
    """The pages of a file as planes; a file with one page is an image [y, x]."""
    with ExitStack() as closing:
        file = closing.enter_context(opened(source.path))
        with reading("as TIFF"):
            _require_end(file)
            pages, shape, axes, begin = _planes(file.series)
            first = file.pages[0].aspage()
            spacing = _spacing(file, first)
            convert, note = _meaning(first)
            lost = sum(page is None for page in pages) if file.is_ome else 0
        if not pages:
            allowed = "allowed: one, with pages of equal size and type; save the stack alone"
            raise ValueError(f"has {len(file.series)} series of pages; {allowed}")
        if lost:
            raise ValueError(
                f"is incomplete: {lost} of its {len(pages)} pages are in other files of the same "
                "OME set, which are missing; copy them to its folder"
            )
        if len(shape) not in (2, 3) or "S" in axes:
            allowed = "allowed: grey images, one number per voxel; convert it"
            raise ValueError(f"has pages of shape {shape[-3:]} with the axes {axes}; {allowed}")
        dtype = np.dtype(first.dtype).newbyteorder(file.byteorder)
        if begin is not None:
            array: Any = mapped(source.path, dtype, shape, begin)
        else:
            _require_stored(source.path, shape, dtype)
            array = TiffPages(pages, shape)
            if len(shape) == 3:
                finalize(array, closing.pop_all().close)  # the file stays open for its pages
            else:
                array = array.page(0)
    array = Converted(array, convert) if convert else array
    return Volume(array, 1, spacing[: len(shape)], (note,) if note else ())


def opened(path: Path) -> Any:
    """A TIFF file opened by tifffile; ValueError if it cannot be read."""
    try:
        import tifffile
    except ImportError:
        raise ValueError("requires tifffile; install it: pip install 'mpilbm[scans]'") from None
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # problems become errors
    with reading("as TIFF"):
        return tifffile.TiffFile(path)


def _require_end(file: Any) -> None:
    """ValueError if the list of pages is circular; tifffile would follow it for millions of pages.

    Other damage of the list is left to tifffile, which reads the pages before it.
    """
    handle, tiff = file.filehandle, file.tiff
    seen: set[int] = set()

    def number(form: str, size: int) -> int:
        stored = handle.read(size)
        return unpack(form, stored)[0] if len(stored) == size else 0

    handle.seek(tiff.offsetsize)  # the first offset, at byte 4, in BigTIFF at byte 8
    while 0 < (offset := number(tiff.offsetformat, tiff.offsetsize)) < handle.size:
        if offset in seen:
            raise ValueError("its list of pages is circular")
        seen.add(offset)
        handle.seek(offset)
        tags = number(tiff.tagnoformat, tiff.tagnosize)
        handle.seek(offset + tiff.tagnosize + tags * tiff.tagsize)


def _planes(series: list[Any]) -> tuple[Sequence[Any], tuple[int, ...], str, int | None]:
    """Pages, shape and axes of a stack, and where its values begin if they are contiguous.

    Several series are one stack if their pages are alike, such as pages that were appended one by
    one; otherwise there are no pages.
    """
    if not series or not all(len(each.pages) for each in series):
        raise ValueError("it has no page")
    first = series[0]
    if len(series) == 1:
        return first.pages, tuple(first.shape), first.axes, first.dataoffset
    kinds = {_kind(page, each) for each in series for page in each}
    whole = all(len(each.pages) == prod(each.shape[:-2]) for each in series)
    if len(kinds) > 1 or not whole:
        return (), (), "", None
    pages = [page for each in series for page in each.pages]
    return pages, (len(pages), *first.keyframe.shape), f"I{first.keyframe.axes}", None


def _kind(page: Any, series: Any) -> tuple[Any, ...]:
    """Size, type and meaning of a page."""
    return page.shape, page.dtype, series.keyframe.photometric


class TiffPages(Pages):
    """The pages of a TIFF file."""

    def __init__(self, pages: Sequence[Any], shape: tuple[int, ...]):
        self.pages, self.shape = pages, shape
        self.dtype = np.dtype(pages[0].dtype)
        if len(shape) == 3 and len(pages) != shape[0]:
            allowed = "allowed: a page for each plane; save it again"
            raise ValueError(f"has {len(pages)} pages for {shape[0]} planes; {allowed}")

    def page(self, k: int) -> NDArray[Any]:
        """Page k."""
        try:
            with reading(f"in page {k}"):
                values = self.pages[k].asarray()
                return values.reshape(self.shape[-2:]).astype(self.dtype, copy=False)
        except ValueError as error:
            if "imagecodecs" in str(error):
                raise ValueError(
                    str(error).replace(AGAIN, "install it: pip install imagecodecs")
                ) from None
            raise


def _require_stored(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """ValueError if the file is too small for its pages: a damaged header may give any size."""
    needed, stored = prod(shape) * dtype.itemsize, path.stat().st_size
    if needed > MOST_PER_STORED_BYTE * stored:
        raise ValueError(
            f"is damaged: it declares {needed} bytes of voxels and has {stored} bytes; {AGAIN}"
        )


def _meaning(page: Any) -> tuple[Callable[[NDArray[Any]], NDArray[Any]] | None, str]:
    """The function from stored numbers to grey values, None if they are equal, and a note."""
    kind = np.dtype(page.dtype).kind
    if page.photometric == WHITE_IS_ZERO:
        if kind not in "bu":
            why = f"values of type {page.dtype} have no largest one: they are not inverted"
            return None, f"0 is white in this file (WhiteIsZero), but {why}"
        most = (1 << int(page.bitspersample)) - 1
        note = f"0 is white in this file (WhiteIsZero): a stored v is read as {most} - v"
        return (np.logical_not if kind == "b" else lambda values: most - values), note
    if page.photometric == PALETTE and page.colormap is not None and kind == "u":
        colours = np.asarray(page.colormap).T
        return of_palette(colours >> 8 if colours.max() > 255 else colours)  # some have 8 bits
    return None, ""


def of_palette(
    colours: NDArray[Any],
) -> tuple[Callable[[NDArray[Any]], NDArray[Any]] | None, str]:
    """The function from the indices of a palette to grey values, and a note; see `_meaning`.

    colours: (n, 3), from 0 to 255. The indices of a palette with colours are labels and are kept.
    """
    grey = colours[:, 0].astype(np.uint8)
    if (colours != colours[:, :1]).any():
        return None, "the values are the indices of a palette with colours"
    if np.array_equal(grey, np.arange(len(grey))):
        return None, ""
    lookup = np.zeros(1 << 16, np.uint8)
    lookup[: len(grey)] = grey
    return lambda values: lookup[values], "the values are the grey values of its palette"


def _spacing(file: Any, page: Any) -> tuple[float, ...]:
    """Sides of a voxel along x, y, z from the metadata of OME and ImageJ, or the resolution."""
    if file.is_ome:
        return _of_ome(file.ome_metadata)
    z = side(float(file.imagej_metadata.get("spacing", nan))) if file.is_imagej else nan
    x, y = (_per_pixel(page, tag, z) for tag in (X_RESOLUTION, Y_RESOLUTION))
    if file.is_imagej:
        x, y = (1.0 if value != value else value for value in (x, y))  # a pixel is 1 by default
    return x, y, z


def _of_ome(metadata: str) -> tuple[float, ...]:
    """Sides of a voxel along x, y, z of the first image; nan if one, or its unit, is unknown.

    An unknown unit, such as "pixel", is used if all sides have it.
    """
    pixels = OME_PIXELS.search(metadata)
    sizes = OME_SIZE.findall(pixels[0] if pixels else "")
    found = {axis + unit: unescape(value) for axis, unit, value in sizes}
    units = {axis: found.get(f"{axis}Unit", "µm") for axis in "XYZ" if axis in found}
    metres = METRES if len(set(units.values())) > 1 else dict.fromkeys(units.values(), 1.0)
    return tuple(_ome_side(found.get(axis, ""), metres.get(units.get(axis, ""))) for axis in "XYZ")


def _ome_side(text: str, unit: float | None) -> float:
    try:
        return side(float(text) * unit) if unit else nan
    except ValueError:
        return nan


def _per_pixel(page: Any, tag: int, z: float) -> float:
    """The side of a pixel from a resolution; nan if it is unknown.

    z: the side along z. It is returned if ImageJ writes this resolution for it, a whole number of
    pixels for 10^6 units: 142 for z = 7000.
    """
    found = page.tags.get(tag)
    try:
        pixels, units = found.value
        rounded = IMAGEJ_UNITS // z * units == IMAGEJ_UNITS * pixels
        return z if rounded else side(units / pixels)
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        return nan
