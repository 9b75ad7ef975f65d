"""The registry: in each table of a case `name` selects a class, the other keys are its fields.

To add a lattice, collision, force, boundary, motion, layout, backend, halo or output, add a file
with one `@register(kind, name)` to the folder of that kind. Plug-ins are found through the
entry-point group `mpilbm` or `--plugin FILE.py`. A field of a table that selects such a class has
the annotation `Choice`: `collision = {name = "bgk", …}`.
"""

import difflib
import importlib
import importlib.util
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from mpilbm.core.errors import MpilbmError, PluginError
from mpilbm.core.printable import shown

PACKAGES = {  # kind -> the package whose modules register its classes
    "lattices": "physics.lattices",
    "equilibria": "physics.equilibria",
    "collisions": "physics.collisions",
    "closures": "physics.closures",
    "forcing": "physics.forcing",
    "shapes": "solids.shapes",
    "wall_laws": "physics.wall_laws",
    "boundaries": "physics.boundaries",
    "motions": "physics.motions",
    "couplings": "physics.couplings",
    "scalar_lattices": "physics.lattices",
    "scalar_collisions": "physics.scalars.collisions",
    "scalar_boundaries": "physics.scalars.boundaries",
    "layouts": "layouts",
    "backends": "backends",
    "halo": "halo",
    "outputs": "outputs",
}
KINDS = tuple(PACKAGES)

AnyClass = TypeVar("AnyClass", bound=BaseModel)

_classes: dict[str, dict[str, type[Any]]] = {kind: {} for kind in KINDS}


