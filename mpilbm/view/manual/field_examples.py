"""Example values of the keys of a case file."""

from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mpilbm.core.quantity import whole_type
from mpilbm.core.registry import Parameters, find, names
from mpilbm.view.manual.field_types import tables_in

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
    if kinds:
        return _example_of_kind(kinds[0], get_origin(of) is tuple)
    if isinstance(default, bool):
        return not default
    choices = [each for part in [of, *get_args(of)] if get_origin(part) is Literal
               for each in get_args(part)]  # fmt: skip
    if choices:
        return next(each for each in reversed(choices) if each != default)
    if isinstance(default, int | float | str) and default != "":
        return default
    if default == () and tables_in(of):
        return [example_table(tables_in(of)[0])]
    raise ValueError(f"{key}: the field has no default; give it examples=[…]")


def _example_of_kind(kind: str, array: bool) -> dict[str, Any] | list[dict[str, Any]]:
    table = example_table(find(kind, EXAMPLES.get(kind, names(kind)[0])))
    if array and kind == "boundaries":
        table |= {"where": ["y-", "y+"]}
    return [table] if array else table


def example_table(cls: type[Parameters]) -> dict:
    """The smallest table of a class: its name and its required keys."""
    fields = cls.model_fields
    table = {"name": fields["name"].default} if "name" in fields else {}
    for key, field in fields.items():
        if field.is_required():
            table[key] = example(key, field)
    return table
