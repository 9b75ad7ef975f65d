"""Pages in HTML: of a run, and of measurements of scaling."""

import base64
from collections.abc import Sequence
from datetime import date
from os.path import isdir  # False for a name that is too long
from pathlib import Path
from typing import Any

from mpilbm import __version__
from mpilbm.core.errors import CommandError
from mpilbm.core.files.file_origin import PROGRAM
from mpilbm.core.printable import several_lines
from mpilbm.core.units import counted
from mpilbm.outputs.drawing import default_style, require_matplotlib, svg
from mpilbm.storage import replaced
from mpilbm.storage.directory import REPORT, make_folder, owned
from mpilbm.view.report import run_page
from mpilbm.view.report.scaling_figures import draw
from mpilbm.view.report.scaling_series import Row, Series, network, read, series
from mpilbm.view.report.scaling_tables import runs, tables
from mpilbm.view.results import open_run

SCALING = "scaling.html"


def report(directory: Path, output: Path | None = None, between: str | None = None) -> list[Path]:
    """Write the page of a folder to `output`, by default the folder itself; returns its path.

    `between`: the network between nodes, for the model of a scaling, see `network`. Raises
    CommandError if the folder has no results or measurements, or is not writable.
    """
    if isdir(directory) and owned(directory):
        if between is not None:
            raise CommandError("--network: applies to measurements of scaling; remove it")
        page = _rendered("run.html", run_page.content(open_run(directory)))
        return [_write(output or directory, REPORT, page)]
    require_matplotlib("report")
    beyond = network(between)
    rows = read(directory)
    try:
        with default_style():
            page = _rendered("scaling.html", _scaling(series(rows, beyond), rows))
    except KeyError as error:
        raise CommandError(
            f"{directory}: a row lacks {error}, perhaps because another version wrote it; measure "
            "it again or remove its file"
        ) from error
    return [_write(output or directory, SCALING, page)]


def _scaling(found: Sequence[Series], rows: Sequence[Row]) -> dict[str, Any]:
    """The values of the template scaling.html."""
    ranks = sorted({row["ranks"] for row in rows})
    devices = sorted({row["device"].partition(" on ")[0] for row in rows})
    several = "s" if ranks[-1] > 1 else ""
    return {
        "title": "Scaling",
        "summary": (
            f"{counted(len(rows), 'measurement')} on {', '.join(map(str, ranks))} rank{several}: "
            f"{'; '.join(devices)}"
        ),
        "figures": [(each.title, each.text, svg(each.figure)) for each in draw(found)],
        "runs": runs(rows),
        "series": [(f"{each.kind.capitalize()}: {each.name}", tables(each)) for each in found],
        "version": __version__,
        "date": date.today().isoformat(),
    }


def _rendered(template: str, content: dict[str, Any]) -> str:
    """A page as text; all values are escaped. CommandError without Jinja2."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise CommandError(
            "report requires Jinja2, which is not installed; pip install 'mpilbm[plot]'"
        ) from error
    loader = PackageLoader("mpilbm.view.report")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters["base64"] = lambda data: base64.b64encode(data).decode("ascii")
    return environment.get_template(template).render(content | {"program": PROGRAM})


def _write(folder: Path, name: str, page: str) -> Path:
    """Write a page to a folder; returns its path. CommandError if it is not writable."""
    try:
        make_folder(folder)
        with replaced(folder / name) as file:
            file.write(several_lines(page))
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}; choose a folder with --output") from error
    return folder / name