class UnknownName(ValueError):
    """A name that is not registered; the message lists the registered names and the nearest one.

    `hint` ends the message if no name is near.
    """

    def __init__(self, kind: str, name: object, allowed: tuple[str, ...], hint: str = ""):
        near = difflib.get_close_matches(str(name), allowed, 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else hint
        kinds = kind.replace("_", " ")
        super().__init__(f"'{name}' is not one of the {kinds}: {', '.join(allowed)}{hint}")
        self.kind, self.name, self.allowed = kind, name, allowed


class UnknownKind(ValueError):
    """A kind that does not exist; the message lists the kinds and the nearest one."""

    def __init__(self, kind: str):
        near = difflib.get_close_matches(kind, KINDS, 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        super().__init__(f"unknown kind '{kind}'{hint} Kinds: {', '.join(KINDS)}")


class Parameters(BaseModel):
    """Base class of all tables of a case: frozen and typed; unknown keys are refused.

    The validator of a class is built at its first use: a case uses few of all classes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    # Earlier names of keys -> the present ones: a case may still have them, and gets a note.
    earlier: ClassVar[dict[str, str]] = {}

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """The name of a registered class; `register` makes it a field."""

    @classmethod
    def quantities(cls, table: dict) -> dict[str, Any]:
        """The quantities (mpilbm/core/quantity.py) of the keys whose unit depends on other keys.

        `table` is the table as given, which may be invalid.
        """
        return {}


def register(kind: str, name: str) -> Callable[[type[AnyClass]], type[AnyClass]]:
    """Class decorator: `name = "<name>"` in a table of this kind selects the class.

    Raises UnknownKind for an unknown kind, ValueError if another class has this name.
    """
    if kind not in KINDS:
        raise UnknownKind(kind)

    def add(cls: type[AnyClass]) -> type[AnyClass]:
        if not _is_ours(cls.__module__):
            _load_own(kind)  # first, so that a plug-in cannot take a name of this package
        if name in _classes[kind] and _classes[kind][name].__module__ != cls.__module__:
            raise ValueError(
                f"two classes of {kind} are called '{name}': {cls.__module__} and "
                f"{_classes[kind][name].__module__}"
            )
        # mypy has no type for a Literal of a variable
        only: Any = Literal[name]  # type: ignore[valid-type]
        cls.__pydantic_fields__["name"] = FieldInfo(annotation=only, default=name)
        if not _is_ours(cls.__module__):
            cls.model_rebuild(force=True)  # now, so that an error is reported for its file
        _classes[kind][name] = cls
        return cls

    return add


@cache
def _load(kind: str) -> None:
    """Import the modules of one kind and the installed plug-ins of all kinds."""
    _load_own(kind)
    _load_entry_points()


@cache
def _load_own(kind: str) -> None:
    package = f"mpilbm.{PACKAGES[kind]}"
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


@cache
def _load_module(kind: str, name: str) -> None:
    """Import the module of a kind that has the name of a class in lower case, if there is one."""
    package = importlib.import_module(f"mpilbm.{PACKAGES[kind]}")
    module = name.lower()
    if any(found.name == module for found in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{package.__name__}.{module}")


@cache
def _load_entry_points() -> None:
    for point in entry_points(group="mpilbm"):
        point.load()


def load_plugin(path: str | Path) -> None:
    """Import a file of the user, whose `@register` lines add names; PluginError if that fails."""
    path = Path(path)
    name = f"mpilbm_plugin_{path.stem}"
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None  # a loader was given
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(module)
    except Exception as error:
        lines = [n for frame, n in walk_tb(error.__traceback__) if frame.f_globals is vars(module)]
        lines += [error.lineno] if isinstance(error, SyntaxError) and error.lineno else []
        raise _plugin_error(f"{path}, line {lines[-1]}" if lines else f"{path}", error) from error


@contextmanager
def plugin_errors() -> Iterator[None]:
    """Turns an error raised by the code of a plug-in into a PluginError that names its line.

    This includes an error that a method of this package raises for an object of a plug-in's class,
    such as the NotImplementedError of a method that the class must override. All other errors are
    raised unchanged.
    """
    try:
        yield
    except MpilbmError:
        raise
    except Exception as error:
        modules = {cls.__module__ for kind in _classes.values() for cls in kind.values()}
        plugins = {name for name in modules if not _is_ours(name)}
        for frame, line in reversed(list(walk_tb(error.__traceback__))):
            file, cls = frame.f_code.co_filename, type(frame.f_locals.get("self"))
            if frame.f_globals.get("__name__") in plugins:
                raise _plugin_error(f"{file}, line {line}", error) from error
            if cls.__module__ in plugins:
                file = getattr(sys.modules.get(cls.__module__), "__file__", cls.__module__)
                where = f"{file}: {cls.__name__}.{frame.f_code.co_name}"
                raise _plugin_error(where, error) from error
        raise


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "mpilbm"


def _plugin_error(where: str, error: Exception) -> PluginError:
    what = f": {type(error).__name__}{f': {error}' if str(error) else ''}"
    if isinstance(error, NotImplementedError):
        what = " is not defined; define it"
    return PluginError(f"{where}{what}; --debug shows the traceback")


def names(kind: str) -> tuple[str, ...]:
    """All names of a kind, in alphabetical order."""
    _load(kind)
    return tuple(sorted(_classes[kind]))


def registered() -> frozenset[tuple[str, str, type]]:
    """All (kind, name, class) at present; a cached result is valid while this set is unchanged."""
    return frozenset((kind, name, find(kind, name)) for kind in KINDS for name in names(kind))


def find(kind: str, name: str) -> type[Any]:
    """The class of this kind and name; raises UnknownName with the names that exist.

    Imports no other module of the kind where the module has the name of its class.
    """
    _load_entry_points()
    _load_module(kind, name)
    if name not in _classes[kind]:
        _load(kind)
    if name not in _classes[kind]:
        raise UnknownName(kind, name, names(kind), "; a name of your own needs --plugin FILE")
    return _classes[kind][name]


def make(kind: str, table: dict | str) -> Any:
    """The object described by a table {name = …, …}, or by a name alone."""
    table = {"name": table} if isinstance(table, str) else table
    return find(kind, table.get("name", "")).model_validate(table)


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
        self, kind: str, complete: Callable[[Any], Any] | None = None, name_alone: bool = False
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
            found = find(self.kind, name)
            found.model_rebuild()
            branch = handler.resolve_ref_schema(handler(found.__pydantic_core_schema__))
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
