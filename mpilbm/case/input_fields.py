"""Fields that a case reads from files: masks, planes of values, snapshots."""

import tomllib
from contextlib import contextmanager
from math import prod
from os.path import exists, isfile  # False for a name that is too long
from tokenize import TokenError  # of a damaged .npy header

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.physics.lattices import x_of
from mpilbm.system.hdf5_input import attribute, dataset_names, opened, require_intact, values

BLOCK = 1 << 24  # bytes read at a time
MOST_NUMBERS = 2**26  # of a face: 4700 x 4700 cells with three components


def require_masks(case) -> None:
    """CaseError if an HDF5 mask of a body is damaged, as far as a digest at its end shows.

    Reads whole files, so one rank does it, before any rank opens them by `load_mask`.
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
        if not isfile(path):
            raise ValueError(f"is missing: there is no file {path}; paths start at the case")
        if is_npy:
            solid = _read(_map_npy(path), case, begin, end)
        else:
            with opened(path) as hdf5:
                solid = _read(_dataset(hdf5, path, dataset, "biuf"), case, begin, end)
        return stored(case.lattice.staggered, solid, begin)
    except ValueError as error:
        raise CaseError(f"'{spec}' {error}", where, case.path) from None


def load_numbers(directory, spec: str, shapes=None) -> np.ndarray:
    """All numbers of "file.csv", "file.npy" or "file.h5:dataset", float64; else ValueError.

    `shapes(shape)`, if given, refuses the shape of an array before it is read.
    """
    file, _, dataset = spec.rpartition(":") if ".h5:" in spec else (spec, "", "")
    path = directory / file
    if not isfile(path):
        raise ValueError(f"is missing: there is no file {path}; paths start at the case")
    if dataset:
        require_intact(path)
        with opened(path) as hdf5:
            return _numbers(_dataset(hdf5, path, dataset, "iuf"), shapes)
    elif file.endswith(".npy"):
        array = _map_npy(path)
    else:
        try:
            begins = path.read_text("utf-8").lstrip()[:1]
            names = begins.isalpha() or begins == '"'  # a first row of names
            return np.loadtxt(path, delimiter=",", skiprows=int(names), ndmin=2)
        except (ValueError, OSError) as error:
            raise ValueError(f"cannot be read as rows of numbers ({error})") from None
    return _numbers(array, shapes)


def _numbers(array, shapes) -> np.ndarray:
    """All of an array that is not read yet."""
    if array.dtype.kind not in "iuf":
        raise ValueError(f"has type {array.dtype}; save it as float64")
    if shapes:
        shapes(array.shape)
    if prod(array.shape) > MOST_NUMBERS:
        raise ValueError(f"has {prod(array.shape)} numbers; allowed: {MOST_NUMBERS} at most")
    return np.asarray(array[()], np.float64)


def _dataset(file, path, name: str, kinds: str):
    """A dataset of an open HDF5 file; the error for a missing one names those that exist."""
    found = values(file, name, kinds)
    if found is not None:
        return found
    names = dataset_names(file)
    more = ", …" if len(names) > 10 else ""
    listed = ", ".join(names[:10]) + more if names else "none"
    raise ValueError(f"is missing: {path.name} has no dataset '{name}'; it has {listed}")


def _map_npy(path) -> np.ndarray:
    """The array of a .npy file, mapped, not read; objects would need pickle and are refused."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, TypeError, OverflowError, OSError, TokenError) as error:
        if "Python objects" in str(error):
            raise ValueError("holds Python objects; save it as bool or uint8") from None
        raise ValueError(f"cannot be read as .npy ({error}); write it again") from None


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
    if not exists(path):
        raise ValueError("is missing: there is no such file; paths start at the case")
    require_intact(path)
    with _snapshot(path, dimensions):
        pass


def load_snapshot(path, shape, periodic, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """rho (n, rows, nx) and u (n, rows, nx, D) of the planes begin … end - 1, float64.

    If its size is not `shape` = (planes, rows, nx), the file is resampled: linearly along each
    axis between cell centres, which divide the box alike; across periodic faces, else constant
    beyond the outermost centres. Velocities stay as they are, in cells per step. Each plane comes
    from the file alone, so that no bit depends on how the box is cut.
    """
    D = len(periodic)
    with _snapshot(path, D) as cells:
        planes = [_resampled(cells, shape, periodic, plane) for plane in range(begin, end)]
    values = np.stack(planes)
    return values[..., 0], values[..., 1 : 1 + D]


@contextmanager
def _snapshot(path, dimensions: int):
    """The datasets rho and u of a snapshot by their names, checked but not read."""
    with opened(path) as file:
        cells = {name: values(file, f"VTKHDF/CellData/{name}", "f") for name in ("rho", "u")}
        missing = [name for name, found in cells.items() if found is None]
        if missing:
            raise ValueError(
                f"is no snapshot with rho and u: it has no {', '.join(missing)}; it has "
                f"{', '.join(dataset_names(file)) or 'no dataset'}; write a snapshot with "
                'fields = ["rho", "u"]'
            )
        size = snapshot_case(file)["domain"]["size"]
        if len(size) != dimensions:
            raise ValueError(
                f"has {len(size)} dimensions, the case {dimensions}; take another file"
            )
        for name, axes in (("rho", ()), ("u", (3,))):
            require_cells(cells[name], name, size, axes)
        yield cells


def snapshot_case(file) -> dict:
    """The tables of the case that an open snapshot has in it, at least a valid domain.size."""
    text = attribute(file, "mpilbm", "case", str)
    try:
        case = tomllib.loads(text)
        size = case["domain"]["size"]
        if len(size) in (2, 3) and all(type(n) is int and n > 0 for n in size):
            return case
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        pass
    raise ValueError("is no snapshot of mpilbm: its case has no domain.size; take another file")


def require_cells(field, name: str, size, axes: tuple[int, ...] = ()) -> None:
    """ValueError unless a field of a snapshot has values for all cells of a box."""
    wanted = (*(1,) * (3 - len(size)), *reversed(size), *axes)
    if field.shape != wanted:
        raise ValueError(
            f"is no snapshot of mpilbm: '{name}' has shape {field.shape}, its box wants {wanted}; "
            "take another file"
        )
    field.require_stored()


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
