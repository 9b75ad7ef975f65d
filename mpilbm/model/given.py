"""Arrays and functions of a Python program, and the texts that stand for them in a case."""

from dataclasses import dataclass
from typing import Any


def is_reference(text: object) -> bool:
    """Whether a text stands for an array or a function."""
    return isinstance(text, str) and text.startswith(("<array ", "<function ")) and text[-1] == ">"


def unknown(text: str) -> str:
    """The sentence for a reference to an object that does not exist here."""
    kind = "an array" if text.startswith("<array ") else "a function"
    fix = "give the name of a file with its values" if kind == "an array" else "write a formula"
    return f"stands for {kind} of the Python program that wrote this case; {fix}"


@dataclass(frozen=True, eq=False)
class Given:
    """An array or a GivenFunction with `count` components, and the number of one of them.

    `component` is None if it has only one, which has no axis in the array.
    """

    object: Any
    component: int | None = None
    count: int = 1
