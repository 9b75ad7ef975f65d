"""Solid cells from mask files: .npy, or a dataset of an HDF5 file."""

from os.path import isfile  # False for a name that is too long

import numpy as np

from mpilbm.case.given.objects import is_reference, unknown
from mpilbm.case.input_fields import RELATIVE, hdf5_dataset, npy_array, stored
from mpilbm.case.model import Case
from mpilbm.errors import CaseError
from mpilbm.system.hdf5_input import Values, opened, require_intact

BLOCK = 1 << 24  # bytes that are read at a time


def require_masks(case: Case) -> None:
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


def load_mask(spec: str, case: Case, begin: int, end: int, where: str = "body.mask") -> np.ndarray:
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
    is_npy = spec.endswith(".npy")
    file, _, dataset = (spec, "", "") if is_npy else spec.rpartition(":")
    path = case.directory / file
    try:
        if is_reference(spec):
            return stored(
                case.lattice.staggered, _read(_given(spec, case), case, begin, end), begin
            )
        if not file or not (is_npy or dataset):
            raise ValueError("is not a mask; name a file.npy or a file.h5:dataset")
        if not isfile(path):
            raise ValueError(f"is missing: there is no file {path}; {RELATIVE}")
        if is_npy:
            solid = _read(npy_array(path), case, begin, end)
        else:
            with opened(path) as hdf5:
                solid = _read(hdf5_dataset(hdf5, path, dataset, "biuf"), case, begin, end)
        return stored(case.lattice.staggered, solid, begin)
    except ValueError as error:
        raise CaseError(f"'{spec}' {error}", where, case.path) from None


def _given(spec: str, case: Case) -> np.ndarray:
    """The array of a reference; ValueError if there is none."""
    if spec not in case.given:
        raise ValueError(unknown(spec))
    return case.given[spec].object


def _read(array: np.ndarray | Values, case: Case, begin: int, end: int) -> np.ndarray:
    """`array != 0` of the planes, read in blocks of planes (whole HDF5 chunks)."""
    planes, rows, nx = shape = (*case.shape[:2], case.shape[2] * case.lattice.volume)
    dimensions = case.dimensions
    allowed: list[tuple[int, ...]] = [(planes, nx), (1, planes, nx)] if dimensions == 2 else [shape]
    if array.dtype.kind not in "biuf":
        raise ValueError(f"has type {array.dtype}; save it as bool or uint8")
    if array.shape not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise ValueError(
            f"has shape {array.shape}; allowed: {wanted}, slowest axis first, x last; "
            "transpose the mask or change domain.size"
        )
    flat = dimensions == 2 and array.ndim == 3
    chunk = (getattr(array, "chunks", None) or (1, 1))[1 if flat else 0]
    step = -(-max(1, BLOCK // (rows * nx * array.dtype.itemsize)) // chunk) * chunk
    solid = np.empty((end - begin, rows, nx), bool)
    first = begin
    while first < end:
        last = min(end, (first // step + 1) * step)
        block = array[0, first:last] if flat else array[first:last]
        if np.isnan(block).any():
            raise ValueError(
                f"has nan in planes {first} to {last - 1}, which is neither solid nor fluid; "
                "save it as bool or uint8"
            )
        solid[first - begin : last - begin] = (block != 0).reshape(-1, rows, nx)
        first = last
    return solid
