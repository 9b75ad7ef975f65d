"""Figures without pyplot, which would keep all of them, and their text as SVG."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def use_defaults() -> None:
    """Ignore a file matplotlibrc of the current folder, which can make Matplotlib start LaTeX."""
    import matplotlib

    matplotlib.rcdefaults()


def empty(width: float, height: float) -> "Figure":
    """A figure of a size in inches, drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def svg(figure: "Figure") -> bytes:
    """The figure as SVG, whose letters are text."""
    import matplotlib

    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
