"""The variants of a case that are compared: number formats, layouts, collisions."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from mpilbm.core.errors import CommandError
from mpilbm.core.registry import names
from mpilbm.view.bench.boxes import DOUBLE, PRECISIONS

PRECISION, LAYOUT, COLLISION = KINDS = ("precision", "layout", "collision")
REFERENCE = PRECISIONS[DOUBLE]
MEASURED = ("body_forces",)  # outputs that the shortened case keeps: the forces are compared


class Variant(NamedTuple):
    """A case that differs from the user's in one part, of the kind `kind`."""

    kind: str
    tables: dict[str, Any]


def kinds(text: str) -> list[str]:
    """The kinds in a list with commas; CommandError for another word."""
    found = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in found:
        if word not in KINDS:
            allowed = ", ".join(KINDS)
            raise CommandError(
                f"--compare: '{word}' cannot be compared; allowed: {allowed}, several with commas"
            )
    return found


def shortened(tables: dict[str, Any], steps: int, layout: str) -> dict[str, Any]:
    """The tables of a case that runs `steps` steps without files; `layout` replaces "auto"."""
    short = copy.deepcopy(tables)
    short["run"] = {"steps": steps}
    short["output"] = [each for each in short.get("output", ()) if each["name"] in MEASURED]
    if layout:
        short["layout"] = _named(short.get("layout"), layout)
    return short


def reference(short: dict[str, Any]) -> dict[str, Any]:
    """The tables of the case in float64."""
    return short | {"precision": _formats(short, REFERENCE)}


def variants(short: dict[str, Any], kind: str) -> list[Variant]:
    """The variants of a kind; the case itself is one of them."""
    if kind == PRECISION:
        parts = [{"precision": _formats(short, each)} for each in PRECISIONS.values()]
    elif kind == LAYOUT:
        given = short.get("layout")
        every = [name for name in names("layouts") if name != "auto"]
        parts = [{"layout": _named(given, name)} for name in every]
    else:
        parts = [_collision(short, name) for name in names("collisions")]
    return [Variant(kind, short | part) for part in parts]


def _formats(short: dict[str, Any], formats: dict[str, str]) -> dict[str, Any]:
    """The table of the number formats; fast intrinsics exist in float32 only."""
    table = short.get("precision", {}) | formats
    if formats["compute"] != "float32":
        table.pop("intrinsics", None)
    return table


def _named(given: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """The given table if it has this name, with its options; else the defaults of the name."""
    return given if given and given.get("name") == name else {"name": name}


def _collision(short: dict[str, Any], name: str) -> dict[str, Any]:
    """The parts of the case that hold collisions: its own table, or one of each fluid."""
    fluids: Any = short.get("fluid")
    if not isinstance(fluids, Sequence):
        return {"collision": _named(short.get("collision"), name)}
    return {"fluid": [each | {"collision": _named(each.get("collision"), name)} for each in fluids]}
