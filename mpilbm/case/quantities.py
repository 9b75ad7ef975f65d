"""Quantities of a case in lattice units: "1e-6 m^2/s" becomes a number.

The annotation of a field says which quantities it accepts, see mpilbm/core/quantity.py. A number
without a unit is in lattice units (in [units] in SI).
"""

from math import inf, isfinite
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from mpilbm.case.tables.case_file import CaseFile
from mpilbm.case.tables.scales import UnitsTable
from mpilbm.case.unit_texts import UnitError, in_si, in_words, parts
from mpilbm.core.files.toml_text import shown
from mpilbm.core.quantity import Form, Quantity, whole_type
from mpilbm.core.registry import Choice, Parameters, UnknownName, find
from mpilbm.core.units import VISCOSITY, Units
from mpilbm.model.findings import NOTE, WARNING, Finding

LATTICE = whole_type(CaseFile.model_fields["lattice"])
ROUNDED = 0.01  # relative change of a number of cells or steps by rounding above which it warns
NOTED = 1e-6  # and above which it is noted
NO_UNITS = (
    ", but the case has no [units]; add [units] with cell = 0.001 (m), step = 1e-4 (s), "
    "density = 1000 (kg/m^3)"
)
INSTEAD = 1e-3  # of a wrong quantity, so that the other problems can be reported
ADVICE = (
    "; choose [units] and the length or time such that it is a whole number, or give the number"
)


def in_lattice_units(tables: dict) -> tuple[dict, list[str], list[Finding]]:
    """The tables of a case in lattice units, the problems, and findings on rounded numbers."""
    reading = Reading(None, 1 / 3)
    found = dict(tables)
    if "units" in tables:
        found["units"] = reading.of(tables["units"], UnitsTable, "units")
        reading.units, found = _units(found)
        reading.invalid_units = reading.units is None or bool(reading.problems)
    lattice, _ = selected(tables.get("lattice"), LATTICE, None)
    reading.cs2 = float(getattr(lattice, "cs2", 1 / 3))
    reading.coupled = "coupling" in tables
    reading.capacities = _capacities(tables.get("scalar"))
    rest = {key: value for key, value in found.items() if key != "units"}
    found = {key: found[key] for key in found if key == "units"}
    return found | reading.of(rest, CaseFile, ""), reading.problems, reading.findings


def _capacities(scalars: Any) -> dict[str, float]:
    """The heat capacities of the scalars that have one, by number and by label."""
    found: dict[str, float] = {}
    for number, table in enumerate(scalars if isinstance(scalars, list) else ()):
        given = table.get("heat_capacity") if isinstance(table, dict) else None
        try:
            text = parts(given)
            value = in_si(*text)[0] if text else given
        except UnitError:  # reported with the other keys
            continue
        if isinstance(value, int | float) and 0 < value < inf:
            found |= {f"scalar.{number}": float(value), str(table.get("label")): float(value)}
    return found


def units_of(tables: dict) -> Units | None:
    """The units of the tables of a case in lattice units; None without valid [units]."""
    try:
        return UnitsTable.model_validate(tables["units"]).checked()
    except (KeyError, ValueError):
        return None


def _units(tables: dict) -> tuple[Units | None, dict]:
    """The units of [units], None if they are invalid, and the tables with its fluid's viscosity."""
    try:
        table = UnitsTable.model_validate(tables["units"])
    except ValueError:  # reported with the other keys
        if isinstance(tables["units"], dict) and "fluid" in tables["units"]:
            tables = {"fluid": {"viscosity": INSTEAD}} | tables
        return None, tables
    units, fluid = table.checked(), tables.get("fluid", {})
    nu = table.kinematic_viscosity
    given = {"viscosity", "reynolds", "length", "velocity"}
    if nu is not None and isinstance(fluid, dict) and not given & set(fluid):
        tables = tables | {"fluid": fluid | {"viscosity": units.to_lattice(nu, VISCOSITY)}}
    return units, tables


