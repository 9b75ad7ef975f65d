"""Solid cells from mask files, which have the size of the box: .npy, or a dataset of an HDF5 file.

Read by the readers of volumes, see `volumes`.
"""

from functools import lru_cache
from os.path import isfile  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.core.errors import CaseError
from mpilbm.core.files import file_state
from mpilbm.core.files.hdf5 import require_intact
from mpilbm.core.files.input_arrays import RELATIVE
from mpilbm.core.formulas.given_functions import is_reference, unknown
from mpilbm.model.case import BoundedLattice
from mpilbm.solids import Flags
from mpilbm.solids.volumes import Source, Volume, array_files
from mpilbm.solids.volumes.solid_planes import SolidPlanes


def require_masks(case: BoundedLattice) -> None:
    """CaseError if an HDF5 mask of a body does not match the digest at the end of its file.

    Reads whole files. One rank calls it before any rank calls `load_mask`.
    """
    for k, body in enumerate(case.bodies):
        spec = body.mask or ""
        path = case.directory / spec.rpartition(":")[0]
        if spec.endswith(".npy") or not isfile(path):
            continue
        try:
            require_intact(path)
        except ValueError as error:
            raise CaseError(f"'{spec}' {error}", f"body.{k}.mask", case.path) from None


def load_mask(
    spec: str, case: BoundedLattice, begin: int, end: int, where: str = "body.mask"
) -> Flags:
    """Planes begin … end - 1 of a mask file as bool (end - begin, rows, nx): nonzero is solid.

    The file contains all nodes of the box, also those that a staggered lattice leaves out.

    Args:
        spec: "rock.npy" or "rock.h5:dataset", relative to the folder of the case, or the
            reference of an array; an array of shape (nz, ny, nx), in 2D (ny, nx) or (1, ny, nx),
            of booleans, integers or floats.
        case: the shape of the box and the folder of the file.
        begin: first global plane (z in 3D, y in 2D).
        end: one after the last.
        where: key path of the mask, for messages.

    Raises:
        CaseError: no such file or dataset, wrong shape or type, a damaged file.
    """
    try:
        planes = _planes(spec, case, shape := _shape(case))
        solid = [planes.plane(k, range(k + 1, end)) for k in range(begin, end)]
        return case.lattice.stored(np.reshape(solid, (-1, *shape[1:])), begin)
    except ValueError as error:
        raise CaseError(f"'{spec}' {error}", where, case.path) from None


def mask_contents(spec: str, case: BoundedLattice, where: str) -> tuple[str, str]:
    """The values of a mask, see `SolidPlanes.contents`; arguments and errors as for load_mask."""
    try:
        return _planes(spec, case, _shape(case)).contents
    except ValueError as error:
        raise CaseError(f"'{spec}' {error}", where, case.path) from None


def _shape(case: BoundedLattice) -> tuple[int, int, int]:
    planes, rows, nx = case.shape
    return planes, rows, nx * case.lattice.volume


def _planes(spec: str, case: BoundedLattice, shape: tuple[int, ...]) -> SolidPlanes:
    """The solid planes of a file or of an array of a Python program."""
    if is_reference(spec):
        if spec not in case.given:
            raise ValueError(unknown(spec))
        return _of_volume(Volume(case.given[spec].object), shape, case.dimensions)
    is_npy = spec.endswith(".npy")
    file, _, dataset = (spec, "", "") if is_npy else spec.rpartition(":")
    path = case.directory / file
    if not file or not (is_npy or dataset):
        raise ValueError("is not a mask; name a file.npy or a file.h5:dataset")
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; {RELATIVE}")
    return _opened(path, dataset, file_state(path), shape, case.dimensions)


@lru_cache(16)
def _opened(
    path: Path, dataset: str, state: Any, shape: tuple[int, ...], dimensions: int
) -> SolidPlanes:
    """The solid planes of a mask of this shape; state: changes with the content of the file."""
    volume = array_files.checked(path, dataset) if dataset else array_files.npy(Source(path))
    return _of_volume(volume, shape, dimensions)


def _of_volume(volume: Volume, shape: tuple[int, ...], dimensions: int) -> SolidPlanes:
    """The solid planes of a volume; ValueError unless it has the cells of the box."""
    planes, _, nx = shape
    allowed = [(planes, nx), (1, planes, nx)] if dimensions == 2 else [shape]
    if volume.array.dtype.kind in "biuf" and volume.array.shape not in allowed:
        raise ValueError(
            f"has shape {volume.array.shape}; allowed: {' or '.join(map(str, allowed))}, slowest "
            "axis first, x last; transpose the mask or change domain.size"
        )
    return SolidPlanes(volume, dimensions)
