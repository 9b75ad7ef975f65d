"""Reads TIFF stacks by tifffile: mapped into memory if possible, otherwise page by page."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.geometry.volumes.volume import AGAIN, Pages, Source, Volume, mapped


def stack(source: Source) -> Volume:
    """The pages of a file as planes; a file with one page is an image [y, x]."""
    file = opened(source.path)
    series = file.series
    if len(series) != 1:
        raise ValueError(f"has {len(series)} series of pages; allowed: one, with pages of equal "
                         "size and type; save the stack alone")  # fmt: skip
    shape = tuple(series[0].shape)
    if len(shape) not in (2, 3) or "S" in series[0].axes:
        raise ValueError(f"has pages of shape {shape[-3:]} with the axes {series[0].axes}; "
                         "allowed: grey images, one number per voxel; convert it")  # fmt: skip
    dtype = np.dtype(series[0].dtype).newbyteorder(file.byteorder)
    if series[0].dataoffset is not None:
        return Volume(mapped(source.path, dtype, shape, series[0].dataoffset))
    pages = TiffPages(file, series[0])
    return Volume(pages if len(shape) == 3 else pages.page(0))


def opened(path: Path) -> Any:
    """A TIFF file opened by tifffile; ValueError if it cannot be read."""
    try:
        import tifffile
    except ImportError:
        raise ValueError("requires tifffile; install it: pip install 'mpilbm[scans]'") from None
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # problems become errors
    try:
        file = tifffile.TiffFile(path)
        if len(file.series) and all(len(each.pages) for each in file.series):
            return file
        problem: object = "it has no page"
    except (tifffile.TiffFileError, ValueError, IndexError, KeyError, TypeError) as error:
        problem = error
    raise ValueError(f"cannot be read as TIFF ({problem}); {AGAIN}")


class TiffPages(Pages):
    """The pages of a series of a TIFF file."""

    def __init__(self, file: Any, series: Any):
        self.file, self.series = file, series  # the file stays open as long as its pages
        self.shape, self.dtype = tuple(series.shape), np.dtype(series.dtype)
        if len(self.shape) == 3 and len(series.pages) != self.shape[0]:
            raise ValueError(f"has {len(series.pages)} pages for {self.shape[0]} planes; allowed: "
                             "a page for each plane; save it again")  # fmt: skip

    def page(self, k: int) -> NDArray[Any]:
        """Page k."""
        try:
            return self.series.pages[k].asarray().reshape(self.shape[-2:])
        except Exception as error:  # tifffile and its codecs have no common class of errors
            hint = "; install it: pip install imagecodecs" if "imagecodecs" in str(error) else ""
            raise ValueError(
                f"cannot be read in page {k} ({error}){hint or f'; {AGAIN}'}"
            ) from None