class Reading:
    """Converts values by the annotations of their fields; collects problems and findings."""

    def __init__(self, units: Units | None, cs2: float):
        self.units, self.cs2, self.coupled = units, cs2, False
        self.capacities: dict[str, float] = {}  # see _capacities
        self.invalid_units = False  # then quantities are not converted
        self.problems: list[str] = []
        self.findings: list[Finding] = []

    def of(self, value: Any, kind: Any, path: str, quantity: Quantity | None = None) -> Any:
        """A value of the type `kind` at a key path, and all values in it, in lattice units."""
        kind, quantity = selected(value, kind, quantity)
        if isinstance(value, dict):
            types, inner = fields_of(value, kind), quantity if get_origin(kind) is dict else None
            return {
                key: self.of(each, types.get(key, Any), f"{path}.{key}".lstrip("."), inner)
                for key, each in value.items()
            }
        if isinstance(value, list):
            entry = (*get_args(kind), Any)[0]
            return [self.of(v, entry, f"{path}.{k}", quantity) for k, v in enumerate(value)]
        given = parts(value) if quantity and fits(value, kind) else None
        if given is None or quantity is None:
            return value
        whole = kind is int
        try:
            found = self._number(*given, quantity, path)
            if found is not None:
                return self._whole(found, value, path) if whole else found
        except UnitError as error:
            self.problems.append(f"{path}: found {shown(value)}{error}")
        return 1 if whole else INSTEAD

    def _number(self, number: float, unit: str, quantity: Quantity, path: str) -> float | None:
        """A number with a unit as the number of a case; None if [units] is invalid.

        Raises UnitError.
        """
        examples = " or ".join(f'"{example}"' for example in quantity.examples)
        try:
            value, dimension = in_si(number, unit)
        except UnitError as error:
            raise UnitError(f": {error}; write it as {examples}") from None
        form = next((form for form in quantity.forms if form.dimension == dimension), None)
        if form is None:
            raise UnitError(
                f", of unit {in_words(dimension)}; allowed: the unit of {examples}, or a number "
                f"in {quantity.unit}"
            )
        return self._converted(form, value / self._capacity(path) if form.of_heat else value)

    def _capacity(self, path: str) -> float:
        """The heat capacity of the scalar at a key path: scalar.0.… or body.0.scalar.T.…"""
        table, number, *rest = path.split(".")
        key = f"scalar.{number}" if table == "scalar" else (*rest, "", "")[1]
        if key not in self.capacities:
            raise UnitError(
                ", a quantity of heat, and the scalar has no heat_capacity; add heat_capacity = "
                '"4.18e6 J/(m^3 K)" to [[scalar]]'
            )
        return self.capacities[key]

    def _converted(self, form: Form, value: float) -> float | None:
        if self.invalid_units and not form.absolute:
            return None
        if self.units is None and not form.absolute:
            raise UnitError(NO_UNITS)
        if form.one_fluid and self.coupled:
            raise UnitError(
                ", a pressure; allowed with [coupling]: a density, since the pressure of coupled "
                "fluids is not cs2 rho"
            )
        found = form.convert(value, self.units or Units(1, 1, 1), self.cs2)
        if not isfinite(found):
            raise UnitError(
                f", which is {found:g} in lattice units; allowed: finite numbers; change it or "
                "[units]"
            )
        return found

    def _whole(self, number: float, text: str, path: str) -> int:
        """The nearest integer; numbers between 0 and 1 are refused, large changes are reported."""
        if 0 < abs(number) < 1 - NOTED:
            raise UnitError(
                f", which is {number:.3g} in lattice units; allowed: 1 or more; change it or "
                "[units]"
            )
        found = round(number)
        change = abs(found - number) / abs(number or 1)
        if change > NOTED:
            self.findings.append(
                Finding(
                    WARNING if change > ROUNDED else NOTE,
                    path,
                    f"found {shown(text)}, which is {number:.6g} and is rounded to {found}, a "
                    f"change of {change:.2g}{ADVICE if change > ROUNDED else ''}",
                )
            )
        return found


def quantity_at(tables: dict, keys: tuple) -> Quantity | None:
    """The quantity that the field at a key path holds, None if it holds none."""
    value: Any = tables
    kind: Any = CaseFile
    quantity: Quantity | None = None
    for key in keys:
        kind, quantity = selected(value, kind, quantity)
        if isinstance(value, dict):
            quantity = quantity if get_origin(kind) is dict else None
            kind = fields_of(value, kind).get(key, Any)
        else:
            kind = (*get_args(kind), Any)[0]
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return selected(value, kind, quantity)[1]


def selected(value: Any, kind: Any, quantity: Quantity | None) -> tuple[Any, Quantity | None]:
    """The type of a value without annotations and unions, and the quantity that it holds."""
    while get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        for note in notes:
            if isinstance(note, Quantity):
                quantity = note
            if isinstance(note, Choice):
                return _named(note.kind, note.completed(value)), None
    if get_origin(kind) in (Union, UnionType):
        each = [selected(value, one, quantity) for one in get_args(kind)]
        return next((one for one in each if fits(value, one[0])), (Any, quantity))
    return kind, quantity


def _named(kind: str, value: Any) -> Any:
    """The class of a kind that a table selects; Any if it selects none, which others report."""
    name = value.get("name") if isinstance(value, dict) else None
    try:
        return find(kind, name) if isinstance(name, str) else Any
    except UnknownName:
        return Any


def fits(value: Any, kind: Any) -> bool:
    """Whether a value of a TOML file can be of a type; a text can replace a number."""
    if isinstance(value, dict):
        return get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, Parameters))
    if isinstance(value, list):
        return get_origin(kind) in (tuple, list)
    return kind in (int, float, str)


def fields_of(value: dict, kind: Any) -> dict[str, Any]:
    """The types of the values of a table by key."""
    if get_origin(kind) is dict:
        return dict.fromkeys(value, get_args(kind)[1])
    if isinstance(kind, type) and issubclass(kind, Parameters):
        types = {key: whole_type(field) for key, field in kind.model_fields.items()}
        own = kind.quantities(value)
        types |= {key: Annotated[types[key], quantity] for key, quantity in own.items()}
        more = get_args(kind.__annotations__.get("__pydantic_extra__", Any))
        return (dict.fromkeys(value, more[1]) if more else {}) | types
    return {}
