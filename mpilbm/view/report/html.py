"""Pages in HTML: templates, pictures as text, and writing."""

import base64
from pathlib import Path
from typing import Any

from mpilbm.core.errors import CommandError
from mpilbm.core.files.file_origin import PROGRAM
from mpilbm.core.printable import several_lines
from mpilbm.storage.directory import make_folder
from mpilbm.storage.files import replaced


def render(template: str, content: dict[str, Any]) -> str:
    """A page as text; all values are escaped. CommandError without Jinja2."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise CommandError(
            "report requires Jinja2, which is not installed; pip install 'mpilbm[plot]'"
        ) from error
    loader = PackageLoader("mpilbm.view.report")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    program = {"program": PROGRAM}
    return environment.get_template(template).render(content | program)


def write(folder: Path, name: str, page: str) -> Path:
    """Write a page to a folder; returns its path. CommandError if it is not writable."""
    try:
        make_folder(folder)
        with replaced(folder / name) as file:
            file.write(several_lines(page))
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}; choose a folder with --output") from error
    return folder / name


def data_of_picture(data: bytes, kind: str) -> str:
    """A picture as the address of an image, so that the page needs no other file."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
