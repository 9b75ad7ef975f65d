"""Figures without pyplot, which would keep all of them, and their text as SVG."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def default_style(**settings: Any) -> Iterator[None]:
    """Matplotlib's defaults with these settings, so that a figure does not depend on others.

    What the program has set, and a file matplotlibrc of the current folder, which can make
    Matplotlib start LaTeX, have no effect on figures that are made and saved inside.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        parameters: Any = matplotlib.rcParams  # the names of its keys are literal types
        parameters.update(settings)
        yield


def empty(width: float, height: float) -> "Figure":
    """A figure of a size in inches, drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def svg(figure: "Figure") -> bytes:
    """The figure as SVG, whose letters are text."""
    stream = io.BytesIO()
    with default_style(**{"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
