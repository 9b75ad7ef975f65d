"""Generates the chapter `case-file.md`: every table and key of a case file.

    python -m mpilbm.manual.reference        writes the chapter; a test compares it with the tables

Types, defaults and limits come from the pydantic models, texts from their docstrings and from the
descriptions and examples of their fields. Units are in `UNITS` below, by key.
"""

import inspect
import re
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from mpilbm.case.quantities import KEYS, SYMBOLS
from mpilbm.case.tables import LABEL, CaseFile, FluidTable, Parameters
from mpilbm.formulas.parser import FUNCTIONS, NAMES
from mpilbm.formulas.values import Value, Vector
from mpilbm.manual.pages import FOLDER, slug
from mpilbm.registry import find, names
from mpilbm.system.toml_text import inline

FILE = FOLDER / "case-file.md"

# Kind of the registry -> the word for one of its classes in headings.
KIND_TITLES = {
    "lattices": "lattice",
    "equilibria": "equilibrium",
    "collisions": "collision",
    "closures": "closure",
    "forcing": "force",
    "shapes": "shape",
    "boundaries": "boundary",
    "couplings": "coupling",
    "layouts": "layout",
    "backends": "backend",
    "halo": "halo",
    "outputs": "output",
}
# Unit of a key in lattice units: u is cells/step; 1: a pure number; "": no number.
UNITS = {
    "UnitsTable.cell": "m",
    "UnitsTable.step": "s",
    "UnitsTable.velocity": "m/s",
    "UnitsTable.density": "kg/m^3",
    "Run.walltime": "s",
    "Steady.tolerance": "1",
    "ShanChen.psi": "",
    "size": "cells",
    "steps": "steps",
    "every": "steps",
    "iterate": "steps",
    "start": "steps",
    "write": "steps",
    "viscosity": "cells^2/step",
    "velocity": "cells/step",
    "u": "cells/step",
    "rho": "rho_0",
    "rho_jump": "rho_0",
    "value": "rho_0 cells/step^2",
    "area": "cells^2",
    "wetting": "rho_0, or degrees",
    "tau_phi": "steps",
    "relaxation": "1/step",
    **dict.fromkeys(("length", "centre", "radius", "tube", "lower", "upper", "point"), "cells"),
    **dict.fromkeys(("reynolds", "magic", "constant", "normal", "lift", "keep"), "1"),
    **dict.fromkeys(("device", "order"), "1"),
    **dict.fromkeys(("G", "a", "kappa", "gamma"), "lattice units"),
}
RATES = re.compile(r"(omega|s)_\w+")  # relaxation rates, per step
# Kind of the registry -> the name that examples use; else the first one.
EXAMPLES = {
    "lattices": "D3Q19",
    "collisions": "trt",
    "forcing": "guo",
    "shapes": "sphere",
    "boundaries": "bounce_back",
    "layouts": "aa",
    "backends": "cuda",
    "halo": "staged",
    "outputs": "snapshot",
}
_MARKS = re.compile(r"([\\*<>|\[\]#]|(?<!\w)_|_(?!\w))")  # that Markdown may read as such
LIMITS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}

INTRODUCTION = """\
# Case file

Every table and key of a case file, with type, default, unit, allowed values and an example. The
chapter is generated from the models that check a case, by `python -m mpilbm.manual.reference`.

A case file is [TOML](https://toml.io). In most tables the key `name` selects a method, and the
other keys are its parameters. Unknown keys and wrong types are refused, with the nearest valid key.
`mpilbm new NAME` writes a commented case, `mpilbm check CASE` validates one, and `mpilbm schema`
prints the same rules as a JSON schema for editors.

## Types and units

| type | written as |
|---|---|
| integer | `100` |
| number | `0.1`, `1e-6` or `100` |
| boolean | `true` or `false` |
| string | `"text"` |
| formula | a string such as `"0.1*sin(2*pi*x/nx)"` |
| file | a string that ends in `.csv` or `.npy`, or names a dataset, such as `"profile.h5:u"` |
| list | `[1, 2, 3]`; vectors have one entry per dimension: x, y (and z) |
| table | `{{name = "trt", magic = 0.25}}`, or a section `[collision]` |

Numbers are in lattice units: lengths in cells, times in steps, densities in units of rho_0 = 1.
If the case has [`[units]`](#units), the following keys also accept a string with an SI unit:

| key | example |
|---|---|
{quantities}

Symbols of units: {symbols}; products, quotients and integer powers of them such as `kg/m^3`.

A formula may use the names {names}, the functions {functions}, the operators `+ - * / **`,
comparisons and parentheses. `x`, `y` and `z` are the coordinates of cell centres in cells, `nx`,
`ny` and `nz` the numbers of cells, and `t` the time in steps. `t` is available where the
description says so, `z` and `nz` in three dimensions.

A file `.csv` holds the columns t and one value per component, and a `.npy` or HDF5 dataset holds
one value per component for each cell of the face. Paths are relative to the folder of the case.

## Top level
"""


