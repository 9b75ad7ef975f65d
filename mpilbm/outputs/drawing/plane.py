"""A picture of a scalar in a plane, drawn without a display and in any thread."""

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.outputs.drawing.canvas import default_style
from mpilbm.outputs.drawing.colours import colours_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOLID = "0.65"
INCHES, DPI = 7.0, 120  # of the longer side of the plane; dots per inch
SETTINGS = {"text.parse_math": False, "font.size": 9}


@dataclass(frozen=True, kw_only=True)
class Style:
    """Names and units of the axes and of the values, title, and the range of the colours.

    `extent` has the limits of the axes, `limits` the range (None: that of the values). `signed`:
    whether 0 has a meaning, see `colours_of`. `contour`: a level that is drawn as a line, or None.
    """

    title: str
    axes: tuple[str, str]
    label: str
    extent: tuple[float, float, float, float]
    limits: tuple[float, float] | None = None
    contour: float | None = None
    signed: bool = False


def require_matplotlib(use: str) -> None:
    """CommandError if Matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise CommandError(
            f"{use} requires matplotlib, which is not installed; pip install 'mpilbm[plot]'"
        ) from error


def figure_of(values: np.ndarray, solid: np.ndarray, style: Style) -> "Figure":
    """The figure of values (rows, columns); solid cells are grey."""
    from matplotlib.figure import Figure

    shown = np.ma.masked_array(values.astype(float), solid | ~np.isfinite(values))
    low, high = style.limits or _limits(shown)
    colours = colours_of(low, high, style.signed, fixed=style.limits is not None)
    left, right, bottom, upper = style.extent
    width, height = right - left, upper - bottom
    inches = INCHES / max(width, height)
    size = max(width * inches, 2.2) + 1.8, max(height * inches, 1.6) + 1.0
    with default_style(**SETTINGS):
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        axis = figure.add_subplot(facecolor=SOLID)
        image = axis.imshow(shown, origin="lower", extent=style.extent, **colours._asdict())
        if style.contour is not None and min(shown.shape) > 1 and low < style.contour < high:
            axis.contour(shown, levels=[style.contour], extent=style.extent, colors="black",
                         linewidths=0.8)  # fmt: skip
        axis.set(xlabel=style.axes[0], ylabel=style.axes[1])
        axis.locator_params(nbins=6)
        axis.set_title(style.title, fontsize=10, wrap=True)
        figure.colorbar(image, label=style.label, shrink=0.9)
    return figure


def _limits(shown: np.ma.MaskedArray) -> tuple[float, float]:
    """The range of the values, which is not empty."""
    if not shown.count():
        return 0.0, 1.0
    low, high = float(shown.min()), float(shown.max())
    return (low, high) if high > low else (low - 0.5e-6, high + 0.5e-6)


def png(values: np.ndarray, solid: np.ndarray, style: Style) -> bytes:
    """The picture as a PNG file; all pictures of one plane have the same number of pixels."""
    with BytesIO() as file, default_style(**SETTINGS):
        figure_of(values, solid, style).savefig(file, format="png", dpi=DPI)
        return file.getvalue()
