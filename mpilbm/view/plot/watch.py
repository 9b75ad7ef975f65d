"""`mpilbm watch`: the progress and the curves of a run in a terminal, read from its files."""

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.files.file_digest import unsealed
from mpilbm.core.machine import terminal
from mpilbm.core.printable import one_line
from mpilbm.outputs.core.summary import RUNNING
from mpilbm.outputs.core.tables import read
from mpilbm.outputs.drawing import shown_range
from mpilbm.outputs.flow_rate import DIFFERENCES
from mpilbm.storage.csv_log import COEFFICIENTS, short
from mpilbm.storage.directory import STEADY, SUMMARY
from mpilbm.storage.tables import BEFORE
from mpilbm.view.results.state import RunState, state_of
from mpilbm.view.results.tables import last_rows

if TYPE_CHECKING:
    from rich.console import RenderableType

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
    points = [
        (a, log10(b) if logarithmic else b)
        for a, b in zip(x, y, strict=True)
        if isfinite(b) and (b > 0 or not logarithmic) and limits[0] <= b <= limits[1]
    ]
    columns = max(1, width - LABEL - 1)
    if not points:
        return [" " * LABEL + " no values"] + [""] * (height - 1)
    low, high = min(b for _, b in points), max(b for _, b in points)
    per = (1, 1) if plain else (2, 4)
    dots = _dots(np.array(points), (low, high), columns * per[0], height * per[1])
    rows = ["".join("*" if dot else " " for dot in row) for row in dots]
    rows = rows if plain else _braille(dots)
    ends = {0: high, height - 1: low} if high > low else {height // 2: high}
    texts = {k: f"{10**end if logarithmic else end:.4g}" for k, end in ends.items()}
    return [f"{texts.get(k, ''):>{LABEL}} {row}" for k, row in enumerate(rows)]


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


TAIL_BYTES = 4 << 20  # of a CSV file; curves of longer ones begin later
MONITORED = ("kinetic_energy", "max_speed", "mass", "enstrophy")
MOST_CURVES, HEIGHT, HEAD, NARROW = 12, 6, 5, 90  # HEAD: lines besides the curves
PERIOD = 1.0  # seconds


@dataclass(frozen=True)
class Curve:
    """A quantity over the steps."""

    title: str
    steps: list[float]
    values: list[float]
    logarithmic: bool = False

    @property
    def limits(self) -> tuple[tuple[float, float], str]:
        """The range that is shown, and how many points are outside, in words."""
        found = shown_range(np.array(self.steps), [np.array(self.values)])
        if self.logarithmic or found is None:
            return (-inf, inf), ""
        return (found.low, found.high), found.note


@dataclass(frozen=True)
class Shown:
    """What is shown of a run: its title, its state and its curves."""

    title: str
    run: RunState
    curves: tuple[Curve, ...]


def look(folder: Path) -> Shown:
    """The run in an output folder; CommandError if there is none."""
    path = folder / SUMMARY
    try:
        summary: dict[str, Any] = unsealed(path.read_text("utf-8"), verify=False)
    except FileNotFoundError:
        raise CommandError(
            f"{folder} contains no {SUMMARY}; name the output folder of a run, such as case.out"
        ) from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise CommandError(
            f"{path} cannot be read: {problem}; name the output folder of a run, such as case.out"
        ) from None
    title = one_line(str(summary.get("title") or folder.resolve().name))
    return Shown(title, state_of(folder, summary), tuple(curves_of(folder)))


def curves_of(folder: Path) -> Iterator[Curve]:
    """The curves of the residual, the monitor, forces, flow rates and probes of a run."""
    several = [*map(folder.glob, ("forces_*.csv", "flow_rate_*.csv", "probe_*.csv"))]
    for path in (
        folder / STEADY,
        folder / "monitor.csv",
        *chain.from_iterable(map(sorted, several)),
    ):
        header, rows = table(path)
        if not len(rows) or re.search(BEFORE, path.stem):
            continue
        for name in _chosen(path.name, header):
            values = rows[:, header.index(name)].tolist()
            title = f"{path.stem}: {name}"
            yield Curve(title, rows[:, 0].tolist(), values, path.name == STEADY)
    for path in sorted(folder.glob("probe_*.h5")):
        yield from () if re.search(BEFORE, path.stem) else _probe_curves(path)


def _probe_curves(path: Path) -> Iterator[Curve]:
    """The first component of each field at the first point of a table."""
    try:
        rows = read(path)
    except (OSError, RuntimeError, KeyError):  # not complete yet, or another file
        return
    steps = rows["step"].tolist()
    for name, values in rows.items():
        if name not in ("step", "time") and steps and values.ndim > 1 and values[0].size:
            first = values.reshape(len(steps), -1)[:, 0].tolist()
            axis = " x" if values.ndim == 3 else ""
            yield Curve(f"{path.stem}: {name}{axis}, point 0", steps, first)


def _chosen(file: str, header: list[str]) -> list[str]:
    """The columns of a file that are drawn."""
    if file == STEADY:
        return ["residual"]
    if file == "monitor.csv":
        return [name for name in MONITORED if name in header]
    names = header[2:]
    if file.startswith("forces_"):
        coefficients = [name for name in names if short(name) in COEFFICIENTS]
        return coefficients or [name for name in names if name.startswith("force_")][:2]
    if file.startswith("flow_rate_"):
        return [name for name in DIFFERENCES if name in names] or names[:1]
    return names[:2]


def table(path: Path) -> tuple[list[str], np.ndarray]:
    """The columns of a CSV file, and its last complete rows; ([], no rows) if it is none."""
    try:
        first, text = last_rows(path, TAIL_BYTES)
    except OSError:
        return [], np.zeros((0, 0))
    header, rows = first.split(","), []
    for row in text:
        with suppress(ValueError):  # no numbers
            numbers = [float(value) for value in row.split(",")]
            rows += [numbers] if len(numbers) == len(header) else []
    return header, np.array(rows).reshape(len(rows), len(header))


def picture(shown: Shown, width: int, plain: bool, height: int | None = None) -> "RenderableType":
    """The run as text of this width, the curves in one or two columns; the first that fit."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    columns = 1 if width < NARROW else 2
    each = width // columns - 1
    most = MOST_CURVES
    if height is not None:
        most = min(most, max(1, (height - HEAD) // (HEIGHT + 2)) * columns)
    grid = Table.grid(padding=(0, 1))
    cells = []
    for one in shown.curves[:most]:
        limits, note = one.limits
        drawn = curve(one.steps, one.values, each, HEIGHT, one.logarithmic, plain, limits)
        last = f" = {one.values[-1]:.5g}{f' ({note})' if note else ''}"
        title = one.title[-max(1, each - len(last)) :]  # its end names the quantity
        text = Text(no_wrap=True, overflow="crop")
        text.append((title + last)[:each] + "\n", style="bold")
        text.append("\n".join(line[:each] for line in drawn) + "\n", style="cyan")
        cells.append(text)
    for k in range(0, len(cells), columns):
        grid.add_row(*cells[k : k + columns])
    head = Text(shown.title + "\n", style="bold")
    head.append(shown.run.line() + "\n")
    more = len(shown.curves) - most
    end = [Text(f"and {more} more curves")] if more > 0 else []
    return Group(head, grid, *end)


def watch(folder: Path, once: bool) -> None:
    """Show the run in a folder every second until it ends; with `once`, or in a file, once.

    Ctrl-C ends it. Raises CommandError if the folder has no run.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False, file=terminal.unfiltered() if sys.stdout.isatty() else None)
    plain = "utf" not in (sys.stdout.encoding or "").lower()
    shown = look(folder)
    if once or not console.is_terminal:
        console.print(picture(shown, console.width, plain))
        return

    def present() -> "RenderableType":
        return picture(shown, console.width, plain, console.height)

    with Live(present(), console=console, auto_refresh=False) as live:
        try:
            while shown.run.status == RUNNING:
                time.sleep(PERIOD)
                shown = look(folder)
                live.update(present(), refresh=True)
        except KeyboardInterrupt:
            return
