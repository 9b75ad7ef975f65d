"""Fields that a case reads from files; the only reader of HDF5 input."""

from tokenize import TokenError  # of a damaged .npy header

import numpy as np

from mpilbm.errors import CaseError

BLOCK = 1 << 24  # bytes read at a time


def load_mask(spec: str, case, begin: int, end: int, where: str = "body.mask") -> np.ndarray:
    """Planes begin..end of a mask file as bool (end - begin, rows, nx): nonzero is solid.

    The file holds all nodes of the box, also those that a staggered lattice leaves out.

    Args:
        spec: "rock.npy" or "rock.h5:dataset", relative to the folder of the case; an array of
            shape (nz, ny, nx), in 2D (ny, nx) or (1, ny, nx), of booleans, integers or floats.
        case: gives the shape of the box, and where it is read from.
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
        if not file or not (is_npy or dataset):
            raise ValueError("is no mask; name a file.npy or a file.h5:dataset")
        if not path.is_file():
            raise ValueError(f"is missing: there is no file {path}; paths start at the case")
        if is_npy:
            solid = _read(_map_npy(path), case, begin, end)
        else:
            solid = _read_hdf5(path, dataset, case, begin, end)
        return stored(case.lattice, solid, begin)
    except ValueError as error:
        raise CaseError(f"'{spec}' {error}", where, case.path) from None


def _map_npy(path) -> np.ndarray:
    """The array of a .npy file, mapped, not read; objects would need pickle and are refused."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, TypeError, OverflowError, OSError, TokenError) as error:
        if "Python objects" in str(error):
            raise ValueError("holds Python objects; save it as bool or uint8") from None
        raise ValueError(f"cannot be read as .npy ({error}); write it again") from None


def _read_hdf5(path, name: str, case, begin: int, end: int) -> np.ndarray:
    import h5py  # only a case with such a mask needs it

    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            if name in file and isinstance(file[name], h5py.Dataset):
                return _read(file[name], case, begin, end)
            found = []
            file.visititems(lambda key, item: found.append(key) if hasattr(item, "shape") else None)
    except (OSError, RuntimeError, KeyError, TypeError) as error:
        raise ValueError(f"cannot be read as HDF5 ({error}); write it again") from None
    more = ", …" if len(found) > 10 else ""
    names = ", ".join(map(str, found[:10])) + more if found else "none"
    raise ValueError(f"is missing: {path.name} has no dataset '{name}'; it has {names}")


def stored(lattice, planes: np.ndarray, begin: int) -> np.ndarray:
    """The stored cells (n, rows, nx, …) of planes begin … of the box, given with all of its x."""
    if not lattice.staggered:
        return planes
    plane, row, k = np.ogrid[: len(planes), : planes.shape[1], : planes.shape[2] // 2]
    return planes[plane, row, lattice.x(begin + plane, row, k)]


def _read(array, case, begin: int, end: int) -> np.ndarray:
    """`array != 0` of the planes, a block of planes at a time (whole HDF5 chunks)."""
    planes, rows, nx = shape = (*case.shape[:2], case.shape[2] * case.lattice.volume)
    dimensions = case.dimensions
    allowed = ((planes, nx), (1, planes, nx)) if dimensions == 2 else (shape,)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"has type {array.dtype}; save it as bool or uint8")
    if array.shape not in allowed:
        wanted = " or ".join(str(tuple(entry)) for entry in allowed)
        raise ValueError(
            f"has shape {array.shape}, the box wants {wanted}: slowest axis first, x last; "
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
        solid[first - begin : last - begin] = (block != 0).reshape(-1, rows, nx)
        first = last
    return solid
