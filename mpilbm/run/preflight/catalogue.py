"""Prints for `mpilbm list` and `mpilbm source`: registered names, and the kernels of a case."""

import inspect
import json
import re
import sys
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import click
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from mpilbm.case.model import Case
from mpilbm.codegen import generate
from mpilbm.codegen.program import Program
from mpilbm.core.errors import CommandError
from mpilbm.core.quantity import whole_type
from mpilbm.core.registry import KINDS, UnknownKind, UnknownName, find, names

LIMITS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "multiple of"}


def describe(kind: str | None = None) -> dict[str, list[dict]]:
    """The names of one kind or of all kinds, each with its summary and its parameters."""
    if kind is not None and kind not in KINDS:
        raise CommandError(f"list: {UnknownKind(kind)}")
    return {
        each: [_entry(each, name) for name in names(each)] for each in ([kind] if kind else KINDS)
    }


def _entry(kind: str, name: str) -> dict:
    cls = find(kind, name)
    fields = {key: field for key, field in cls.model_fields.items() if key != "name"}
    return {
        "name": name,
        "summary": (inspect.getdoc(cls) or "").partition("\n")[0],
        "parameters": [_parameter(key, field) for key, field in fields.items()],
    }


def _parameter(key: str, field: FieldInfo) -> dict:
    limits = [
        f"{sign} {getattr(note, word)}"
        for note in field.metadata
        for word, sign in LIMITS.items()
        if hasattr(note, word)
    ]
    required, hint = field.is_required(), _annotation_text(whole_type(field))
    parameter = {"name": key, "type": hint, "limits": limits, "required": required}
    parameter["description"] = field.description or ""
    if not required:
        default = field.get_default(call_default_factory=True)
        parameter["default"] = to_jsonable_python(default, fallback=str)
    return parameter


def _annotation_text(annotation: Any) -> str:
    """`tuple[float, ...]`, `one of the equilibria`: a type without its modules and tags."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        chosen = [str(note) for note in inner[1:] if hasattr(note, "kind")]
        return chosen[0] if chosen else _annotation_text(inner[0])
    if origin in (Union, UnionType):
        return " | ".join(map(_annotation_text, inner))
    if origin is tuple:
        entries = ("..." if each is ... else _annotation_text(each) for each in inner)
        return f"tuple[{', '.join(entries)}]"
    plain = isinstance(annotation, type) and not inner
    text = annotation.__name__ if plain else str(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).replace("NoneType", "None")


def show(kinds: dict[str, list[dict]], as_json: bool = False) -> None:
    """Print the result of `describe`."""
    if as_json:
        click.echo(json.dumps(kinds, indent=2))
        return
    for kind, entries in kinds.items():
        if not entries:
            continue
        click.secho(kind, bold=True)
        width = max(len(entry["name"]) for entry in entries)
        for entry in entries:
            name = click.style(entry["name"].ljust(width), fg="green")
            click.echo(f"  {name}  {entry['summary']}")
            for parameter in entry["parameters"]:
                click.echo(f"  {' ' * width}    {_parameter_line(parameter)}")


def _parameter_line(parameter: dict) -> str:
    limits = f" {', '.join(parameter['limits'])}" if parameter["limits"] else ""
    if parameter["required"]:
        end = ", required"
    elif parameter["default"] is None:
        end = ", optional"
    else:
        end = f" = {json.dumps(parameter['default'])}"
    what = f"; {parameter['description']}" if parameter["description"] else ""
    return f"{parameter['name']}: {parameter['type']}{limits}{end}{what}"


def kernel_text(program: Program, kernel: str | None) -> str:
    """The whole text, or that of one kernel, which begins with the comment above it."""
    if kernel is None:
        return program.text
    if kernel not in program.kernels:
        raise CommandError(f"--kernel {UnknownName('kernels', kernel, tuple(program.kernels))}")
    return program.bodies[kernel].rstrip("\n")


def show_source(case: Case, kernel: str | None = None) -> None:
    """Print the generated text of a case, in colours on a terminal."""
    text = kernel_text(generate(case), kernel)
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    Console(soft_wrap=True).print(Syntax(text, "c", theme="ansi_dark", background_color="default"))
