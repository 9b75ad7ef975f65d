"""Type of a field whose table names a registered class: `collision = {name = "bgk", …}`."""

import json
from typing import Annotated, Any

from pydantic_core import core_schema

from mpilbm.registry import UnknownName, find, names
from mpilbm.system.toml_text import shown

NESTED = 1  # so deep does the schema describe a kind within itself, as shapes made of shapes
_described: list[str] = []  # the kinds that are being described


class Choice:
    """Annotation of a field that holds an object of one kind of the registry.

    A table is checked by the class that its `name` picks, with strict types: "3" or true is no
    number. Errors carry the key path of the whole file, and the JSON schema lists every class.
    """

    def __init__(self, kind: str):
        self.kind = kind

    def __repr__(self):
        return f"one of the {self.kind}"

    def __get_pydantic_core_schema__(self, source, handler):
        return core_schema.no_info_plain_validator_function(self.make)

    def __get_pydantic_json_schema__(self, schema, handler):
        if _described.count(self.kind) > NESTED:
            return {"type": "object", "required": ["name"]}
        _described.append(self.kind)
        try:
            return self._branches(handler)
        finally:
            _described.pop()

    def _branches(self, handler):
        branches = []
        for name in names(self.kind):
            branch = handler.resolve_ref_schema(
                handler(find(self.kind, name).__pydantic_core_schema__)
            )
            branches.append(branch | {"required": ["name", *branch.get("required", ())]})
        return {"oneOf": branches} if len(branches) != 1 else branches[0]

    def make(self, table):
        """The object that the table {name = …, …} describes; ValueError, UnknownName if none."""
        allowed = names(self.kind)
        example = f'{{name = "{allowed[0] if allowed else ""}"}}'
        if not isinstance(table, dict):
            raise ValueError(f"found {shown(table)}; allowed: a table; write {example}")
        if "name" not in table:
            raise ValueError(f"has no name; allowed: {', '.join(allowed)}; write {example}")
        if not isinstance(table["name"], str):
            raise UnknownName(self.kind, table["name"], allowed)
        # as JSON: there the strict mode takes lists for tuples
        return find(self.kind, table["name"]).model_validate_json(as_json(table), strict=True)


def choice(kind: str):
    """The type Annotated[Any, Choice(kind)]."""
    return Annotated[Any, Choice(kind)]


def as_json(table: dict) -> str:
    """JSON of what a TOML file holds; dates become strings."""
    return json.dumps(table, default=str)
