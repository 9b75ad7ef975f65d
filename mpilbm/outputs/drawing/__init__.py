"""Figures made from arrays, for pictures during a run and after it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from textwrap import wrap
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.outputs.core.averages import last_half

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


SIGNED = ("phi", "q_criterion", "vorticity")  # fields whose value 0 has a meaning
ROUND_OFF = 0.01  # values of one sign, relative to those of the other, that may be round-off
SOLID = "0.65"
INCHES, DPI = 7.0, 120  # of the longer side of a plane; dots per inch
SETTINGS = {"text.parse_math": False, "font.size": 9}
FEWEST_LETTERS = 8  # in a line of a title
LINE = 1.25  # height of a line, relative to the size of its letters
SPIKE = 3.0  # the range of all values is shown up to so many times that of the last half
MOST_OUTSIDE = 1 / 5  # of all points; more are no spike, but a decay
MARGIN = 0.2  # least margin around the last half, relative to its largest value
BACK = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1}  # of a note on curves
SETTING = RLock()  # Matplotlib's settings belong to the process, and several threads draw


@contextmanager
def default_style(**settings: Any) -> Iterator[None]:
    """Matplotlib's defaults with these settings, so that a figure does not depend on others.

    What the program has set, and a file matplotlibrc of the current folder, which can make
    Matplotlib start LaTeX, have no effect on figures that are made and saved inside. One thread
    at a time is inside.
    """
    import matplotlib

    with SETTING, matplotlib.rc_context():
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
    stream = BytesIO()
    with default_style(**{"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


class Colours(NamedTuple):
    """The name of a colour map, and the values at its ends; the keywords of `imshow`."""

    cmap: str
    vmin: float
    vmax: float


def colours_of(low: float, high: float, signed: bool, fixed: bool = False) -> Colours:
    """The colours of values from `low` to `high`.

    A signed quantity with values of both signs has a diverging map, which is white at 0 and
    symmetric. `fixed`: the ends are kept, so that only symmetric ones have a diverging map.
    """
    top = max(-low, high)
    if signed and min(-low, high) > ROUND_OFF * top and (not fixed or -low == high):
        return Colours("RdBu_r", -top, top)
    return Colours("viridis", low, high)


def fit(figure: "Figure") -> None:
    """Divide titles that are wider than the figure or their panel; the figure becomes higher."""
    figure.draw_without_rendering()  # a title has its place only then
    ends = 0.0, figure.bbox.width
    rows: dict[int, float] = {}  # inches that a row of panels becomes higher
    for text in figure.texts:
        if text.get_text() == figure.get_suptitle():
            rows[-1] = _divide(text, ends)
    for axis in figure.axes:
        row = _row(axis) or 0
        rows[row] = max(rows.get(row, 0.0), _divide(axis.title, _column(figure, axis)))
    if more := sum(rows.values()):
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + more)


def _column(figure: "Figure", axis: "Axes") -> tuple[float, float]:
    """The pixels that a title may occupy: half-way to the panels at the left and at the right."""
    frame, row = axis.get_window_extent(), _row(axis)
    others = [
        each.get_window_extent() for each in figure.axes if row is not None and _row(each) == row
    ]
    left = [(each.x1 + frame.x0) / 2 for each in others if each.x1 <= frame.x0]
    right = [(each.x0 + frame.x1) / 2 for each in others if each.x0 >= frame.x1]
    return max(left, default=0.0), min(right, default=figure.bbox.width)


def _row(axis: "Axes") -> int | None:
    """The row of a panel; None for a colour bar."""
    place = axis.get_subplotspec()
    return place.rowspan.start if place else None


def _divide(text: "Text", ends: tuple[float, float]) -> float:
    """Divide the lines of a text that extends beyond these pixels; returns the inches of more."""
    found, before = text.get_window_extent(), text.get_text().split("\n")
    middle = (found.x0 + found.x1) / 2
    most = 2 * min(middle - ends[0], ends[1] - middle)
    after, width, letters = before, found.width, max(map(len, before))
    while width > most and letters > FEWEST_LETTERS:
        letters = max(FEWEST_LETTERS, min(letters - 1, int(letters * most / width)))
        after = [part for line in before for part in wrap(line, letters) or [""]]
        text.set_text("\n".join(after))
        width = text.get_window_extent().width
    return (len(after) - len(before)) * LINE * float(text.get_fontsize()) / 72


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
            line: Any = {"levels": [style.contour], "colors": "black", "linewidths": 0.8}
            axis.contour(shown, extent=style.extent, **line)
        axis.set(xlabel=style.axes[0], ylabel=style.axes[1])
        axis.locator_params(nbins=6)
        axis.set_title(style.title, fontsize=10, wrap=True)
        figure.colorbar(image, label=style.label, shrink=0.9)
    return figure


def _limits(shown: "np.ma.MaskedArray") -> tuple[float, float]:
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


class Range(NamedTuple):
    """The ends of an axis, and the number of the points that are outside, of all points."""

    low: float
    high: float
    outside: int
    points: int

    @property
    def note(self) -> str:
        """`3 of 80 points outside`, or "" if all points are shown."""
        return f"{self.outside} of {self.points} points outside" if self.outside else ""


def shown_range(time: np.ndarray, curves: Sequence[np.ndarray]) -> Range | None:
    """The range of curves over the time; None if no value is finite.

    The values of the last half of the time have a margin of half of their own range, at least
    MARGIN of the largest. If all values need more than SPIKE times this, those beyond it are not
    shown, unless they are many.
    """
    values = np.array(curves, float)
    known = np.isfinite(values)
    late = values[:, last_half(time)]
    late = late[np.isfinite(late)]
    if not known.any():
        return None
    every = values[known]
    found = Range(float(every.min()), float(every.max()), 0, every.size)
    if not late.size:
        return found
    least, most = float(late.min()), float(late.max())
    margin = max((most - least) / 2, MARGIN * max(abs(least), abs(most)))
    if found.high - found.low <= SPIKE * (most - least + 2 * margin):
        return found
    low, high = max(found.low, least - margin), min(found.high, most + margin)
    outside = int(((every < low) | (every > high)).sum())
    return Range(low, high, outside, every.size) if outside <= MOST_OUTSIDE * every.size else found


def show_range(axis: "Axes", time: np.ndarray, curves: Sequence[np.ndarray]) -> None:
    """Give an axis with linear curves this range, and write how many points are outside."""
    found = shown_range(time, curves)
    if found is None or not found.outside:
        return
    space = 0.05 * (found.high - found.low)
    axis.set_ylim(found.low - space, found.high + space)
    above = any((each > found.high).any() for each in curves)  # on this side is a margin
    place, va = (0.97, "top") if above else (0.03, "bottom")
    look: Any = {"ha": "center", "va": va, "fontsize": 8, "color": "0.3", "bbox": BACK}
    axis.text(0.5, place, found.note, transform=axis.transAxes, **look)
