"""Curves as text: dots of braille characters, two by four in each character."""

from collections.abc import Sequence
from math import inf, isfinite, log10

import numpy as np

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # [column][row], from the top
BLANK = 0x2800
LABEL = 10  # characters of the numbers at the left


def curve(
    x: Sequence[float],
    y: Sequence[float],
    width: int,
    height: int,
    logarithmic: bool = False,
    plain: bool = False,
    limits: tuple[float, float] = (-inf, inf),
) -> list[str]:
    """Lines of a curve y(x) in `width` by `height` characters, with the range of y at the left.

    Values that are not finite or not within `limits` are omitted; with `logarithmic` also those
    that are not positive. `plain`: only ASCII characters.
    """
    points = [(a, log10(b) if logarithmic else b) for a, b in zip(x, y, strict=True)
              if isfinite(b) and (b > 0 or not logarithmic)
              and limits[0] <= b <= limits[1]]  # fmt: skip
    columns = max(1, width - LABEL - 1)
    if not points:
        return [" " * LABEL + " no values"] + [""] * (height - 1)
    low, high = min(b for _, b in points), max(b for _, b in points)
    per = (1, 1) if plain else (2, 4)
    dots = _dots(np.array(points), (low, high), columns * per[0], height * per[1])
    rows = _plain(dots) if plain else _braille(dots)
    ends = {0: _number(high, logarithmic), height - 1: _number(low, logarithmic)}
    if high == low:
        ends = {height // 2: _number(high, logarithmic)}
    return [f"{ends.get(k, ''):>{LABEL}} {row}" for k, row in enumerate(rows)]


def _number(value: float, logarithmic: bool) -> str:
    return f"{10**value if logarithmic else value:.4g}"


def _dots(points: np.ndarray, limits: tuple[float, float], columns: int, rows: int) -> np.ndarray:
    """bool (rows, columns), the first row at the top; in each column from its least to its largest.

    The range of a column includes the last value before it, so that the curve is connected.
    """
    x, y = points.T
    low, high = limits
    span = x[-1] - x[0] or 1
    column = np.rint((x - x[0]) / span * (columns - 1)).astype(int)
    row = np.full(len(y), rows // 2)
    if high > low:
        row = np.rint((high - y) / (high - low) * (rows - 1)).astype(int)
    found, before = np.zeros((rows, columns), bool), None
    for each in np.unique(column):
        mine = row[column == each]
        if before is not None and before[0] + 1 < each:
            steps = np.arange(before[0] + 1, each)
            between = np.interp(steps, (before[0], each), (before[1], mine[0]))
            found[np.rint(between).astype(int), steps] = True
        found[mine.min() : mine.max() + 1, each] = True
        before = each, mine[-1]
    return found


def _braille(dots: np.ndarray) -> list[str]:
    rows, columns = dots.shape
    lines = []
    for top in range(0, rows, 4):
        codes = np.full(columns // 2, BLANK)
        for column, bits in enumerate(DOTS):
            for row, bit in enumerate(bits):
                codes |= bit * dots[top + row, column::2]
        lines.append("".join(map(chr, codes.tolist())))
    return lines


def _plain(dots: np.ndarray) -> list[str]:
    return ["".join("*" if dot else " " for dot in row) for row in dots]
