"""Velocities and densities of boundaries from files: series of time, and planes of cells."""

from functools import partial

import numpy as np

from mpilbm.case.input_fields import load_numbers
from mpilbm.errors import CaseError
from mpilbm.formulas.values import Plane, Series, is_file
from mpilbm.verdicts.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY


def resolved(case):
    """The case with what its boundaries' files hold; CaseError names a file that does not fit."""
    boundaries = tuple(
        _read(case, boundary, f"boundary.{k}") for k, boundary in enumerate(case.boundaries)
    )
    bodies = tuple(
        body.model_copy(
            update={"boundary": _read(case, body.boundary, f"body.{body.label}.boundary")}
        )
        for body in case.bodies
    )
    return case.model_copy(update={"boundaries": boundaries, "bodies": bodies})


def _read(case, boundary, where: str):
    """A boundary whose values are no names of files."""
    for key, count in (("velocity", case.lattice.D), ("rho", 1)):
        spec = getattr(boundary, key, None)
        if not isinstance(spec, str) or (key == "rho" and not is_file(spec)):
            continue
        try:
            if not is_file(spec):
                raise ValueError("is no list and no file; allowed: numbers and formulas in a list, "
                                 "or a file.csv, file.npy, file.h5:dataset")  # fmt: skip
            shapes = None if spec.endswith(".csv") else partial(_check_plane, case, boundary, count)
            array = load_numbers(case.directory, spec, shapes)
            values = _values(array, spec, count)
            low, high = LEAST_DENSITY, LARGEST_DENSITY
            if key == "rho" and any(
                ((each.values < low) | (each.values > high)).any() for each in values
            ):
                raise ValueError(
                    f"holds a density outside the range; allowed: {DENSITIES}; change the file"
                )
        except ValueError as error:
            raise CaseError(f"'{spec}' {error}", f"{where}.{key}", case.path) from None
        value = values[0] if key == "rho" else values
        boundary = boundary.model_copy(update={key: value})
    return boundary


def _values(array, spec: str, count: int) -> tuple:
    """A Series or Plane for each component."""
    if not np.isfinite(array).all():
        raise ValueError("holds values that are not finite; change the file")
    if spec.endswith(".csv"):
        if array.ndim != 2 or array.shape[1] != 1 + count or (np.diff(array[:, 0]) <= 0).any():
            raise ValueError(f"is no series; allowed: rows of {1 + count} numbers, t (which grows "
                             "from row to row) and what is given then")  # fmt: skip
        return tuple(Series(array[:, 0], column) for column in array[:, 1:].T)
    array = array if count > 1 else array[..., None]
    return tuple(Plane(array[..., k]) for k in range(count))


def _check_plane(case, boundary, count: int, shape) -> None:
    """ValueError unless an array of this shape has a value for each cell of the faces."""
    if len({face[0] for face in boundary.where}) != 1:
        raise ValueError("is a plane of values, for one face or two opposite ones; allowed for "
                         "others and for bodies: a file.csv")  # fmt: skip
    for face in boundary.where:
        wanted = [n for a, n in zip("xyz", case.domain.size, strict=False) if a != face[0]][::-1]
        wanted = (*wanted, count) if count > 1 else tuple(wanted)
        if shape != wanted:
            raise ValueError(f"has shape {shape}, the face {face} wants {wanted}: slowest "
                             "axis first")  # fmt: skip