class Section(NamedTuple):
    """A part of the chapter: the key path as in TOML, and the description of the table."""

    path: str  # "run.steady"; "[body]" for an array of tables
    table: type[Parameters] | str  # a model, or a kind of the registry


def chapter() -> str:
    """The whole chapter."""
    quantities = "\n".join(f'| `{key}` | `"{text}"` |' for key, (_, text) in KEYS.items())
    introduction = INTRODUCTION.format(
        quantities=quantities,
        symbols=", ".join(f"`{symbol}`" for symbol in SYMBOLS),
        names=_list_of(NAMES),
        functions=_list_of(FUNCTIONS),
    )
    parts = [introduction, table_of(CaseFile)]
    for section in sections():
        parts += ["", f"## {heading(section)}", "", *_body(section)]
    return "\n".join(parts).rstrip() + "\n"


def write() -> None:
    """Write the chapter."""
    FILE.write_text(chapter(), encoding="utf-8")


def sections() -> list[Section]:
    """The tables of a case in the order of its model, each followed by the tables inside it."""
    fields = CaseFile.model_fields
    top = [table for field in fields.values() for table in tables_in(_whole_type(field))]
    found: list[Section] = []
    for key, field in fields.items():
        _add(found, key, field, top)
    return found


def _add(found: list[Section], path: str, field: FieldInfo, top: list) -> None:
    """Append the tables that a field can hold, and those inside them, each only once.

    The tables `top` have sections under their own keys.
    """
    for table in tables_in(_whole_type(field)):
        if any(section.table == table for section in found) or ("." in path and table in top):
            continue
        array = "." not in path and (get_origin(field.annotation) is tuple or table is FluidTable)
        found.append(Section(f"[{path}]" if array else path, table))
        for cls in models(table):
            for key, inner in cls.model_fields.items():
                _add(found, f"{path}.{key}", inner, top)


def models(table: type[Parameters] | str) -> list[type[Parameters]]:
    """The model of a table, or those of all names of a kind."""
    return [find(table, name) for name in names(table)] if isinstance(table, str) else [table]


