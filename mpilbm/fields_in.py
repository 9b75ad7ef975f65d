"""Fields that a case reads from files; the only reader of HDF5 input."""

import os
import tomllib
from contextlib import contextmanager
from tokenize import TokenError  # of a damaged .npy header

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.lattices import x_of

BLOCK = 1 << 24  # bytes read at a time
MOST_NUMBERS = 2**26  # of a face: 4700 x 4700 cells with three components


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
        if not os.path.isfile(path):
            raise ValueError(f"is missing: there is no file {path}; paths start at the case")
        if is_npy:
            solid = _read(_map_npy(path), case, begin, end)
        else:
            solid = _read_hdf5(path, dataset, case, begin, end)
        return stored(case.lattice.staggered, solid, begin)
    except ValueError as error:
        raise CaseError(f"'{spec}' {error}", where, case.path) from None


def load_numbers(directory, spec: str) -> np.ndarray:
    """All numbers of "file.csv", "file.npy" or "file.h5:dataset", float64; else ValueError."""
    file, _, dataset = spec.rpartition(":") if ".h5:" in spec else (spec, "", "")
    path = directory / file
    if not os.path.isfile(path):
        raise ValueError(f"is missing: there is no file {path}; paths start at the case")
    if dataset:
        array = _whole_dataset(path, dataset)
    elif file.endswith(".npy"):
        array = _map_npy(path)
    else:
        try:
            begins = path.read_text("utf-8").lstrip()[:1]
            names = begins.isalpha() or begins == '"'  # a first row of names
            return np.loadtxt(path, delimiter=",", skiprows=int(names), ndmin=2)
        except (ValueError, OSError) as error:
            raise ValueError(f"cannot be read as rows of numbers ({error})") from None
    if array.dtype.kind not in "iuf":
        raise ValueError(f"has type {array.dtype}; save it as float64")
    return np.asarray(array, np.float64)


def _whole_dataset(path, name: str) -> np.ndarray:
    import h5py

    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            dataset = file[name]
            if dataset.dtype.kind not in "iuf" or dataset.shape is None:
                raise TypeError(f"its type is {dataset.dtype}; allowed: numbers")
            if dataset.size > MOST_NUMBERS:
                raise TypeError(f"it has {dataset.size} numbers; allowed: {MOST_NUMBERS} at most")
            return dataset[()]
    except (OSError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"cannot be read as a dataset ({error}); write it again") from None


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


def stored(staggered: bool, planes: np.ndarray, begin: int) -> np.ndarray:
    """The stored cells (n, rows, nx, …) of planes begin … of the box, given with all of its x."""
    if not staggered:
        return planes
    plane, row, k = np.ogrid[: len(planes), : planes.shape[1], : planes.shape[2] // 2]
    return planes[plane, row, x_of(staggered, begin + plane, row, k)]


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
        if np.isnan(block).any():
            raise ValueError(
                f"has nan within planes {first} to {last - 1}, which is neither solid nor fluid; "
                "save it as bool or uint8"
            )
        solid[first - begin : last - begin] = (block != 0).reshape(-1, rows, nx)
        first = last
    return solid


def check_snapshot(path, dimensions: int) -> None:
    """ValueError unless a file is a snapshot of ours with rho and u in as many dimensions."""
    with _snapshot(path) as (_, found):
        if found != dimensions:
            raise ValueError(f"has {found} dimensions, the case {dimensions}; take another file")


def load_snapshot(path, shape, periodic, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """rho (n, rows, nx) and u (n, rows, nx, D) of the planes begin … end - 1, float64.

    Of another size than `shape` = (planes, rows, nx) the file is resampled: linearly along each
    axis between cell centres, which divide the box alike; across periodic faces, else constant
    beyond the outermost centres. Velocities stay as they are, in cells per step. Each plane comes
    from the file alone, so that no bit depends on how the box is cut.
    """
    D = len(periodic)
    check_snapshot(path, D)
    with _snapshot(path) as (cells, _):
        planes = [_resampled(cells, shape, periodic, plane) for plane in range(begin, end)]
    values = np.stack(planes)
    return values[..., 0], values[..., 1 : 1 + D]


@contextmanager
def _snapshot(path):
    """The datasets of a snapshot and its dimensions; ValueError if it cannot be read as one."""
    import h5py

    if not os.path.isfile(path):
        raise ValueError("is missing: there is no such file; paths start at the case")
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            cells = file["VTKHDF/CellData"]
            missing = [name for name in ("rho", "u") if name not in cells]
            if missing:
                raise ValueError(
                    f"has no {', '.join(missing)}; it has {', '.join(cells)}; write a snapshot "
                    'with fields = ["rho", "u"]'
                )
            yield cells, len(tomllib.loads(file["mpilbm"].attrs["case"])["domain"]["size"])
    except (OSError, RuntimeError, KeyError, TypeError) as error:
        raise ValueError(f"is no snapshot of mpilbm ({error}); take another file") from None


def _resampled(cells, shape, periodic, plane: int) -> np.ndarray:
    """rho and u of a plane, (rows, nx, 1 + 3)."""
    flat = len(periodic) == 2
    old = cells["rho"].shape if not flat else (cells["rho"].shape[1], 1, cells["rho"].shape[2])
    wraps = (periodic[-1], periodic[1] if not flat else True, periodic[0])
    (low, high, share), *others = (
        _between(np.arange(new), new, count, wrap)
        for new, count, wrap in zip(shape, old, wraps, strict=True)
    )
    below, above = (_plane(cells, flat, int(k[plane])) for k in (low, high))
    values = _mixed(below, above, share[plane])
    for axis, (low, high, share) in enumerate(others):
        weight = share.reshape([-1 if k == axis else 1 for k in range(3)])
        values = _mixed(np.take(values, low, axis), np.take(values, high, axis), weight)
    return values


def _plane(cells, flat: bool, plane: int) -> np.ndarray:
    here = (slice(None), slice(plane, plane + 1)) if flat else (plane,)
    rho, u = (cells[name][here].astype(np.float64) for name in ("rho", "u"))
    values = np.concatenate([rho[..., None], u], axis=-1)
    return values[0] if flat else values


def _between(k, new: int, old: int, wraps: bool):
    """The cells on either side of the new centres, and how far between them these lie."""
    place = (k + 0.5) * (old / new) - 0.5
    low = np.floor(place).astype(int)
    share = place - low
    if wraps:
        return low % old, (low + 1) % old, share
    return np.clip(low, 0, old - 1), np.clip(low + 1, 0, old - 1), share


def _mixed(a, b, share):
    return a + share * (b - a)
