"""Data of a case that files, arrays and functions contain: shapes, and values of boundaries.

Velocities and densities of boundaries are time series, planes of cells or functions.
"""

from functools import partial
from typing import Any

import numpy as np

from mpilbm.case.given.fluids import with_fields, with_initial_value
from mpilbm.case.model import Case
from mpilbm.case.scalars.model import Scalar
from mpilbm.case.tables.bodies import Body
from mpilbm.core.errors import CaseError
from mpilbm.core.files.input_arrays import load_numbers
from mpilbm.core.formulas.given_functions import GivenFunction, PointValue, is_reference, unknown
from mpilbm.core.formulas.values import Plane, Series, is_file
from mpilbm.model.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY
from mpilbm.physics.boundaries import Boundary, Condition
from mpilbm.physics.scalars.boundaries import ScalarBoundary


def resolved(case: Case) -> Case:
    """The case with the data that it names; CaseError for an invalid file, array or function."""
    boundaries = tuple(
        _read(case, boundary, f"boundary.{k}") for k, boundary in enumerate(case.boundaries)
    )
    bodies = tuple(_body(case, body) for body in case.bodies)
    fluids = tuple(with_fields(case, fluid) for fluid in case.fluids)
    scalars = tuple(_scalar(case, scalar) for scalar in case.scalars)
    found = {"boundaries": boundaries, "bodies": bodies, "fluids": fluids, "scalars": scalars}
    return case.model_copy(update=found)


def _scalar(case: Case, scalar: Scalar) -> Scalar:
    """The scalar with its initial values and those of its boundaries."""
    boundaries = tuple(
        _of_scalar(case, each, f"{scalar.key}.boundary.{k}")
        for k, each in enumerate(scalar.boundaries)
    )
    bodies = tuple(
        _of_scalar(case, each, f"body.{body.label}.scalar.{scalar.label}")
        for body, each in zip(case.bodies, scalar.bodies, strict=True)
    )
    initial = with_initial_value(case, scalar.initial)
    update = {"boundaries": boundaries, "bodies": bodies, "initial": initial}
    return scalar.model_copy(update=update)


def _of_scalar(case: Case, boundary: ScalarBoundary, where: str) -> ScalarBoundary:
    """The condition with values in place of the names of files, arrays and functions."""
    found: dict[str, Any] = {}
    for key in boundary.numbers:
        spec = getattr(boundary, key)
        try:
            if is_reference(spec):
                (found[key],) = _components(case, boundary, (spec,))
            elif isinstance(spec, str) and is_file(spec):
                (found[key],) = _of_file(case, boundary, spec, 1)
        except ValueError as error:
            raise CaseError(str(error), f"{where}.{key}", case.path) from None
    return boundary.model_copy(update=found)


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
    """The boundary with values in place of the names of files, arrays and functions."""
    for key, count in (("velocity", case.lattice.D), ("rho", 1)):
        spec = getattr(boundary, key, None)
        try:
            if isinstance(spec, tuple) and any(map(is_reference, spec)):
                value: Any = _components(case, boundary, spec)
            elif key == "rho" and is_reference(spec):
                (value,) = _components(case, boundary, (spec,))
                _require_density(value, "the array")
            elif isinstance(spec, str) and (key == "velocity" or is_file(spec)):
                values = _of_file(case, boundary, spec, count)
                value = values[0] if key == "rho" else values
                _require_density(value, f"'{spec}'")
            else:
                continue
        except ValueError as error:
            raise CaseError(str(error), f"{where}.{key}", case.path) from None
        boundary = boundary.model_copy(update={key: value})
    return boundary


def _of_file(
    case: Case, boundary: Condition, spec: str, count: int
) -> tuple[Series, ...] | tuple[Plane, ...]:
    """The components in a file; ValueError with its name."""
    try:
        if not is_file(spec):
            raise ValueError("is neither a list nor a file; allowed: a list of numbers and "
                             "formulas, or a file.csv, file.npy, file.h5:dataset")  # fmt: skip
        check = None if spec.endswith(".csv") else partial(_check_plane, case, boundary, count)
        return _values(load_numbers(case.directory, spec, check), spec, count)
    except ValueError as error:
        raise ValueError(f"'{spec}' {error}") from None


def _components(case: Case, boundary: Condition, spec: tuple) -> tuple:
    """The components of a velocity, or the density, some of which are arrays or functions."""
    found = tuple(_object(case, boundary, each) if is_reference(each) else each for each in spec)
    shapes = [each.values.shape for each in found if isinstance(each, Plane)]
    if not shapes:
        return found
    if any(isinstance(each, str | PointValue) for each in found):
        raise ValueError("has arrays and formulas or functions as components; allowed: arrays and "
                         "numbers; compute an array of them, too")  # fmt: skip
    numbers = (each if isinstance(each, Plane) else np.full(shapes[0], each) for each in found)
    return tuple(each if isinstance(each, Plane) else Plane(each) for each in numbers)


def _object(case: Case, boundary: Condition, text: str) -> Plane | PointValue:
    """The array or function of a reference, as the value of a boundary."""
    given = case.given.get(text)
    if given is None:
        raise ValueError(f"'{text}' {unknown(text)}")
    if isinstance(given.object, GivenFunction):
        return PointValue(given.object, given.component, given.count)
    array = np.asarray(given.object)
    try:
        if array.dtype.kind not in "iuf":
            raise ValueError(f"has type {array.dtype}; give float64")
        _check_plane(case, boundary, given.count, array.shape)
        if not np.isfinite(array).all():
            raise ValueError("contains values that are not finite; change the array")
    except ValueError as error:
        raise ValueError(f"the array {error}") from None
    values = array if given.component is None else array[..., given.component]
    return Plane(np.array(values, np.float64))


def _require_density(value: Any, what: str) -> None:
    """ValueError for a density out of range in the file or array `what`."""
    if not isinstance(value, Series | Plane):
        return
    if ((value.values < LEAST_DENSITY) | (value.values > LARGEST_DENSITY)).any():
        kind = what.split()[-1] if what.startswith("the ") else "file"
        raise ValueError(f"{what} contains a density out of range; allowed: {DENSITIES}; change "
                         f"the {kind}")  # fmt: skip


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


def _check_plane(case: Case, boundary: Condition, count: int, shape: tuple[int, ...]) -> None:
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
