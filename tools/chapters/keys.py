"""What the chapter "Case file" says of a key: tables, limits and allowed values, unit, example."""

import re
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mpilbm.case.tables import LABEL
from mpilbm.core.printable import inline
from mpilbm.core.quantity import Quantity, whole_type
from mpilbm.core.registry import Parameters, find, names

LIMITS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def tables_in(of: Any) -> list:
    """The models and kinds of the registry that a type names."""
    inner = get_args(of)
    if get_origin(of) is Annotated:
        kinds = [note.kind for note in inner[1:] if hasattr(note, "kind")]
        return kinds or tables_in(inner[0])
    if isinstance(of, type) and issubclass(of, Parameters):
        return [of]
    return [table for each in inner for table in tables_in(each)]


def quantity_of(of: Any) -> Quantity | None:
    """The quantity that a type holds, see mpilbm/core/quantity.py; None without one."""
    notes = get_args(of)[1:] if get_origin(of) is Annotated else ()
    own = next((note for note in notes if isinstance(note, Quantity)), None)
    parts = (quantity_of(each) for each in get_args(of)) if not tables_in(of) else ()
    return own or next((each for each in parts if each), None)


def code(text: str) -> str:
    """Text as code in a cell of a table, in which | separates; 1e-06 becomes 1e-6."""
    return f"`{re.sub(r'(?<=[0-9]e-)0(?=[0-9])', '', text)}`".replace("|", "\\|")


def holds_numbers(of: Any) -> bool:
    """Whether a type holds integers or numbers by itself, not in tables of their own."""
    if of in (int, float):
        return True
    if get_origin(of) is Literal:
        return any(type(each) in (int, float) for each in get_args(of))
    if tables_in(of):
        return False
    return any(holds_numbers(each) for each in get_args(of))


def allowed(field: FieldInfo) -> str:
    """The limits of a value, or the values of which it must be one."""
    return ", ".join(dict.fromkeys(_limits(whole_type(field))))


def _limits(of: Any) -> list[str]:
    origin, inner = get_origin(of), get_args(of)
    if origin is Literal:
        return [code(inline(each)) for each in inner]
    found = []
    if origin is Annotated:
        notes = [note for each in inner[1:] for note in getattr(each, "metadata", [each])]
        found = _limits_of_notes(notes)
    return found if tables_in(of) else found + [text for each in inner for text in _limits(each)]


def _limits_of_notes(notes: list) -> list[str]:
    found = []
    for note in notes:
        for word, sign in LIMITS.items():
            if getattr(note, word, None) is not None:
                found.append(code(f"{sign} {_number(getattr(note, word))}"))
        pattern = getattr(note, "pattern", None)
        if pattern == LABEL:
            found.append("letters, digits, `_` and `-`, a letter first")
        elif pattern:
            found.append(code(pattern))
    low, high = (
        next((n for note in notes if (n := getattr(note, word, None)) is not None), None)
        for word in ("min_length", "max_length")
    )
    if low or high:
        what = "characters" if high and high > 3 else "entries"
        one = f"at least {low}" if low else f"at most {high}"
        found.append(f"{f'{low} or {high}' if low and high else one} {what}")
    return found


def _number(value: float) -> str:
    """A limit, with large powers of two as such."""
    if isinstance(value, int) and value > 2**20 and value.bit_count() == 1:
        return f"2^{value.bit_length() - 1}"
    return f"{value:g}"


# Unit of a key in lattice units: u is cells/step; 1: a pure number; "": no number.
UNITS = {
    "Steady.tolerance": "1",
    "InitialTable.scale": "1",
    **dict.fromkeys((f"RandomFlow.{key}" for key in ("peak", "slope", "seed")), "1"),
    **dict.fromkeys(("Turbulence.intensity", "Turbulence.seed"), "1"),
    "Rotation.axis": "1",
    "ShanChen.psi": "",
    "Mesh.scale": "cells per unit of the file",
    "Spheres.scale": "cells per length unit of the file",
    "Voxels.solid": "",
    "Voxels.size": "voxels",
    "Strided.stride": "cells",
    "Picture.range": "of the field",
    "Isosurface.value": "of the field",
    "Isosurface.stride": "cells",
    "Voxels.crop": "voxels",
    "Voxels.coarsen": "1",
    "Voxels.refine": "1",
    "tau_phi": "steps",
    "Nusselt.difference": "units of the scalar",
    "BodyNumber.difference": "units of the scalar",
    "Conducting.capacity": "that of the fluid",
    **dict.fromkeys(("prandtl", "schmidt"), "1"),
    "relaxation": "1/step",
    **dict.fromkeys(("reynolds", "magic", "constant", "normal", "lift", "keep", "priority"), "1"),
    "index": "1",
    "exponent": "1",
    "Carreau.a": "1",
    "sample": "cells",
    **dict.fromkeys(("device", "platform", "order", "threads"), "1"),
    **dict.fromkeys(("G", "a", "kappa", "gamma"), "lattice units"),
}


RATES = re.compile(r"(omega|s)_\w+")  # relaxation rates, per step


def unit(cls: type[Parameters], key: str) -> str:
    """The unit of a key; KeyError if it holds numbers whose unit is unknown.

    That of its annotation, see mpilbm/core/quantity.py, or that of `UNITS`.
    """
    quantity = quantity_of(whole_type(cls.model_fields[key]))
    if quantity:
        return quantity.unit
    for base in cls.__mro__:
        if f"{base.__name__}.{key}" in UNITS:
            return UNITS[f"{base.__name__}.{key}"]
    if not holds_numbers(whole_type(cls.model_fields[key])):
        return ""
    return "1/step" if RATES.fullmatch(key) else UNITS[key]


# Kind of the registry -> the name that examples use; else the first one.
EXAMPLES = {
    "closures": "smagorinsky",
    "lattices": "D3Q19",
    "collisions": "trt",
    "forcing": "guo",
    "scalar_collisions": "trt",
    "scalar_boundaries": "value",
    "shapes": "sphere",
    "boundaries": "bounce_back",
    "layouts": "aa",
    "backends": "cuda",
    "halo": "staged",
    "outputs": "snapshot",
}


def example(key: str, field: FieldInfo) -> Any:
    """A value: the first of `examples`, else an allowed one other than the default."""
    if field.examples:
        return field.examples[0]
    of, default = field.annotation, field.get_default(call_default_factory=True)
    kinds = [table for table in tables_in(whole_type(field)) if isinstance(table, str)]
    for kind in kinds[:1]:
        table = _example_table(find(kind, EXAMPLES.get(kind, names(kind)[0])))
        if get_origin(of) is not tuple:
            return table
        return [table | {"where": ["y-", "y+"]} if kind == "boundaries" else table]
    if isinstance(default, bool):
        return not default
    literals = [part for part in (of, *get_args(of)) if get_origin(part) is Literal]
    for choice in reversed([each for part in literals for each in get_args(part)]):
        if choice != default:
            return choice
    if isinstance(default, int | float | str) and default != "":
        return default
    if default == () and tables_in(of):
        return [_example_table(tables_in(of)[0])]
    raise ValueError(f"{key}: the field has no default; give it examples=[…]")


def _example_table(cls: type[Parameters]) -> dict:
    """The smallest table of a class: its name and its required keys."""
    fields = cls.model_fields
    table = {"name": fields["name"].default} if "name" in fields else {}
    for key, field in fields.items():
        if field.is_required():
            table[key] = example(key, field)
    return table
