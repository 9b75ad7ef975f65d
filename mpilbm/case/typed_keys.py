"""The keys of a case: overrides such as `--set a.1.b=value`, types of values, present names.

Quantities, earlier names and messages all use the walk of this module. It follows the annotations
of `CaseFile`, and those of the registered class that the `name` of a table selects.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from mpilbm.case.tables.case_file import CaseFile
from mpilbm.core.quantity import Quantity, whole_type
from mpilbm.core.registry import Choice, Parameters, UnknownName, find
from mpilbm.model.findings import NOTE, Finding


def override(tables: dict, settings: Sequence[str] | Mapping[str, Any]) -> tuple[dict, list[str]]:
    """A copy of the tables with the settings applied in order, and the problems of the settings.

    `settings`: texts `key.path=value`, or {"key.path": value}.

    An entry of a list is named by its index from 0 or by its label; the index after the last one
    appends an entry. Missing tables are created.
    """
    tables, problems = _copied(tables), list[str]()
    lead = "override" if isinstance(settings, Mapping) else "--set"
    for setting in settings:
        try:
            if not isinstance(setting, str):
                raise ValueError("is not a text; write the key path as 'run.steps'")
            if isinstance(settings, Mapping):
                path, value = setting, settings[setting]
            else:
                path, equals, text = setting.partition("=")
                if not equals or not path.strip():
                    raise ValueError("is not key=value; write for example --set run.steps=100")
                value = _value(text)
            _set(tables, path.strip().split("."), value)
        except ValueError as error:
            problems.append(f"{lead} {setting}: {error}")
    return tables, problems


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value


def _value(text: str) -> Any:
    """The value of a TOML text; the text itself if it is not TOML."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the value is not UTF-8") from None
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def _set(tables: dict, parts: list[str], value: Any) -> None:
    """Set a value in the table or list at the path `parts`; creates missing tables and lists."""
    here: Any = tables
    for depth, part in enumerate(parts):
        last = depth + 1 == len(parts)
        new: list | dict = [] if not last and parts[depth + 1].isdigit() else {}
        key: str | int = part
        if not part:
            raise ValueError("a part of the path is empty; write a.b.c=value")
        if isinstance(here, list):
            key = _index(here, part, ".".join(parts[:depth]))
            if key == len(here):
                here.append(new)
        elif not isinstance(here, dict):
            found = ".".join(parts[:depth])
            raise ValueError(f"'{found}' is {here!r}, not a table or list; set '{found}' itself")
        if last:
            here[key] = value
        else:
            here = here.setdefault(key, new) if isinstance(here, dict) else here[key]


def _index(entries: list, part: str, path: str) -> int:
    """The index of an entry, named by its index (up to the length of the list) or its label."""
    labels = [entry.get("label") if isinstance(entry, dict) else None for entry in entries]
    if part in labels:
        return labels.index(part)
    if not part.isdecimal() or not part.isascii() or int(part) > len(entries):
        count = len(entries)
        named = "".join(f", '{label}'" for label in labels if label)
        have = f"0 to {count - 1}" if count > 1 else "0" if count else "none yet"
        raise ValueError(
            f"'{path}' has no entry '{part}'; allowed: {have}{named}; {count} appends one"
        )
    return int(part)


class Kind(NamedTuple):
    """The type of a value without annotations and unions, and the quantity that it holds."""

    hint: Any
    quantity: Quantity | None = None

    @property
    def is_dict(self) -> bool:
        """Whether it is a table whose keys are labels."""
        return get_origin(self.hint) is dict

    @property
    def model(self) -> type[Parameters] | None:
        """The class of a table with fixed keys; None for other values."""
        is_model = isinstance(self.hint, type) and issubclass(self.hint, Parameters)
        return self.hint if is_model else None

    def inner(self, value: Any) -> dict[Any, "Kind"]:
        """The kinds of the entries of a table or list, before unions are resolved."""
        if isinstance(value, list):
            return dict.fromkeys(
                range(len(value)), Kind((*get_args(self.hint), Any)[0], self.quantity)
            )
        types: dict[str, Any] = {}
        if self.is_dict:
            types = dict.fromkeys(value, get_args(self.hint)[1])
        elif self.model:
            types = {key: whole_type(field) for key, field in self.model.model_fields.items()}
            own = self.model.quantities(value)
            types |= {key: Annotated[types[key], quantity] for key, quantity in own.items()}
            more = get_args(self.model.__annotations__.get("__pydantic_extra__", Any))
            types = (dict.fromkeys(value, more[1]) if more else {}) | types
        return {k: Kind(t, self.quantity if self.is_dict else None) for k, t in types.items()}

    def fits(self, value: Any) -> bool:
        """Whether a value of a TOML file can be of this type; a text can replace a number."""
        if isinstance(value, dict):
            return self.is_dict or self.model is not None
        if isinstance(value, list):
            return get_origin(self.hint) in (tuple, list)
        return self.hint in (int, float, str)


