"""Type of a field whose table selects a registered class: `collision = {name = "bgk", …}`."""

import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from mpilbm.core.files.toml_text import shown
from mpilbm.core.registry import UnknownName, find, names

NESTED = (
    1  # depth to which the schema describes a kind within itself, such as shapes made of shapes
)
_described: list[str] = []  # the kinds whose description is in progress


class Choice:
    """Annotation of a field that holds an object of one kind: Annotated[Shape, Choice("shapes")].

    The class that `name` selects validates the table with strict types: "3" and true are not
    numbers. Errors contain the key path in the whole file. The JSON schema lists every class.

    complete    returns a table with its `name`, where the user may leave it out
    name_alone  whether a name may stand for a table without other keys
    """

    def __init__(
        self,
        kind: str,
        complete: Callable[[Any], Any] | None = None,
        name_alone: bool = False,
    ):
        self.kind, self._complete, self.name_alone = kind, complete, name_alone

    def completed(self, table: Any) -> Any:
        """The table with a name, if one may be left out; other values unchanged."""
        if self.name_alone and isinstance(table, str):
            return {"name": table}
        return self._complete(table) if self._complete else table

    def __repr__(self) -> str:
        return f"one of the {self.kind}"

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.make)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict:
        if _described.count(self.kind) > NESTED:
            return {"type": "object", "required": ["name"]}
        _described.append(self.kind)
        try:
            return self._branches(handler)
        finally:
            _described.pop()

    def _branches(self, handler: GetJsonSchemaHandler) -> dict:
        branches: list[dict] = []
        for name in names(self.kind):
            branch = handler.resolve_ref_schema(
                handler(find(self.kind, name).__pydantic_core_schema__)
            )
            named = [] if self._complete else ["name"]
            branches.append(branch | {"required": [*named, *branch.get("required", ())]})
        if self.name_alone:
            branches.append({"enum": list(names(self.kind))})
        if self._complete:  # the table of a class may then have the form of another one's, too
            return {"anyOf": branches}
        return {"oneOf": branches} if len(branches) != 1 else branches[0]

    def make(self, table: object) -> Any:
        """The object described by the table {name = …, …}.

        Raises ValueError if it is not such a table, UnknownName if its name is not registered.
        """
        table = self.completed(table)
        if not isinstance(table, dict):
            raise ValueError(f"found {shown(table)}; allowed: a table; write {self._example()}")
        if "name" not in table:
            allowed = ", ".join(names(self.kind))
            raise ValueError(f"has no name; allowed: {allowed}; write {self._example()}")
        if not isinstance(table["name"], str):
            raise UnknownName(self.kind, table["name"], names(self.kind))
        # as JSON, for which the strict mode accepts lists as tuples
        return find(self.kind, table["name"]).model_validate_json(as_json(table), strict=True)

    def _example(self) -> str:
        """A table with the first name of the kind."""
        first, *_ = names(self.kind) or ("",)
        return f'{{name = "{first}"}}'


def choice(kind: str) -> Any:
    """The type Annotated[Any, Choice(kind)]."""
    return Annotated[Any, Choice(kind)]


def as_json(table: dict) -> str:
    """JSON of the values of a TOML file; dates become strings."""
    return json.dumps(table, default=str)
