"""Generates the chapter `python.md` from its template, a notebook, and docstrings.

The example is the notebook `cases/cylinder.ipynb` with its outputs.
"""

import base64
import inspect
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import mpilbm
from mpilbm import Simulation
from mpilbm.view.manual.pages import FOLDER
from mpilbm.view.results import Run
from mpilbm.view.results.fields import Series
from mpilbm.view.results.tables import Table

FILE = FOLDER / "python.md"
TEMPLATE = Path(__file__).with_name("python.md")
PICTURE = FOLDER / "pictures" / "cylinder-notebook.png"
NOTEBOOK = FOLDER.parents[2] / "cases" / "cylinder.ipynb"


def chapter() -> str:
    """The whole chapter."""
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace("{notebook}", "\n\n".join(_cells()))
    return text.replace("{reference}", "\n\n".join(_reference())).rstrip() + "\n"


def _notebook() -> list[dict[str, Any]]:
    return json.loads(Path(NOTEBOOK).read_text(encoding="utf-8"))["cells"]


def picture() -> bytes:
    """The picture in the outputs of the notebook."""
    outputs = [output for cell in _notebook() for output in cell.get("outputs", ())]
    data = [output.get("data", {}).get("image/png", ()) for output in outputs]
    return base64.b64decode("".join(next(filter(None, data))))


def _cells() -> list[str]:
    """The cells as Markdown; the title of the notebook becomes a section."""
    parts = []
    for cell in _notebook():
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(f"#{source}" if source.startswith("# ") else source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            else:
                parts.append(f"![Cylinder in a channel](pictures/{PICTURE.name})")
    return parts


def _reference() -> list[str]:
    """Headings, signatures and docstrings of the public names."""
    parts = _described("load_case", mpilbm.load_case)
    parts += _class("Simulation", Simulation, "sim")
    parts += _described("open_run", mpilbm.open_run)
    parts += _class("Run", Run, "run") + _class("Series", Series, "part")
    parts += _class("Table", Table, "table")
    errors = [name for name in mpilbm.__all__ if name.endswith("Error")]
    parts += ["### Errors", "All are exceptions in `mpilbm`, and derived from `MpilbmError`."]
    lines = ["| error | meaning |", "|---|---|"]
    for name in errors:
        meaning = (inspect.getdoc(getattr(mpilbm, name)) or "").partition("\n")[0]
        lines.append(f"| `{name}` | {meaning} |")
    return [*parts, "\n".join(lines)]


# For the command line, which adds signals and time limits.
INTERNAL = ("context", "march")


def _class(name: str, cls: type, instance: str) -> list[str]:
    """A class and its public members."""
    parts = _described(name, cls)
    for key, member in vars(cls).items():
        if not key.startswith("_") and key not in INTERNAL:
            parts += _described(f"{instance}.{key}", member)
    return parts


def _described(name: str, thing: Any) -> list[str]:
    """Heading, signature and docstring of a function, a class or a property."""
    text = inspect.getdoc(thing) or ""
    if isinstance(thing, property | cached_property):
        return [f"### {name}", text]
    signature = inspect.signature(thing)
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for key, parameter in signature.parameters.items()
        if key != "self"
    ]
    call = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    return [f"### {name}", f"    {name}{call}", text]
