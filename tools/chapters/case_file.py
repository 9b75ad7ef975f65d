"""Generates the chapter `case-file.md`: every table and key of a case file.

Types, defaults and limits come from the pydantic models, texts from their docstrings and from the
descriptions and examples of their fields. The units of keys are in `keys.py`.
"""

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from chapters import slug
from chapters.keys import allowed, code, example, quantity_of, tables_in, unit
from mpilbm.case.tables.case_file import CaseFile
from mpilbm.case.tables.fluids import FluidTable
from mpilbm.core.formulas.parser import FUNCTIONS, NAMES
from mpilbm.core.formulas.values import GivenVector, Value
from mpilbm.core.printable import inline, shown
from mpilbm.core.quantity import whole_type
from mpilbm.core.registry import Parameters, find, names
from mpilbm.view.manual.pages import FOLDER

FILE = FOLDER / "case-file.md"
TEMPLATE = Path(__file__).with_name("case-file.md")  # of its introduction

# Kind of the registry -> the word for one of its classes in headings.
KIND_TITLES = {
    "lattices": "lattice",
    "equilibria": "equilibrium",
    "collisions": "collision",
    "closures": "closure",
    "forcing": "force",
    "shapes": "shape",
    "wall_laws": "wall law",
    "boundaries": "boundary",
    "motions": "motion",
    "couplings": "coupling",
    "scalar_lattices": "lattice of a scalar",
    "scalar_collisions": "collision of a scalar",
    "scalar_boundaries": "condition on a scalar",
    "layouts": "layout",
    "backends": "backend",
    "halo": "halo",
    "outputs": "output",
}
_MARKS = re.compile(r"([\\*<>|\[\]#]|(?<!\w)_|_(?!\w))")  # that Markdown may read as such


class Section(NamedTuple):
    """A part of the chapter: the key path as in TOML, and the description of the table."""

    path: str  # "run.steady"; "[body]" for an array of tables
    table: type[Parameters] | str  # a model, or a kind of the registry


def chapter() -> str:
    """The whole chapter."""
    quantities = [  # in the order of the chapter; those of [units] are last
        quantity_of(whole_type(field))
        for section in sorted(sections(), key=lambda section: section.path == "units")
        for cls in models(section.table)
        for field in cls.model_fields.values()
    ]
    rows = [
        f"| {each.unit} | {_list_of(shown(text) for text in each.examples)} |"
        for each in dict.fromkeys(quantities)
        if each
    ]
    introduction = TEMPLATE.read_text(encoding="utf-8")
    introduction = introduction.replace("{quantities}", "\n".join(rows))
    introduction = introduction.replace("{names}", _list_of(NAMES))
    introduction = introduction.replace("{functions}", _list_of(FUNCTIONS))
    parts = [introduction, table_of(CaseFile)]
    for section in sections():
        parts += ["", f"## {heading(section)}", "", *_body(section)]
    return "\n".join(parts).rstrip() + "\n"


def sections() -> list[Section]:
    """The tables of a case in the order of its model, each followed by the tables inside it."""
    fields = CaseFile.model_fields
    top = [table for field in fields.values() for table in tables_in(whole_type(field))]
    found: list[Section] = []
    for key, field in fields.items():
        _add(found, key, field, top)
    return found


def _add(found: list[Section], path: str, field: FieldInfo, top: list) -> None:
    """Append the tables that a field can hold, and those inside them, each only once.

    The tables `top` have sections under their own keys.
    """
    for table in tables_in(whole_type(field)):
        if any(section.table == table for section in found) or ("." in path and table in top):
            continue
        array = "." not in path and (get_origin(field.annotation) is tuple or table is FluidTable)
        found.append(Section(f"[{path}]" if array else path, table))
        for cls in models(table):
            for key, inner in cls.model_fields.items():
                _add(found, f"{path}.{key}", inner, top)
            # the table of further keys that the user names
            if more := inspect.get_annotations(cls).get("__pydantic_extra__"):
                found.append(Section(f"{path}.LABEL", get_args(more)[1]))


def models(table: type[Parameters] | str) -> list[type[Parameters]]:
    """The model of a table, or those of all names of a kind."""
    return [find(table, name) for name in names(table)] if isinstance(table, str) else [table]


def heading(section: Section) -> str:
    """The heading of a section: the table as in TOML."""
    several = "Several fluids: " if section.table is FluidTable else ""
    return f"{several}`[{section.path}]`"


