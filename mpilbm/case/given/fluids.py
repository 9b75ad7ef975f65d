"""Forces and initial fields of a fluid that are arrays, files or functions of all cells."""

from typing import Any

from mpilbm.case.given.cell_fields import ArrayField, CellField, FunctionField, file_field
from mpilbm.case.initial_fields import InitialFields
from mpilbm.case.model import Case, Fluid
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.given_functions import GivenFunction
from mpilbm.core.formulas.values import FieldValue, is_file
from mpilbm.model.given import is_reference, unknown


def with_fields(case: Case, fluid: Fluid) -> Fluid:
    """The fluid with fields in place of the names of files, arrays and functions.

    Raises CaseError for an array or file that has no value for each cell.
    """
    fields = _Fields(case)
    force, initial = fluid.force, fluid.initial
    if force is not None:
        value = fields.force(force.value, f"{case.key(fluid, 'force')}.value")
        force = force.model_copy(update={"value": value})
    u = tuple(fields.component(each, f"{initial.where}.u") for each in initial.u)
    rho = fields.component(initial.value, f"{initial.where}.rho")
    initial = initial.model_copy(update={"u": u, "value": rho})
    return fluid.model_copy(update={"force": force, "initial": initial})


def with_initial_value(case: Case, initial: InitialFields) -> InitialFields:
    """The initial values of a scalar, from a file, an array or a function if they name one."""
    fields, where, value = _Fields(case), f"{initial.where}.value", initial.value
    if isinstance(value, str) and is_file(value):
        found = fields.file(value, where)
    else:
        found = fields.component(value, where)
    return initial.model_copy(update={"value": found})


class _Fields:
    """Finds fields; the components of one object share a field."""

    def __init__(self, case: Case):
        self.case = case
        self.found: dict[int, CellField] = {}

    def force(self, value: Any, where: str) -> tuple:
        """The components of a force: a list, or the name of a file."""
        D = self.case.dimensions
        if not isinstance(value, str):
            return tuple(self.component(each, where) for each in value)
        try:
            if not is_file(value) or value.endswith(".csv"):
                raise ValueError("is neither a list nor an array; allowed: a list of numbers and "
                                 "formulas, or a file.npy, file.h5:dataset")  # fmt: skip
            field = file_field(value, self.case.directory, self._box(D, where))
        except ValueError as error:
            raise CaseError(f"'{value}' {error}", where, self.case.path) from None
        return tuple(FieldValue(field, k) for k in range(D))

    def file(self, name: str, where: str) -> FieldValue:
        """The number of each cell in a file."""
        try:
            if name.endswith(".csv"):
                raise ValueError("is a time series; allowed: a file.npy, file.h5:dataset")
            return FieldValue(file_field(name, self.case.directory, self._box(1, where)), 0)
        except ValueError as error:
            raise CaseError(f"'{name}' {error}", where, self.case.path) from None

    def component(self, value: Any, where: str) -> Any:
        """A number or formula as it is, or the field of a reference."""
        if not is_reference(value):
            return value
        given = self.case.given.get(value)
        if given is None:
            raise CaseError(f"'{value}' {unknown(value)}", where, self.case.path)
        if id(given.object) not in self.found:
            self.found[id(given.object)] = self._field(given, where)
        return FieldValue(self.found[id(given.object)], given.component or 0)

    def _field(self, given: Any, where: str) -> CellField:
        box = self._box(given.count, where)
        if isinstance(given.object, GivenFunction):
            scalar = given.component is None
            return FunctionField(**box, function=given.object, scalar=scalar)
        field = ArrayField(**box, array=given.object)
        try:
            field.require(given.object)
        except ValueError as error:
            raise CaseError(f"the array {error}", where, self.case.path) from None
        return field

    def _box(self, count: int, where: str) -> dict[str, Any]:
        """The fields of CellField."""
        case = self.case
        box = {"size": case.domain.size, "staggered": case.lattice.staggered}
        return box | {"count": count, "where": where, "path": case.path}
