"""Arrays and functions among the tables of a case that a Python program gives.

The tables themselves remain those of a TOML file: a function that is a formula is replaced by the
formula, any other object by a reference such as "<function inlet of boundary.0.velocity>", under
which `Case.given` holds it. An array's reference contains a digest of its values, so that a restart
reports a changed array.
"""

import datetime
import hashlib
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from mpilbm.case.quantities import in_lattice_units
from mpilbm.core.errors import CaseError, UsageError
from mpilbm.core.formulas.given_functions import Given, GivenFunction, is_reference
from mpilbm.core.formulas.tracing import NotAFormula

# keys whose values may be formulas
FORMULAS = ("velocity", "rho", "rho_jump", "value", "u", "flux", "h", "ambient")
SCALARS = ("rho", "rho_jump")
SOLIDS = ("shape", "mask")
SCALAR_TYPES = (str, bool, int, float, datetime.date, datetime.time)
PLACES = (
    "shape, mask and velocity of bodies, velocity and rho of boundaries, force and initial, "
    "boundaries and initial of scalars"
)


def shown_type(value: object) -> str:
    """A value of a wrong type, for messages."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


def require_path(call: str, path: object, of: str = "a file") -> None:
    """UsageError unless an argument of a call is the path of a file or folder."""
    if not isinstance(path, str | PurePath):
        raise UsageError(f"{call}: found {shown_type(path)}; give the path of {of}")
    if "\0" in str(path):
        raise UsageError(f"{call}: found {str(path)!r}, which contains a null character; remove it")


def plain(tables: dict, path: Any) -> tuple[dict, dict[str, Given]]:
    """Return tables of TOML's types, and the objects by their references.

    NumPy's numbers, paths and tuples become numbers, texts and lists. Raises CaseError for an
    object at a key that takes none, for a function with an error, and for values of other types.
    """
    box = {key: value for key, value in tables.items() if key in ("lattice", "domain", "units")}
    box, wrong, _ = in_lattice_units(_Reader((), path).value(box, ()))
    reader = _Reader(() if wrong else _size(box), path, wrong)
    return reader.value(tables, ()), reader.objects


def _size(tables: dict) -> tuple[int, ...]:
    """The size of the box; () if it is not valid, which is reported with the other keys."""
    domain = tables.get("domain")
    size = domain.get("size") if isinstance(domain, dict) else None
    sides = size if isinstance(size, list) else []
    return tuple(sides) if all(isinstance(n, int) for n in sides) else ()


def _is_number(keys: tuple[str, ...]) -> bool:
    """Whether a key holds one number, and not one for each dimension."""
    return keys[-1].isdigit() or keys[-1] in SCALARS or "scalar" in (keys[0], *keys[2:3])


class _Reader:
    """Replaces objects in tables. `wrong`: why the size of the box is not known."""

    def __init__(self, size: tuple[int, ...], path: Any, wrong: Sequence[str] = ()):
        self.size, self.path, self.wrong = size, path, wrong
        self.objects: dict[str, Given] = {}

    def value(self, value: Any, keys: tuple[str, ...]) -> Any:
        """A value with the key path `keys`, and all values in it, with types of TOML."""
        if isinstance(value, dict):
            found = {key: self.value(each, (*keys, str(key))) for key, each in value.items()}
            return _solids(found) if keys[:1] == ("body",) else found
        if isinstance(value, list | tuple):
            return [self.value(each, (*keys, str(k))) for k, each in enumerate(value)]
        if isinstance(value, np.ndarray):
            return self._array(value, keys)
        if callable(value):
            return self._function(value, keys)
        return self._scalar(value, keys)

    def _scalar(self, value: Any, keys: tuple[str, ...]) -> Any:
        """A number, a text, a date or a time of TOML; CaseError for other types."""
        if isinstance(value, PurePath):
            return str(value)
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, SCALAR_TYPES):
            return plain
        fix = (
            "remove the key"
            if value is None
            else ("allowed: numbers, texts, lists, tables, and at some keys arrays and functions")
        )
        raise CaseError(f"found {shown_type(value)}; {fix}", ".".join(keys), self.path)

    def _array(self, array: np.ndarray, keys: tuple[str, ...]) -> Any:
        scalar = _is_number(keys)
        if array.ndim == 0 or (array.ndim == 1 and array.size <= 3 and not scalar):
            return self.value(array.tolist(), keys)
        self._require_place(keys, "an array")
        digest = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=6).hexdigest()
        text = f"array {array.shape} {array.dtype} {digest}"
        return self._references(text, array, keys, None if scalar else len(self.size))

    def _references(self, text: str, thing: Any, keys: tuple[str, ...], count: int | None) -> Any:
        """A reference to an object, or to each of its `count` components."""
        lead = f"<{text} of {'.'.join(keys)}"
        if count is None or keys[-1] in SOLIDS:
            self.objects[f"{lead}>"] = Given(thing)
            return f"{lead}>"
        names = [f"{lead}, component {k}>" for k in range(count)]
        self.objects |= {name: Given(thing, k, count) for k, name in enumerate(names)}
        return names

    def _function(self, call: Callable, keys: tuple[str, ...]) -> Any:
        self._require_place(keys, "a function")
        function = GivenFunction(call, len(self.size), ".".join(keys), self.path)
        scalar = _is_number(keys)
        count, text = None if scalar else len(self.size), f"function {function.name}"
        if keys[-1] in SOLIDS:
            return self._references(text, function, keys, count)
        try:
            found = function.formulas(self.size, count)
        except NotAFormula as reason:
            if keys[0] == "body" or "rho_jump" in keys:
                raise CaseError(
                    f"the function '{function.name}' cannot be written as a formula: {reason}; "
                    "functions that are no formulas are allowed for faces of the box, forces and "
                    "initial fields; use arithmetic and functions of NumPy that formulas have",
                    ".".join(keys),
                    self.path,
                ) from None
            return self._references(text, function, keys, count)
        return found[0] if count is None else found

    def _require_place(self, keys: tuple[str, ...], what: str) -> None:
        """CaseError unless an object is allowed at these keys."""
        last = keys[-2] if keys[-1].isdigit() and len(keys) > 1 else keys[-1]
        physical = keys[0] in ("boundary", "body", "force", "initial", "fluid", "scalar")
        solid = keys[0] == "body" and keys[-1] in SOLIDS
        if not solid and not (physical and last in FORMULAS and keys[:2] != ("fluid", "velocity")):
            raise CaseError(f"found {what}; allowed for {PLACES}", ".".join(keys), self.path)
        if self.wrong:
            raise CaseError(list(self.wrong), path=self.path)
        if len(self.size) not in (2, 3):
            raise CaseError(
                f"found {what}; domain.size must be a list of 2 or 3 numbers",
                ".".join(keys),
                self.path,
            )


def _solids(table: dict) -> dict:
    """A body with its function under `shape` and its array under `mask`."""
    solid = table.get("shape"), table.get("mask")
    for text, other in (solid, solid[::-1]):
        if other is None and is_reference(text):
            rest = {key: each for key, each in table.items() if key not in SOLIDS}
            if str(text).startswith("<array "):
                return rest | {"mask": text}
            return rest | {"shape": {"name": "function", "function": text}}
    return table
