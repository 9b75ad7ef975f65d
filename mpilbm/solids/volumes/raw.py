"""Reads a .raw file: voxels without a header, mapped into memory."""

import numpy as np

from mpilbm.solids.volumes.header_fields import refuse_sizes
from mpilbm.solids.volumes.volume import Source, Volume, mapped


def raw(source: Source) -> Volume:
    """The voxels of a file; `size`, `type` and `order` describe it."""
    missing = [key for key in ("size", "type") if not getattr(source, key)]
    if missing or source.size is None:
        raise ValueError(
            f"has no header; give {' and '.join(missing)}, such as size = [512, 512, 512], "
            'type = "uint8"'
        )
    refuse_sizes(source.size)
    axes = "xyz"[: len(source.size)]
    order = source.order or axes
    if sorted(order) != list(axes):
        raise ValueError(
            f"has a size of {len(axes)} numbers, order = '{order}'; allowed: the axes {axes} in "
            "the order from the fastest to the slowest"
        )
    slowest_first = order[::-1]
    shape = tuple(source.size[axes.index(axis)] for axis in slowest_first)
    array = mapped(source.path, voxel_type(source.type), shape, exact=True)
    return Volume(array.transpose([slowest_first.index(axis) for axis in axes[::-1]]))


def voxel_type(name: str) -> np.dtype:
    """The NumPy type of a name; ValueError unless it is one of booleans, integers or floats."""
    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        found = np.dtype(object)
    if found.kind not in "biuf":
        raise ValueError(
            f"has the unknown type = '{name}'; allowed: a NumPy type such as uint8, int16, >u2 "
            "(big-endian) or float32"
        )
    return found
