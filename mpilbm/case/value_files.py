"""Data of a case that files contain: shapes of bodies, and values of boundaries.

Velocities and densities of boundaries are time series or planes of cells.
"""

from functools import partial

import numpy as np

from mpilbm.case.input_fields import load_numbers
from mpilbm.case.model import Case
from mpilbm.case.tables.bodies import Body
from mpilbm.errors import CaseError
from mpilbm.formulas.values import Plane, Series, is_file
from mpilbm.physics.boundaries import Boundary
from mpilbm.verdicts.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY


def resolved(case: Case) -> Case:
    """The case with the data of the files that it names; CaseError for an invalid file."""
    boundaries = tuple(
        _read(case, boundary, f"boundary.{k}") for k, boundary in enumerate(case.boundaries)
    )
    bodies = tuple(_body(case, body) for body in case.bodies)
    return case.model_copy(update={"boundaries": boundaries, "bodies": bodies})


def _body(case: Case, body: Body) -> Body:
    """The body with its resolved shape and the values of its boundary."""
    where = f"body.{body.label}"
    try:
        shape = body.shape and body.shape.resolved(case)
    except ValueError as error:
        raise CaseError(str(error), f"{where}.shape", case.path) from None
    boundary = _read(case, body.boundary, f"{where}.boundary")
    return body.model_copy(update={"shape": shape, "boundary": boundary})


def _read(case: Case, boundary: Boundary, where: str) -> Boundary:
    """The boundary with values in place of the names of files."""
    for key, count in (("velocity", case.lattice.D), ("rho", 1)):
        spec = getattr(boundary, key, None)
        if not isinstance(spec, str) or (key == "rho" and not is_file(spec)):
            continue
        try:
            if not is_file(spec):
                raise ValueError("is neither a list nor a file; allowed: a list of numbers and "
                                 "formulas, or a file.csv, file.npy, file.h5:dataset")  # fmt: skip
            check = None if spec.endswith(".csv") else partial(_check_plane, case, boundary, count)
            array = load_numbers(case.directory, spec, check)
            values = _values(array, spec, count)
            low, high = LEAST_DENSITY, LARGEST_DENSITY
            if key == "rho" and any(
                ((each.values < low) | (each.values > high)).any() for each in values
            ):
                raise ValueError(
                    f"contains a density out of range; allowed: {DENSITIES}; change the file"
                )
        except ValueError as error:
            raise CaseError(f"'{spec}' {error}", f"{where}.{key}", case.path) from None
        value = values[0] if key == "rho" else values
        boundary = boundary.model_copy(update={key: value})
    return boundary


def _values(array: np.ndarray, spec: str, count: int) -> tuple[Series, ...] | tuple[Plane, ...]:
    """A Series or Plane for each component."""
    if not np.isfinite(array).all():
        raise ValueError("contains values that are not finite; change the file")
    if spec.endswith(".csv"):
        if array.ndim != 2 or array.shape[1] != 1 + count or (np.diff(array[:, 0]) <= 0).any():
            raise ValueError(
                f"is not a time series; allowed: rows of {1 + count} numbers, t (which increases "
                "from row to row) and the values at that time"
            )
        return tuple(Series(array[:, 0], column) for column in array[:, 1:].T)
    array = array if count > 1 else array[..., None]
    return tuple(Plane(array[..., k]) for k in range(count))


def _check_plane(case: Case, boundary: Boundary, count: int, shape: tuple[int, ...]) -> None:
    """ValueError unless an array of this shape has a value for each cell of the faces."""
    if len({face[0] for face in boundary.where}) != 1:
        raise ValueError("is a plane of values, for one face or two opposite faces; allowed for "
                         "other faces and for bodies: a file.csv")  # fmt: skip
    for face in boundary.where:
        sides = [n for a, n in zip("xyz", case.domain.size, strict=False) if a != face[0]][::-1]
        wanted = (*sides, count) if count > 1 else tuple(sides)
        if shape != wanted:
            raise ValueError(f"has shape {shape}; allowed for the face {face}: {wanted}, slowest "
                             "axis first")  # fmt: skip