def _anchor(table: type[Parameters] | str) -> str:
    return next(slug(heading(section)) for section in sections() if section.table == table)


def _body(section: Section) -> list[str]:
    if not isinstance(section.table, str):
        return [prose(section.table), "", table_of(section.table)]
    kind, title = section.table, KIND_TITLES[section.table]
    classes = {name: find(kind, name) for name in names(kind)}
    links = ", ".join(f"[`{name}`](#{slug(f'{title} {name}')})" for name in classes)
    lines = [f"`name` selects one of: {links}."]
    first, *others = classes.values()
    common = []  # keys that all classes have, with the same row
    for key in _keys(first) if others else ():
        if all(key in _keys(cls) and row(cls, key) == row(first, key) for cls in others):
            common.append(key)
    if common:
        lines += ["", f"Keys of every {title}:", "", table_of(first, common)]
    for name, cls in classes.items():
        own = [key for key in _keys(cls) if key not in common]
        lines += ["", f"### {title} `{name}`", "", prose(cls), ""]
        lines.append(table_of(cls, own) if own else "No keys of its own.")
    return lines


def _keys(cls: type[Parameters]) -> list[str]:
    return [key for key in cls.model_fields if key != "name"]


def prose(cls: type[Parameters]) -> str:
    """The docstring as Markdown: indented lines are code, everything else is escaped."""
    paragraphs = []
    for paragraph in (inspect.getdoc(cls) or "").split("\n\n"):
        if all(line.startswith("    ") for line in paragraph.split("\n")):
            paragraphs.append(f"```text\n{inspect.cleandoc(paragraph)}\n```")
        else:
            paragraphs.append(escaped(paragraph))
    return "\n\n".join(paragraphs)


def escaped(text: str) -> str:
    """Text whose marks of Markdown are escaped, except for `code`."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.S)
    parts[::2] = (_MARKS.sub(r"\\\1", part) for part in parts[::2])
    return "".join(parts)


def table_of(cls: type[Parameters], keys: list[str] | None = None) -> str:
    """A Markdown table with one row for each key."""
    head = "| key | type | default | unit | allowed | meaning | example |"
    return "\n".join([head, 7 * "|---" + "|", *(row(cls, key) for key in keys or _keys(cls))])


def row(cls: type[Parameters], key: str) -> str:
    """The row of one key."""
    field = cls.model_fields[key]
    cells = [
        f"`{key}`",
        " or ".join(dict.fromkeys(_types(whole_type(field)))),
        _default(field),
        unit(cls, key),
        allowed(field),
        escaped(field.description or ""),
        code(f"{key} = {inline(example(key, field))}"),
    ]
    return f"| {' | '.join(cell.replace(chr(10), ' ') for cell in cells)} |"


def _types(of: Any, plural: bool = False) -> list[str]:
    """The types of a value in the words of the introduction."""
    origin, inner = get_origin(of), get_args(of)
    end = "s" if plural else ""
    if of == Value:
        return [f"number{end}", f"formula{end}"]
    if of == GivenVector:
        return ["list of numbers, formulas", "file"]
    if origin is Annotated:
        kinds = [note.kind for note in inner[1:] if hasattr(note, "kind")]
        links = [f"table{end}: [{KIND_TITLES[kind]}](#{_anchor(kind)})" for kind in kinds]
        return links[:1] or _types(inner[0], plural)
    if origin in (Union, UnionType):
        plain = {get_args(each)[0] if get_origin(each) is Annotated else each for each in inner}
        if plain == {float, str}:  # a Value whose discriminator is in the metadata of its field
            return [f"number{end}", f"formula{end}"]
        return [text for each in inner if each is not type(None) for text in _types(each, plural)]
    if origin is tuple:
        return [f"list{end} of {', '.join(dict.fromkeys(_types(inner[0], True)))}"]
    if origin is dict:
        return [f"table{end} of {' or '.join(_types(inner[1], True))}"]
    if origin is Literal:
        return [text for each in inner for text in _types(type(each), plural)]
    if isinstance(of, type) and issubclass(of, Parameters):
        return [f"[table{end}](#{_anchor(of)})"]
    return [{bool: "boolean", int: "integer", float: "number", str: "string"}[of] + end]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, Parameters):
        return code(inline({"name": value.name})) if hasattr(value, "name") else "its defaults"
    return code(inline(value))


def _list_of(words: Iterable[object]) -> str:
    return ", ".join(f"`{word}`" for word in words)
