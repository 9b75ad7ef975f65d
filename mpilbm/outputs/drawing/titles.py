"""Titles that fit their figure: long ones are divided into lines."""

from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

LEAST = 8  # letters in a line
LINE = 1.25  # height of a line, relative to the size of its letters


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
    while width > most and letters > LEAST:
        letters = max(LEAST, min(letters - 1, int(letters * most / width)))
        after = [part for line in before for part in wrap(line, letters) or [""]]
        text.set_text("\n".join(after))
        width = text.get_window_extent().width
    return (len(after) - len(before)) * LINE * float(text.get_fontsize()) / 72
