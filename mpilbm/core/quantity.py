"""Annotations of fields that hold a physical quantity, so that a case may give it with a unit.

    radius: Annotated[float, LENGTH] = Field(gt=0, description="radius")

With [units] the key then accepts "25 mm" besides a number of cells. The annotation may be around
any type of numbers: tuples, `Value`, `GivenVector`, `int | None`. Values of an integer are rounded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import degrees
from typing import Annotated, Any

from pydantic import GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from mpilbm.core import units as si
from mpilbm.core.units import Dimension, Units

# A number and a unit that begins with a letter or 1/; no formula and no name of a file has this
# form. Powers have one digit before the point.
NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\d+\.(?=\s)|\.\d+)(?:[eE][-+]?\d+)?"
SYMBOL = r"[A-Za-zµμΩ°]+"
POWER = r"(?:(?:\^|\*\*)-?\d(?:\.\d{1,6})?|⁻?[¹²³])"
FACTOR = rf"\(*{SYMBOL}{POWER}?\)*"
UNIT = rf"(?:1\s*/\s*)?{FACTOR}(?:(?:\s*[*/·]\s*|\s+){FACTOR})*"
QUANTITY = rf"\s*({NUMBER})(?:\s+|(?![eE]))({UNIT})\s*"

NO_DIMENSION, RATE, TEMPERATURE = (0, 0, 0), (0, -1, 0), (0, 0, 0, 1)
DYNAMIC_VISCOSITY, ACCELERATION = (-1, -1, 1), (1, -2, 0)


@dataclass(frozen=True)
class Form:
    """A dimension in which a quantity may be given, and its conversion to the number of the case.

    `convert(value, units, cs2)` gets the value in SI. `absolute` forms need no [units]. Forms that
    use cs2, such as a pressure in place of a density, are invalid for coupled fluids (`one_fluid`).
    `of_heat` forms are divided by the `heat_capacity` of the scalar before they are converted.
    """

    dimension: Dimension
    convert: Callable[[float, Units, float], float]
    absolute: bool = False
    one_fluid: bool = False
    of_heat: bool = False


@dataclass(frozen=True)
class Quantity:
    """Annotation of a field: its lattice unit for the manual, examples with units, and its forms.

    `examples` has one text for each form.
    """

    unit: str
    examples: tuple[str, ...]
    forms: tuple[Form, ...]

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The schema of the field, in which a text with a unit may replace each number."""
        return _with_texts(handler(schema))


