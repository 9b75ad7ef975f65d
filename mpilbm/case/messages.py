"""What pydantic finds wrong with a case file, as sentences with key paths of the TOML."""

import difflib
from functools import cache

from pydantic import ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

from mpilbm.case.tables import LABEL, schema
from mpilbm.registry import UnknownName
from mpilbm.system.toml_text import shown

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
    ("units", "density"): "density = 1000, kg/m^3 of rho = 1",
}
MOST_PROBLEMS = 50  # that are reported at a time
PLACEHOLDERS = {"number": "1.0", "integer": "1", "string": '"…"', "array": "[…]", "boolean": "true"}


def sentences(error: ValidationError, tables: dict) -> list[str]:
    """One line a problem: key path, what was found, what is allowed."""
    _whole_schema.cache_clear()  # a plug-in may have registered more since
    lines, items = [], error.errors()
    for item in items[:MOST_PROBLEMS]:
        # a tag that pydantic adds for a choice between two forms is no key
        keys = tuple(k for k in item["loc"] if not (isinstance(k, str) and k.startswith("<")))
        kind, context = item["type"], item.get("ctx", {})
        if kind == "too_short" and len(item["input"]) >= context["min_length"]:
            continue  # only counts what was right; the wrong entries are reported
        if isinstance(context.get("error"), UnknownName):
            keys = (*keys, "name")
        lines.append(
            f"{key_path(tables, keys)}: {_sentence(item, keys, tables)}".removeprefix(": ")
        )
    if len(items) > MOST_PROBLEMS:
        lines.append(f"{len(items) - MOST_PROBLEMS} more problems; correct these first")
    return lines


def key_path(tables: dict, keys: tuple) -> str:
    """`body.ball.shape.radius`: a list entry goes by its label if it has one, else its index."""
    parts, here = [], tables
    for key in keys:
        here = _get(here, key)
        label = here.get("label") if isinstance(here, dict) and isinstance(key, int) else None
        parts.append(label if isinstance(label, str) and label else str(key))
    return ".".join(parts)


def _sentence(item: dict, keys: tuple, tables: dict) -> str:
    kind, context, found = item["type"], item.get("ctx", {}), item["input"]
    limits = {key: _whole(value) for key, value in context.items()}
    if kind == "extra_forbidden":
        return _unknown_key(keys, tables)
    if kind == "missing":
        return f"missing; write {EXAMPLES.get(keys) or _example(keys, tables)}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch" and context["pattern"] == LABEL:
        wanted = "letters, digits, _ and -, a letter first"
    else:
        wanted = WANTED.get(kind, item["msg"].removeprefix("Input should be ")).format(**limits)
    mend = ""
    if kind in ("int_type", "float_type") and isinstance(found, str) and _is_number(found):
        mend = "; remove the quotes"
    if kind == "int_type" and isinstance(found, float) and found.is_integer():
        mend = f"; write {int(found)}"
    if kind == "greater_than" and keys[-1] == "viscosity":
        mend = "; tau = viscosity/cs2 + 1/2 must be above 1/2"
    return f"found {shown(found)}; allowed: {wanted}{mend}"


def _unknown_key(keys: tuple, tables: dict) -> str:
    """The sentence on a key that its table does not have."""
    allowed = sorted(_schema_at(keys[:-1], tables).get("properties", ()))
    if not allowed:
        return "unknown key; remove it"
    near = difflib.get_close_matches(str(keys[-1]), allowed, 1, 0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"unknown key; allowed: {', '.join(allowed)}{hint}"


def _example(keys: tuple, tables: dict) -> str:
    field = _schema_at(keys[:-1], tables).get("properties", {}).get(keys[-1], {})
    forms = [each.get("type") for each in (field, *field.get("oneOf", field.get("anyOf", ())))]
    found = next((PLACEHOLDERS[form] for form in forms if form in PLACEHOLDERS), "{…}")
    return f"{keys[-1]} = {found}"


def _schema_at(keys: tuple, tables: dict) -> dict:
    """The part of the JSON schema that belongs to a key path of these tables."""
    try:
        whole = _whole_schema()
    except PydanticInvalidForJsonSchema:  # a plugin's class has a field of an odd type
        return {}
    here, data = whole, tables
    for key in keys:
        here = here.get("items", {}) if isinstance(key, int) else here["properties"].get(key, {})
        data = _get(data, key)
        here = _variant(here, whole["$defs"], data)
    return here


@cache
def _whole_schema() -> dict:
    """The schema, which takes long to make, for all problems of a case."""
    return schema()


def _variant(here: dict, definitions: dict, data) -> dict:
    """Follow references, and among alternatives take that of the form or name of the data."""
    if "$ref" in here:
        return _variant(definitions[here["$ref"].rpartition("/")[2]], definitions, data)
    for alternative in here.get("oneOf", here.get("anyOf", ())):
        branch = _variant(alternative, definitions, data)
        form = {"array": list, "object": dict}.get(branch.get("type"), ())
        name = branch.get("properties", {}).get("name", {}).get("const")
        if isinstance(data, form) and name in (None, _get(data, "name")):
            return branch
    return here


def _get(data, key):
    try:
        return data[key]
    except (KeyError, IndexError, TypeError):
        return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _whole(value):
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return int(value) if whole else value
