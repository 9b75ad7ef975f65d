"""Data of a case that files, arrays and functions contain: shapes, and values of boundaries.

Velocities and densities of boundaries are time series, planes of cells or functions.
"""

from functools import partial
from typing import Any, TypeVar

import numpy as np

from mpilbm.case.given_fields import with_fields, with_initial_value
from mpilbm.case.model import Case, Scalar
from mpilbm.case.tables.case_file import Body
from mpilbm.core.errors import CaseError
from mpilbm.core.files.input_arrays import load_numbers
from mpilbm.core.formulas.given_functions import GivenFunction, PointValue, is_reference, unknown
from mpilbm.core.formulas.values import Plane, Series, is_file
from mpilbm.model.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY
from mpilbm.physics.boundaries import Boundary, Condition
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.solids.solid_cells import face_cells

AnyCondition = TypeVar("AnyCondition", bound=Condition)


def resolved(case: Case) -> Case:
    """The case with the data that it names; CaseError for an invalid file, array or function."""
    keys = {"velocity": case.lattice.D, "rho": 1}
    boundaries = [
        _read(case, each, f"boundary.{k}", keys) for k, each in enumerate(case.boundaries)
    ]
    bodies = tuple(_body(case, body, keys) for body in case.bodies)
    case = case.model_copy(update={"bodies": bodies})
    return case.model_copy(
        update={
            "boundaries": tuple(_turbulent(case, each) for each in boundaries),
            "fluids": tuple(with_fields(case, fluid) for fluid in case.fluids),
            "scalars": tuple(_scalar(case, scalar) for scalar in case.scalars),
        }
    )


def _turbulent(case: Case, boundary: Boundary) -> Boundary:
    """The boundary with the face of its turbulence, if it has some."""
    turbulence = getattr(boundary, "turbulence", None)
    if turbulence is None:
        return boundary
    velocity = getattr(boundary, "velocity", None)
    found = turbulence.resolved(case, boundary.where, velocity, partial(face_cells, case))
    return boundary.model_copy(update={"turbulence": found})


def _scalar(case: Case, scalar: Scalar) -> Scalar:
    def read(boundary: ScalarBoundary, where: str) -> ScalarBoundary:
        return _read(case, boundary, where, dict.fromkeys(boundary.numbers, 1))

    faces = enumerate(scalar.boundaries)
    bodies = zip(case.bodies, scalar.bodies, strict=True)
    return scalar.model_copy(
        update={
            "boundaries": tuple(read(each, f"{scalar.key}.boundary.{k}") for k, each in faces),
            "bodies": tuple(read(b, f"body.{n.label}.scalar.{scalar.label}") for n, b in bodies),
            "initial": with_initial_value(case, scalar.initial),
        }
    )


def _body(case: Case, body: Body, keys: dict[str, int]) -> Body:
    where = f"body.{body.label}"
    found: dict[str, Any] = {"boundary": _read(case, body.boundary, f"{where}.boundary", keys)}
    for key, part in (("shape", body.shape), ("motion", body.motion)):
        try:
            found[key] = part and part.resolved(case)
        except ValueError as error:
            raise CaseError(str(error), f"{where}.{key}", case.path) from None
    return body.model_copy(update=found)


def _read(case: Case, boundary: AnyCondition, where: str, keys: dict[str, int]) -> AnyCondition:
    """The condition with values in place of the names of files, arrays and functions.

    keys: the fields that may have such values, and their numbers of components.
    """
    found: dict[str, Any] = {}
    for key, count in keys.items():
        try:
            values = _values(case, boundary, getattr(boundary, key, None), count)
            if values and key == "rho":
                _require_density(values[0], getattr(boundary, key))
        except ValueError as error:
            raise CaseError(str(error), f"{where}.{key}", case.path) from None
        if values is not None:
            found[key] = values if count > 1 else values[0]
    return boundary.model_copy(update=found)


def _values(case: Case, boundary: Condition, spec: Any, count: int) -> tuple | None:
    """The components of a value, some of which are arrays or functions, or all are in a file.

    None for numbers and formulas.
    """
    parts = spec if isinstance(spec, tuple) else (spec,)
    if not any(map(is_reference, parts)):
        named = isinstance(spec, str) and (count > 1 or is_file(spec))
        return _of_file(case, boundary, spec, count) if named else None
    found = tuple(_object(case, boundary, each) if is_reference(each) else each for each in parts)
    shapes = [each.values.shape for each in found if isinstance(each, Plane)]
    if not shapes:
        return found
    if any(isinstance(each, str | PointValue) for each in found):
        raise ValueError(
            "has arrays and formulas or functions as components; allowed: arrays and numbers; "
            "compute an array of them, too"
        )
    return tuple(
        each if isinstance(each, Plane) else Plane(np.full(shapes[0], each)) for each in found
    )


def _of_file(case: Case, boundary: Condition, spec: str, count: int) -> tuple:
    """A Series or Plane for each component in a file; ValueError with its name."""
    try:
        if not is_file(spec):
            raise ValueError(
                "is neither a list nor a file; allowed: a list of numbers and formulas, or a "
                "file.csv, file.npy, file.h5:dataset"
            )
        series = spec.endswith(".csv")
        check = None if series else partial(_check_plane, case, boundary, count)
        array = load_numbers(case.directory, spec, check)
        if not np.isfinite(array).all():
            raise ValueError("contains values that are not finite; change the file")
        if not series:
            array = array if count > 1 else array[..., None]
            return tuple(Plane(array[..., k]) for k in range(count))
        if array.ndim != 2 or array.shape[1] != 1 + count or (np.diff(array[:, 0]) <= 0).any():
            raise ValueError(
                f"is not a time series; allowed: rows of {1 + count} numbers, t (which increases "
                "from row to row) and the values at that time"
            )
        return tuple(Series(array[:, 0], column) for column in array[:, 1:].T)
    except ValueError as error:
        raise ValueError(f"'{spec}' {error}") from None


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


def _require_density(value: Any, spec: str) -> None:
    if not isinstance(value, Series | Plane):
        return
    if ((value.values < LEAST_DENSITY) | (value.values > LARGEST_DENSITY)).any():
        what, kind = (f"'{spec}'", "file") if is_file(spec) else ("the array", "array")
        raise ValueError(
            f"{what} contains a density out of range; allowed: {DENSITIES}; change the {kind}"
        )


def _check_plane(case: Case, boundary: Condition, count: int, shape: tuple[int, ...]) -> None:
    """ValueError unless an array of this shape has a value for each cell of the faces."""
    if len({face[0] for face in boundary.where}) != 1:
        raise ValueError(
            "is a plane of values, for one face or two opposite faces; allowed for other faces "
            "and for bodies: a file.csv"
        )
    for face in boundary.where:
        sides = [n for a, n in zip("xyz", case.domain.size, strict=False) if a != face[0]][::-1]
        wanted = (*sides, count) if count > 1 else tuple(sides)
        if shape != wanted:
            raise ValueError(
                f"has shape {shape}; allowed for the face {face}: {wanted}, slowest axis first"
            )