def resolved(value: Any, kind: Kind) -> Kind:
    """The kind of this value: of a union the first type that fits, of a choice the named class."""
    while get_origin(kind.hint) is Annotated:
        kind, notes = Kind(get_args(kind.hint)[0], kind.quantity), get_args(kind.hint)[1:]
        for note in notes:
            if isinstance(note, Quantity):
                kind = Kind(kind.hint, note)
            if isinstance(note, Choice):
                return Kind(_named(note.kind, note.completed(value)))
    if get_origin(kind.hint) in (Union, UnionType):
        each = [resolved(value, Kind(one, kind.quantity)) for one in get_args(kind.hint)]
        return next((one for one in each if one.fits(value)), Kind(Any, kind.quantity))
    return kind


def _named(kind: str, value: Any) -> Any:
    """The class of a kind that a table selects; Any if it selects none, which others report."""
    name = value.get("name") if isinstance(value, dict) else None
    try:
        return find(kind, name) if isinstance(name, str) else Any
    except UnknownName:
        return Any


def converted(
    value: Any,
    convert: Callable[[Any, Kind, str], Any],
    kind: Any = CaseFile,
    path: str = "",
) -> Any:
    """The value with `convert(value, kind, key path)` in place of each table and each number."""

    def walk(value: Any, kind: Kind, path: str) -> Any:
        """The converted value of this kind at a key path, entries of tables and lists included."""
        kind = resolved(value, kind)
        if not isinstance(value, list):
            value = convert(value, kind, path)
        if not isinstance(value, dict | list):
            return value
        inner = kind.inner(value)
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        found = {
            key: walk(each, inner.get(key, Kind(Any)), f"{path}.{key}".lstrip("."))
            for key, each in entries
        }
        return found if isinstance(value, dict) else list(found.values())

    return walk(value, Kind(kind), path)


def kind_at(tables: dict, keys: tuple) -> tuple[Kind, Any]:
    """The kind of the value at a key path, whether it is given or not, and the value or None."""
    value, kind = tables, resolved(tables, Kind(CaseFile))
    for key in keys:
        kind = (
            kind.inner(value).get(key, Kind(Any)) if isinstance(value, dict | list) else Kind(Any)
        )
        try:
            value = value[key]
        except (LookupError, TypeError):
            return Kind(kind.hint, None), None
        kind = resolved(value, kind)
    return kind, value


def with_present_names(tables: dict) -> tuple[dict, list[str], list[Finding]]:
    """The tables with the present names of all keys, the problems, and a note on each earlier name.

    `Parameters.earlier` of the class of a table has the earlier names.
    """
    problems: list[str] = []
    notes: list[Finding] = []

    def renamed(value: Any, kind: Kind, path: str) -> Any:
        """A table with present names in place of earlier ones, any other value unchanged."""
        earlier = kind.model.earlier if isinstance(value, dict) and kind.model else {}
        for old in earlier.keys() & value.keys() if earlier else ():
            key, new = f"{path}.{old}".lstrip("."), earlier[old]
            what = f"is the earlier name of {new}"
            if new in value:
                problems.append(f"{key}: {what}, which is also given; remove {old}")
            else:
                notes.append(Finding(NOTE, key, f"{what}; write {new}"))
        if not earlier:
            return value
        kept = {key: each for key, each in value.items() if earlier.get(key) not in value}
        return {earlier.get(key, key): each for key, each in kept.items()}

    return converted(tables, renamed), problems, notes
