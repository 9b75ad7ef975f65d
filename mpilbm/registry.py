"""One rule for the whole TOML: a `name` picks a registered class, the other keys are its fields.

Adding a lattice, collision, force, boundary, layout, backend, halo or output is one file in the
folder of its kind with one `@register(kind, name)`. A user's own file is found through the
entry-point group `mpilbm` or `--plugin FILE.py`.
"""

import difflib
import importlib
import importlib.util
import pkgutil
import sys
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from traceback import walk_tb
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from mpilbm.errors import MpilbmError, PluginError

PACKAGES = {  # kind -> the package whose modules register its classes
    "lattices": "physics.lattices",
    "equilibria": "physics.equilibria",
    "collisions": "physics.collisions",
    "closures": "physics.closures",
    "forcing": "physics.forcing",
    "shapes": "geometry.shapes",
    "boundaries": "physics.boundaries",
    "couplings": "physics.couplings",
    "layouts": "layouts",
    "backends": "backends",
    "halo": "halo",
    "outputs": "outputs",
}
KINDS = tuple(PACKAGES)

_classes: dict[str, dict[str, type]] = {kind: {} for kind in KINDS}


class UnknownName(ValueError):
    """A name that no class of its kind carries; says which do and which is nearest."""

    def __init__(self, kind: str, name: str, allowed: tuple[str, ...], mend: str = ""):
        near = difflib.get_close_matches(str(name), allowed, 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else mend
        super().__init__(f"'{name}' is none of the {kind}: {', '.join(allowed)}{hint}")
        self.kind, self.name, self.allowed = kind, name, allowed


class Parameters(BaseModel):
    """Base of every table of a case: frozen, typed, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def register(kind: str, name: str):
    """Class decorator: `name = "<name>"` in a table of this kind picks the class."""

    if kind not in KINDS:
        raise UnknownName("kinds", kind, KINDS)

    def add(cls):
        if cls.__module__.partition(".")[0] != "mpilbm":
            _load_own(kind)  # so that a name of ours is not taken before it is there
        if name in _classes[kind] and _classes[kind][name].__module__ != cls.__module__:
            raise ValueError(f"two classes of {kind} are called '{name}': {cls.__module__} and "
                             f"{_classes[kind][name].__module__}")  # fmt: skip
        cls.__pydantic_fields__["name"] = FieldInfo(annotation=Literal[name], default=name)
        cls.model_rebuild(force=True)
        _classes[kind][name] = cls
        return cls

    return add


@cache
def _load(kind: str) -> None:
    """Import the files of one kind, and the installed plugins of all kinds."""
    _load_own(kind)
    _load_entry_points()


@cache
def _load_own(kind: str) -> None:
    package = f"mpilbm.{PACKAGES[kind]}"
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


@cache
def _load_entry_points() -> None:
    for point in entry_points(group="mpilbm"):
        point.load()


def load_plugin(path: str | Path) -> None:
    """Import a user's file, whose `@register` lines then count like our own; else PluginError."""
    path = Path(path)
    spec = importlib.util.spec_from_file_location(f"mpilbm_plugin_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [n for frame, n in walk_tb(error.__traceback__) if frame.f_globals is vars(module)]
        lines += [error.lineno] if isinstance(error, SyntaxError) and error.lineno else []
        raise _plugin_error(f"{path}, line {lines[-1]}" if lines else f"{path}", error) from error


@contextmanager
def plugin_errors():
    """Turns what a plug-in's code raises into a PluginError that names the place in it.

    Also what one of our methods raises for an object of a plug-in's class, such as a method that
    the class should have overridden. All other errors pass.
    """
    try:
        yield
    except MpilbmError:
        raise
    except Exception as error:
        own = {cls.__module__ for kind in _classes.values() for cls in kind.values()}
        own = {name for name in own if name.partition(".")[0] != "mpilbm"}
        for frame, line in reversed(list(walk_tb(error.__traceback__))):
            file, of = frame.f_code.co_filename, type(frame.f_locals.get("self"))
            if frame.f_globals.get("__name__") in own:
                raise _plugin_error(f"{file}, line {line}", error) from error
            if of.__module__ in own:
                file = getattr(sys.modules.get(of.__module__), "__file__", of.__module__)
                where = f"{file}: {of.__name__}.{frame.f_code.co_name}"
                raise _plugin_error(where, error) from error
        raise


def _plugin_error(where: str, error: Exception) -> PluginError:
    what = f": {type(error).__name__}{f': {error}' if str(error) else ''}"
    if isinstance(error, NotImplementedError):
        what = " is not defined; define it"
    return PluginError(f"{where}{what}; --debug shows the traceback")


def names(kind: str) -> tuple[str, ...]:
    """All names of a kind, sorted."""
    _load(kind)
    return tuple(sorted(_classes[kind]))


def registered() -> frozenset[tuple[str, str, type]]:
    """All (kind, name, class) of now: what is derived from them is valid while this is the same."""
    return frozenset((kind, name, find(kind, name)) for kind in KINDS for name in names(kind))


def find(kind: str, name: str) -> type:
    """The class of this kind and name; raises UnknownName with those that exist."""
    _load(kind)
    if name not in _classes[kind]:
        raise UnknownName(kind, name, names(kind), "; one of your own needs --plugin FILE")
    return _classes[kind][name]


def make(kind: str, table: dict | str):
    """The object that a table {name = …, …} (or a bare name) describes."""
    table = {"name": table} if isinstance(table, str) else table
    return find(kind, table.get("name", "")).model_validate(table)
