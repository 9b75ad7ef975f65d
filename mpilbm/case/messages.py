"""Turns the validation errors of pydantic into messages with the key paths of the case file."""

import difflib
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError

from mpilbm.case.tables import LABEL
from mpilbm.case.tables.scalars import SCALAR_LABEL
from mpilbm.case.typed_keys import Kind, kind_at
from mpilbm.core.files import is_number
from mpilbm.core.printable import shown
from mpilbm.core.registry import Choice, UnknownName, names
from mpilbm.core.units import counted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

WANTED = {
    "greater_than": "> {gt}",
    "greater_than_equal": ">= {ge}",
    "less_than": "< {lt}",
    "less_than_equal": "<= {le}",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": 'a string in quotes, "…"',
    "tuple_type": "a list, […]",
    "list_type": "a list, […]",
    "model_type": "a table, {{key = value, …}}",
    "model_attributes_type": "a table, {{key = value, …}}",
    "dict_type": "a table, {{key = value, …}}",
    "literal_error": "{expected}",
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} or fewer entries",
    "string_too_long": "{max_length} or fewer characters",
}
EXAMPLES = {
    ("lattice",): '[lattice] with name = "D3Q19"',
    ("domain",): "[domain] with size = [64, 64, 64]",
    ("domain", "size"): "size = [64, 64, 64], cells along x, y, z",
    ("fluid",): "[fluid] with viscosity = 0.01",
    ("run",): "[run] with steps = 1000",
    ("run", "steps"): "steps = 1000",
    ("run", "steady", "tolerance"): "tolerance = 1e-6",
    ("units", "cell"): "cell = 0.001, metres",
}
LABELS = {
    LABEL: "letters, digits, _ and -, a letter first",
    SCALAR_LABEL: "letters, digits and _, a letter first",
}
NEAR = 0.6  # similarity of keys; with 0.5 "priority" is near "velocity"
MOST_PROBLEMS = 50  # reported together
PLACEHOLDERS = {float: "1.0", int: "1", str: '"…"', tuple: "[…]", list: "[…]", bool: "true"}


def sentences(error: ValidationError, tables: dict) -> list[str]:
    """One line per problem: key path, value found, allowed values."""
    lines, items = [], error.errors()
    for item in items[:MOST_PROBLEMS]:
        # pydantic adds a tag <…> for one of two forms, which is not a key
        keys = tuple(k for k in item["loc"] if not (isinstance(k, str) and k.startswith("<")))
        kind, context = item["type"], item.get("ctx", {})
        if kind == "too_short" and len(item["input"]) >= context["min_length"]:
            continue  # pydantic counts valid entries only; the invalid ones are reported
        if isinstance(context.get("error"), UnknownName):
            keys = (*keys, "name")
        lines.append(
            f"{key_path(tables, keys)}: {_sentence(item, keys, tables)}".removeprefix(": ")
        )
    if len(items) > MOST_PROBLEMS:
        lines.append(f"{len(items) - MOST_PROBLEMS} more problems; correct these first")
    return lines


def key_path(tables: dict, keys: tuple) -> str:
    """`body.ball.shape.radius`: entries of lists are named by label, or else by index."""
    parts: list[str] = []
    here: Any = tables
    for key in keys:
        here = _get(here, key)
        label = here.get("label") if isinstance(here, dict) and isinstance(key, int) else None
        parts.append(label if isinstance(label, str) and label else str(key))
    return ".".join(parts)


def _sentence(item: "ErrorDetails", keys: tuple, tables: dict) -> str:
    kind, context, found = item["type"], item.get("ctx", {}), item["input"]
    limits = {
        key: int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e15 else v
        for key, v in context.items()
    }
    table, content = kind_at(tables, keys[:-1])
    if kind == "extra_forbidden":
        return _unknown_key(str(keys[-1]), table)
    if kind == "missing" and isinstance(keys[-1], int):
        entries = get_args(table.hint)
        wanted = "more" if ... in entries else len(entries)
        return f"missing entry: found {counted(len(found), 'entry')}; allowed: {wanted}"
    if kind == "missing":
        hint = table.inner(content).get(keys[-1], table).hint
        return f"missing; write {EXAMPLES.get(keys) or f'{keys[-1]} = {_placeholder(hint)}'}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch" and context["pattern"] in LABELS:
        wanted = LABELS[context["pattern"]]
    else:
        wanted = WANTED.get(kind, item["msg"].removeprefix("Input should be ")).format(**limits)
    fix = ""
    if kind in ("int_type", "float_type") and isinstance(found, str) and is_number(found):
        fix = "; remove the quotes" + _missing_unit(keys, tables)
    if kind == "int_type" and isinstance(found, float) and found.is_integer():
        fix = f"; write {int(found)}"
    if kind == "greater_than" and keys[-1] == "viscosity":
        fix = "; tau = viscosity/cs2 + 1/2 must be above 1/2"
    return f"found {shown(found)}; allowed: {wanted}{fix}"


def _missing_unit(keys: tuple, tables: dict) -> str:
    quantity = kind_at(tables, keys)[0].quantity
    if quantity is None or not isinstance(tables.get("units"), dict):
        return ""
    return f' to give it in {quantity.unit}, or add its unit, such as "{quantity.examples[0]}"'


def _unknown_key(key: str, table: Kind) -> str:
    allowed = sorted(table.model.model_fields) if table.model else []
    if not allowed:
        return "unknown key; remove it"
    near = difflib.get_close_matches(key, allowed, 1, NEAR)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"unknown key; allowed: {', '.join(allowed)}{hint}"


def _placeholder(hint: Any) -> str:
    """An example of a value of this type: that of the first alternative of a union that has one."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        choice = next((note for note in inner[1:] if isinstance(note, Choice)), None)
        if choice is None:
            return _placeholder(inner[0])
        alone = " or ".join(f'"{name}"' for name in names(choice.kind) if choice.name_alone)
        return alone or "{…}"
    if origin in (Union, UnionType):
        return next((found for each in inner if (found := _placeholder(each)) != "{…}"), "{…}")
    return PLACEHOLDERS.get(type(inner[0]) if origin is Literal else origin or hint, "{…}")


def _get(data: Any, key: str | int) -> Any:
    try:
        return data[key]
    except (KeyError, IndexError, TypeError):
        return None