def _with_texts(part: Any) -> Any:
    """A JSON schema that allows quantities in place of its numbers."""
    if isinstance(part, list):
        return [_with_texts(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") in ("number", "integer"):
        about = {key: part[key] for key in ("description", "examples", "default") if key in part}
        bare = {key: value for key, value in part.items() if key not in about}
        return {"anyOf": [bare, {"type": "string", "pattern": f"^{QUANTITY}$"}], **about}
    found = dict(part)
    for name in ("items", "prefixItems", "additionalProperties"):
        if name in part:
            found[name] = _with_texts(part[name])
    # not oneOf: a number with a unit also matches as a formula
    choices = found.pop("oneOf", None) or found.pop("anyOf", None)
    if choices:
        each = [_with_texts(choice) for choice in choices]
        found["anyOf"] = [form for one in each for form in one.get("anyOf", [one])]
    return found


def _lattice(dimension: Dimension, per_capacity: Dimension | None = None) -> Form:
    """A quantity in lattice units; of heat, in those of the quantity over the heat capacity."""
    kept, heat = per_capacity or dimension, per_capacity is not None
    return Form(dimension, lambda value, units, _: units.to_lattice(value, kept), of_heat=heat)


def _over_density(dimension: Dimension, kinematic: Dimension) -> Form:
    """A quantity that is divided by the density of the fluid, as a dynamic viscosity."""
    return Form(dimension, lambda mu, units, _: units.to_lattice(mu / units.density, kinematic))


def _quantity(unit: str, example: str, dimension: Dimension) -> Quantity:
    return Quantity(unit, (example,), (_lattice(dimension),))


def in_si(unit: str, example: str, dimension: Dimension) -> Quantity:
    """A field whose number is not in lattice units: a time of a clock in s, a value of a scalar."""
    return Quantity(unit, (example,), (Form(dimension, lambda value, *_: value, absolute=True),))


def _pressure(rest: float) -> Form:
    """Rho of a pressure p relative to that at rest: rest + p / cs2, in lattice units."""
    return Form(
        si.PRESSURE,
        lambda p, units, cs2: rest + units.to_lattice(p, si.PRESSURE) / cs2,
        one_fluid=True,
    )


LENGTH = _quantity("cells", "25 mm", si.LENGTH)
AREA = _quantity("cells^2", "2 cm^2", si.AREA)
STEPS = _quantity("steps", "1.5 s", si.TIME)
VELOCITY = _quantity("cells/step", "0.2 m/s", si.VELOCITY)
SPEED_SQUARED = _quantity("cells^2/step^2", "0.01 m^2/s^2", (2, -2, 0))
ANGULAR_VELOCITY = _quantity("rad/step", "300 rpm", RATE)
ACCELERATED = Form(  # a force per volume: acceleration times the density of the fluid at rest
    ACCELERATION, lambda g, units, _: units.to_lattice(g, ACCELERATION)
)
VISCOSITY = Quantity(
    "cells^2/step",
    ("1e-6 m^2/s", "1 mPa s"),
    (_lattice(si.VISCOSITY), _over_density(DYNAMIC_VISCOSITY, si.VISCOSITY)),
)
STRESS = _quantity("rho_0 cells^2/step^2", "5 Pa", si.PRESSURE)


def consistency(index: float) -> Quantity:
    """K of a stress K gamma^index: in Pa s^index, or divided by the density of the fluid."""
    kinematic, dynamic = (2, round(index - 2, 6), 0), (-1, round(index - 2, 6), 1)
    return Quantity(
        "cells^2 step^(index - 2)",
        (f"0.5 Pa s^{index:g}", f"5e-4 m^2 s^{index - 2:g}"),
        (_over_density(dynamic, kinematic), _lattice(kinematic)),
    )


RHO = Quantity("rho_0", ("998 kg/m^3", "20 Pa"), (_lattice(si.DENSITY), _pressure(1)))
RHO_JUMP = Quantity("rho_0", ("0.5 kg/m^3", "20 Pa"), (_lattice(si.DENSITY), _pressure(0)))
FORCE_DENSITY = Quantity(
    "rho_0 cells/step^2", ("9810 N/m^3", "9.81 m/s^2"), (_lattice(si.FORCE_DENSITY), ACCELERATED)
)
GRAVITY = Quantity("cells/step^2", ("9.81 m/s^2",), (ACCELERATED,))
DIFFUSIVITY = _quantity("cells^2/step", "1.4e-7 m^2/s", si.VISCOSITY)
IN_DEGREES = Form(NO_DIMENSION, lambda angle, *_: degrees(angle), absolute=True)
IN_RADIANS = Form(NO_DIMENSION, lambda angle, *_: angle, absolute=True)
RADIANS = Quantity("rad", ("30 deg",), (IN_RADIANS,))
ANGLE = Quantity("degrees", ("30 deg",), (IN_DEGREES,))
WETTING = Quantity(
    "rho_0, or degrees", ("998 kg/m^3", "60 deg"), (_lattice(si.DENSITY), IN_DEGREES)
)
# Of scalars, which have units of their own: here kelvins. Those of heat are divided by the heat
# capacity of a volume.
KELVIN = in_si("units of the scalar", "300 K", TEMPERATURE)
EXPANSION = in_si("1 / unit of the scalar", "3.4e-3 1/K", (0, 0, 0, -1))
SCALAR_FLUX = Quantity(
    "units of the scalar, times cells/step",
    ("0.01 K m/s", "100 W/m^2"),
    (_lattice((1, -1, 0, 1)), _lattice((0, -3, 1), si.VELOCITY)),
)
TRANSFER = Quantity(
    "cells/step",
    ("1e-5 m/s", "10 W/(m^2 K)"),
    (_lattice(si.VELOCITY), _lattice((0, -3, 1, -1), si.VELOCITY)),
)
SCALAR_SOURCE = Quantity(
    "units of the scalar per step",
    ("0.5 K/s", "1e5 W/m^3"),
    (_lattice((0, -1, 0, 1)), _lattice((-1, -3, 1), RATE)),
)
HEAT_CAPACITY = in_si("J/(m^3 K)", "4.18e6 J/(m^3 K)", (-1, -2, 1, -1))
SECONDS = in_si("s", "2 h", si.TIME)
CELSIUS = Quantity(
    "degC", ("20 degC",), (Form(TEMPERATURE, lambda T, *_: T - 273.15, absolute=True),)
)


def whole_type(field: FieldInfo) -> Any:
    """The annotation of a field with its metadata."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


SOLID_DENSITY = _quantity("rho_0", "1120 kg/m^3", si.DENSITY)


def _of_body(unit: str, symbol: str, metres: int, seconds: int) -> Quantity:
    """A quantity of a body in kg m^n s^k; in 2D per length, with a metre less."""
    dimensions = [(metres, seconds, 1), (metres - 1, seconds, 1)]
    texts = (f"5 {symbol}", f"5 {symbol}/m")
    return Quantity(unit, texts, tuple(map(_lattice, dimensions)))


SPRING = _of_body("rho_0 cells^3/step^2; 2D: cells^2", "N/m", 0, -2)
DAMPER = _of_body("rho_0 cells^3/step; 2D: cells^2", "kg/s", 0, -1)
TORSION = _of_body("rho_0 cells^5/step^2; 2D: cells^4", "N m", 2, -2)
FRICTION = _of_body("rho_0 cells^5/step; 2D: cells^4", "N m s", 2, -1)