def _whole_type(field: FieldInfo) -> Any:
    """The annotation of a field with its metadata."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def tables_in(of: Any) -> list:
    """The models and kinds of the registry that a type names."""
    inner = get_args(of)
    if get_origin(of) is Annotated:
        kinds = [note.kind for note in inner[1:] if hasattr(note, "kind")]
        return kinds or tables_in(inner[0])
    if isinstance(of, type) and issubclass(of, Parameters):
        return [of]
    return [table for each in inner for table in tables_in(each)]


def heading(section: Section) -> str:
    """The heading of a section: the table as in TOML."""
    several = "Several fluids: " if section.table is FluidTable else ""
    return f"{several}`[{section.path}]`"


def anchor(table: type[Parameters] | str) -> str:
    """The anchor of the section of a table or kind."""
    return next(slug(heading(section)) for section in sections() if section.table == table)


def _body(section: Section) -> list[str]:
    if not isinstance(section.table, str):
        return [prose(section.table), "", table_of(section.table)]
    kind, title = section.table, KIND_TITLES[section.table]
    classes = {name: find(kind, name) for name in names(kind)}
    links = ", ".join(f"[`{name}`](#{slug(f'{title} {name}')})" for name in classes)
    lines = [f"`name` selects one of: {links}."]
    common = _common(list(classes.values()))
    if common:
        some = next(iter(classes.values()))
        lines += ["", f"Keys of every {title}:", "", table_of(some, common)]
    for name, cls in classes.items():
        own = [key for key in _keys(cls) if key not in common]
        lines += ["", f"### {title} `{name}`", "", prose(cls), ""]
        lines.append(table_of(cls, own) if own else "No keys of its own.")
    return lines


def _keys(cls: type[Parameters]) -> list[str]:
    return [key for key in cls.model_fields if key != "name"]


def _common(classes: list[type[Parameters]]) -> list[str]:
    """The keys that all classes have, with the same row."""
    first = {key: row(classes[0], key) for key in _keys(classes[0])}
    if len(classes) < 2:
        return []
    return [
        key
        for key, text in first.items()
        if all(key in _keys(cls) and row(cls, key) == text for cls in classes[1:])
    ]


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
    lines = ["| key | type | default | unit | allowed | meaning | example |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    return "\n".join([*lines, *(row(cls, key) for key in keys or _keys(cls))])


def row(cls: type[Parameters], key: str) -> str:
    """The row of one key."""
    field = cls.model_fields[key]
    cells = [
        f"`{key}`",
        type_text(_whole_type(field)),
        _default(field),
        unit(cls, key),
        allowed(field),
        escaped(field.description or ""),
        _code(f"{key} = {inline(example(key, field))}"),
    ]
    return f"| {' | '.join(cell.replace(chr(10), ' ') for cell in cells)} |"


def _code(text: str) -> str:
    """Text as code in a cell of a table, in which | separates; 1e-06 becomes 1e-6."""
    return f"`{re.sub(r'(?<=[0-9]e-)0(?=[0-9])', '', text)}`".replace("|", "\\|")


def type_text(of: Any) -> str:
    """The type of a value in the words of the introduction."""
    return " or ".join(dict.fromkeys(_types(of)))


def _types(of: Any, plural: bool = False) -> list[str]:
    origin, inner = get_origin(of), get_args(of)
    end = "s" if plural else ""
    if of == Value:
        return [f"number{end}", f"formula{end}"]
    if of == Vector:
        return ["list of numbers, formulas", "file"]
    if origin is Annotated:
        kinds = [note.kind for note in inner[1:] if hasattr(note, "kind")]
        if kinds:
            link = f"[{KIND_TITLES[kinds[0]]}](#{anchor(kinds[0])})"
            return [f"table{end}: {link}"]
        return _types(inner[0], plural)
    if origin in (Union, UnionType):
        if {get_args(each)[0] if get_origin(each) is Annotated else each for each in inner} == {
            float,
            str,
        }:  # a Value whose discriminator is in the metadata of its field
            return [f"number{end}", f"formula{end}"]
        return [text for each in inner if each is not type(None) for text in _types(each, plural)]
    if origin is tuple:
        return [f"list{end} of {', '.join(dict.fromkeys(_types(inner[0], True)))}"]
    if origin is dict:
        return [f"table{end} of {' or '.join(_types(inner[1], True))}"]
    if origin is Literal:
        return [text for each in inner for text in _types(type(each), plural)]
    if isinstance(of, type) and issubclass(of, Parameters):
        return [f"[table{end}](#{anchor(of)})"]
    return [{bool: "boolean", int: "integer", float: "number", str: "string"}[of] + end]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, Parameters):
        return _code(inline({"name": value.name})) if hasattr(value, "name") else "its defaults"
    return _code(inline(value))


def unit(cls: type[Parameters], key: str) -> str:
    """The unit of a key; KeyError if it holds numbers and `UNITS` does not have it."""
    for base in cls.__mro__:
        if f"{base.__name__}.{key}" in UNITS:
            return UNITS[f"{base.__name__}.{key}"]
    if not holds_numbers(_whole_type(cls.model_fields[key])):
        return ""
    return "1/step" if RATES.fullmatch(key) else UNITS[key]


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
    return ", ".join(dict.fromkeys(_limits(_whole_type(field))))


def _limits(of: Any) -> list[str]:
    origin, inner = get_origin(of), get_args(of)
    if origin is Literal:
        return [_code(inline(each)) for each in inner]
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
                found.append(_code(f"{sign} {_number(getattr(note, word))}"))
        pattern = getattr(note, "pattern", None)
        if pattern == LABEL:
            found.append("letters, digits, `_` and `-`, a letter first")
        elif pattern:
            found.append(_code(pattern))
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


def example(key: str, field: FieldInfo):
    """A value: the first of `examples`, else an allowed one other than the default."""
    if field.examples:
        return field.examples[0]
    of, default = field.annotation, field.get_default(call_default_factory=True)
    kinds = [table for table in tables_in(_whole_type(field)) if isinstance(table, str)]
    if kinds:
        return _example_of_kind(kinds[0], get_origin(of) is tuple)
    if isinstance(default, bool):
        return not default
    choices = [each for part in [of, *get_args(of)] if get_origin(part) is Literal
               for each in get_args(part)]  # fmt: skip
    if choices:
        return next(each for each in reversed(choices) if each != default)
    if isinstance(default, int | float | str) and default != "":
        return default
    if default == () and tables_in(of):
        return [example_table(tables_in(of)[0])]
    raise ValueError(f"{key}: the field has no default; give it examples=[…]")


def _example_of_kind(kind: str, array: bool):
    table = example_table(find(kind, EXAMPLES.get(kind, names(kind)[0])))
    if array and kind == "boundaries":
        table |= {"where": ["y-", "y+"]}
    return [table] if array else table


def example_table(cls: type[Parameters]) -> dict:
    """The smallest table of a class: its name and its required keys."""
    fields = cls.model_fields
    table = {"name": fields["name"].default} if "name" in fields else {}
    for key, field in fields.items():
        if field.is_required():
            table[key] = example(key, field)
    return table


def _list_of(words) -> str:
    return ", ".join(f"`{word}`" for word in words)


if __name__ == "__main__":
    write()
