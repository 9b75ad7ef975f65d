"""What the annotation of a field says: the tables it can hold, its limits and allowed values."""

import re
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from mpilbm.case.tables import LABEL
from mpilbm.core.files.toml_text import inline
from mpilbm.core.quantity import Quantity, whole_type
from mpilbm.core.registry import Parameters

LIMITS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def tables_in(of: Any) -> list:
    """The models and kinds of the registry that a type names."""
    inner = get_args(of)
    if get_origin(of) is Annotated:
        kinds = [note.kind for note in inner[1:] if hasattr(note, "kind")]
        return kinds or tables_in(inner[0])
    if isinstance(of, type) and issubclass(of, Parameters):
        return [of]
    return [table for each in inner for table in tables_in(each)]


def quantity_of(of: Any) -> Quantity | None:
    """The quantity that a type holds, see mpilbm/core/quantity.py; None without one."""
    notes = get_args(of)[1:] if get_origin(of) is Annotated else ()
    own = next((note for note in notes if isinstance(note, Quantity)), None)
    parts = (quantity_of(each) for each in get_args(of)) if not tables_in(of) else ()
    return own or next((each for each in parts if each), None)


def code(text: str) -> str:
    """Text as code in a cell of a table, in which | separates; 1e-06 becomes 1e-6."""
    return f"`{re.sub(r'(?<=[0-9]e-)0(?=[0-9])', '', text)}`".replace("|", "\\|")


def holds_numbers(of: Any) -> bool:
    """Whether a type holds integers or numbers by itself, not in tables of their own."""
    if of in (int, float):
        return True
    if get_origin(of) is Literal:
        return any(type(each) in (int, float) for each in get_args(of))
    if tables_in(of):
        return False
    return any(holds_numbers(each) for each in get_args(of))


def allowed(field: FieldInfo) -> str:
    """The limits of a value, or the values of which it must be one."""
    return ", ".join(dict.fromkeys(_limits(whole_type(field))))


def _limits(of: Any) -> list[str]:
    origin, inner = get_origin(of), get_args(of)
    if origin is Literal:
        return [code(inline(each)) for each in inner]
    if tables_in(of) and origin is not tuple and origin is not Annotated:
        return []
    found = []
    if origin is Annotated:
        notes = [note for each in inner[1:] for note in getattr(each, "metadata", [each])]
        found = _limits_of_notes(notes)
    found += [text for each in inner for text in _limits(each)] if not tables_in(of) else []
    return found


def _limits_of_notes(notes: list) -> list[str]:
    found = []
    for note in notes:
        for word, sign in LIMITS.items():
            if getattr(note, word, None) is not None:
                found.append(code(f"{sign} {_number(getattr(note, word))}"))
        pattern = getattr(note, "pattern", None)
        if pattern == LABEL:
            found.append("letters, digits, `_` and `-`, a letter first")
        elif pattern:
            found.append(code(pattern))
    lengths = {word: getattr(note, word) for note in notes for word in ("min_length", "max_length")
               if getattr(note, word, None) is not None}  # fmt: skip
    if lengths:
        low, high = lengths.get("min_length"), lengths.get("max_length")
        what = "characters" if high and high > 3 else "entries"
        span = (
            f"{low} or {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        )
        found.append(f"{span} {what}")
    return found


def _number(value: float) -> str:
    """A limit, with large powers of two as such."""
    if isinstance(value, int) and value > 2**20 and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    return f"{value:g}"
