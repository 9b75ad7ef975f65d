"""`mpilbm report` of a folder of scalings: one page in HTML."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from mpilbm import __version__
from mpilbm.core.errors import CommandError
from mpilbm.core.units import counted
from mpilbm.outputs.drawing.figures import default_style, require_matplotlib, svg
from mpilbm.view.report.html import data_of_picture, render, write
from mpilbm.view.report.scaling.figures import draw
from mpilbm.view.report.scaling.model import network
from mpilbm.view.report.scaling.series import Row, Series, read, series
from mpilbm.view.report.scaling.tables import runs, tables

PAGE = "scaling.html"


def report(directory: Path, output: Path | None = None, beyond: str | None = None) -> list[Path]:
    """Write the page to `output`, by default the folder itself; returns its path.

    `beyond`: the network between nodes, see model.network. Raises CommandError if the folder does
    not exist, contains no results, or is not writable.
    """
    require_matplotlib("report")
    between = network(beyond)
    rows = read(directory)
    try:
        found = series(rows, between)
        with default_style():
            page = render("scaling.html", content(found, rows))
    except KeyError as error:
        raise CommandError(
            f"{directory}: a row lacks {error}, perhaps because another version wrote it; measure "
            "it again or remove its file"
        ) from error
    return [write(output or directory, PAGE, page)]


def content(found: Sequence[Series], rows: Sequence[Row]) -> dict[str, Any]:
    """The values of the template."""
    ranks = sorted({row["ranks"] for row in rows})
    devices = sorted({row["device"].partition(" on ")[0] for row in rows})
    several = "s" if ranks[-1] > 1 else ""
    return {
        "title": "Scaling",
        "summary": (
            f"{counted(len(rows), 'measurement')} on {', '.join(map(str, ranks))} rank{several}: "
            f"{'; '.join(devices)}"
        ),
        "figures": [
            (each.title, each.text, data_of_picture(svg(each.figure), "image/svg+xml"))
            for each in draw(found)
        ],
        "runs": runs(rows),
        "series": [(f"{each.kind.capitalize()}: {each.name}", tables(each)) for each in found],
        "version": __version__,
        "date": date.today().isoformat(),
    }
