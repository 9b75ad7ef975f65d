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
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

KINDS = (
    "lattices",
    "equilibria",
    "collisions",
    "closures",
    "forcing",
    "shapes",
    "boundaries",
    "couplings",
    "layouts",
    "backends",
    "halo",
    "outputs",
)

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
    package = importlib.util.find_spec(f"mpilbm.{kind}")
    if package is not None:
        for module in pkgutil.iter_modules(package.submodule_search_locations):
            importlib.import_module(f"mpilbm.{kind}.{module.name}")
    _load_entry_points()


@cache
def _load_entry_points() -> None:
    for point in entry_points(group="mpilbm"):
        point.load()


def load_plugin(path: str | Path) -> None:
    """Import a user's file, whose `@register` lines then count like our own."""
    path = Path(path)
    spec = importlib.util.spec_from_file_location(f"mpilbm_plugin_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def names(kind: str) -> tuple[str, ...]:
    """All names of a kind, sorted."""
    _load(kind)
    return tuple(sorted(_classes[kind]))


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
