"""Plots of a run: slices of speed and vorticity, profiles along centre lines, monitor curves.

Plots are in lattice units: lengths in cells, times in steps; with [units] in SI. Slices are in the
middle of the box: the plane of the middle cell, or the mean of the two planes next to the middle.
Solid cells are grey.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.errors import CommandError
from mpilbm.outputs.monitor import si_columns
from mpilbm.plot.cuts import cuts_of
from mpilbm.plot.profiles import (
    COLOURS,
    Comparison,
    comparison_figure,
    profile_figure,
)
from mpilbm.plot.slices import draw_speed, draw_vorticity, field_figure, fluid_fields, slice_figure
from mpilbm.plot.time_series import (
    forces_figure,
    permeability_figure,
    probe_figure,
    residual_figure,
)
from mpilbm.results.run import Run, open_run
from mpilbm.results.snapshot import view
from mpilbm.storage.directory import make_folder
from mpilbm.storage.files import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to draw: a step (None: the last), a field (None: all), a plane (None: the middle)."""

    step: int | None = None
    field: str | None = None
    plane: str | None = None
    format: str = "png"


def draw(
    directory: Path | str,
    target: Path | str | None = None,
    references: Sequence[Path | str] = (),
    reynolds: float | None = None,
    choice: Choice | None = None,
) -> tuple[list[Path], list[str]]:
    """Plot the results in an output folder; writes files to `target`, by default the folder.

    Returns the files, and lines of text: the largest deviation from each reference, and the means
    of forces. Raises CommandError if the folder contains nothing to draw or a file cannot be read
    or written.
    """
    plt, choice = pyplot(), choice or Choice()
    directory = Path(directory)
    target = Path(target or directory)
    run = open_run(directory)
    figures, sentences = _of_snapshot(plt, run, references, reynolds, choice)
    if choice.field is None:
        more, lines = _of_tables(plt, run)
        figures, sentences = figures | more, sentences + lines
    if not figures:
        last_snapshot(directory)  # reports what is missing
    make_folder(target)
    files = [
        _save(plt, figure, target / f"{name}.{choice.format}", choice.format)
        for name, figure in figures.items()
    ]
    return files, sentences


def _of_snapshot(
    plt: Any,
    run: Run,
    references: Sequence[Path | str],
    reynolds: float | None,
    choice: Choice,
) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of one snapshot by name."""
    if choice.step is None and not len(run.steps) and not (references or choice.field):
        return {}, []
    path = (
        last_snapshot(run.directory)
        if choice.step is None
        else run.snapshots.file(choice.step).path
    )
    with view(path) as snapshot:
        cuts = cuts_of(snapshot, choice.plane)
        if choice.field is not None:
            return {choice.field: field_figure(plt, snapshot, cuts, choice.field)}, []
        comparisons = [Comparison.read(path, snapshot, reynolds) for path in references]
        figures = {
            "speed": slice_figure(plt, snapshot, draw_speed, cuts),
            "vorticity": slice_figure(plt, snapshot, draw_vorticity, cuts),
            "profiles": profile_figure(plt, snapshot),
        }
        for name in fluid_fields(snapshot):
            figures[name] = field_figure(plt, snapshot, cuts, name)
        if comparisons:
            figures["comparison"] = comparison_figure(plt, snapshot, comparisons)
    return figures, [comparison.sentence() for comparison in comparisons]


def _of_tables(plt: Any, run: Run) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of the tables of a run by name."""
    figures: dict[str, Any] = {}
    sentences: list[str] = []
    for name in run.tables:
        if name == "monitor":
            curves = read_monitor(run.directory / "monitor.csv")
            figures[name] = monitor_figure(plt, curves, run.title) if curves else None
        elif name.startswith("forces_"):
            found = forces_figure(plt, run, name.removeprefix("forces_"))
            figures[name], lines = found or (None, [])
            sentences += lines
        elif name == "permeability":
            figures[name] = permeability_figure(plt, run)
        elif name == "steady":
            figures[name] = residual_figure(plt, run)
        elif name.startswith("probe_"):
            figures[name] = probe_figure(plt, run, name)
    return {name: figure for name, figure in figures.items() if figure is not None}, sentences


def pyplot() -> Any:
    """The module pyplot of Matplotlib, with a backend that needs no display."""
    try:
        import matplotlib
    except ImportError as error:
        raise CommandError(
            "plot needs matplotlib, which is not installed; pip install 'mpilbm[plot]'"
        ) from error
    matplotlib.rcdefaults()  # a file matplotlibrc in the current folder can make it start LaTeX
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({
        "font.size": 9, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False,
        "text.parse_math": False,
        "figure.constrained_layout.use": True, "savefig.dpi": 150, "legend.frameon": False,
    })  # fmt: skip
    return plt


def last_snapshot(directory: Path) -> Path:
    """The snapshot of the latest step in an output folder."""
    if not isdir(directory):
        raise CommandError(f"{directory}: no such folder; name the output folder of a run")
    files = directory.glob("snapshot_[0-9]*.vtkhdf")
    last = max(files, key=lambda file: (len(file.name), file.name), default=None)
    if last is None:
        raise CommandError(
            f"{directory}: holds no snapshot_*.vtkhdf; add an [[output]] with name = 'snapshot' to "
            "the case and run it"
        )
    return last


def _save(plt: Any, figure: "Figure", path: Path, kind: str) -> Path:
    try:
        with whole(path, "wb") as file:
            figure.savefig(file, format=kind)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; choose a folder with --output") from error
    plt.close(figure)
    return path


# --------------------------------------------------------------------------------------- monitor


def read_monitor(path: Path) -> dict[str, np.ndarray]:
    """Columns of monitor.csv by name; {} if the file does not exist or has fewer than two rows."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    if len(rows) < 3:
        return {}
    try:
        table = np.array([[float(cell or "nan") for cell in row] for row in rows[1:]])
    except ValueError as error:
        raise CommandError(
            f"{path}: is not a monitor table: {error}; run the case again"
        ) from error
    return dict(zip(rows[0], table.T, strict=True))


def _in_si(curves: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Curves in SI where the file has them, and their units by name; {} without [units]."""
    if "time_s" not in curves:
        return curves, {}
    columns = si_columns(curves, 3 if "momentum_z" in curves else 2)
    known = {name: column for name, (column, _) in columns.items() if column in curves}
    kept = {n: curves[known.get(n, n)] for n in curves if n not in known.values()}
    return kept, {n: column.removeprefix(f"{n}_").replace("_", " ") for n, column in known.items()}


def monitor_figure(plt: Any, curves: dict[str, np.ndarray], title: str) -> "Figure":
    """A panel for each quantity over the steps; components share one, mass as relative change."""
    curves, units = _in_si(curves)
    time, xlabel = ("time_s", "t (s)") if units else ("step", "step")
    panels: dict[str, list[str]] = {}
    for name in curves:
        if name not in ("step", "time", "time_s"):
            panels.setdefault(name.removesuffix(name[-2:]) if name[-2:] in ("_x", "_y", "_z")
                              else name, []).append(name)  # fmt: skip
    across = 3 if len(panels) > 4 else 2
    down = -(-len(panels) // across)
    size = (3.3 * across, 2.3 * down + 0.4)
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False)
    for axis, (label, names) in zip(axes.flat, panels.items(), strict=False):
        for name, colour in zip(names, COLOURS, strict=False):
            values = curves[name]
            if label.split(".")[-1] == "mass" and values[0]:
                label, values = "relative change of mass", values / values[0] - 1
            unit = f" ({units[name]})" if name in units and "change" not in label else ""
            axis.plot(curves[time], values, color=colour, linewidth=1.4, label=name[-1])
        axis.set(title=label.replace("_", " ") + unit, xlabel=xlabel)
        axis.grid(alpha=0.25)
        if len(names) > 1:
            axis.legend()
    for axis in list(axes.flat)[len(panels) :]:
        axis.remove()
    figure.suptitle(title, fontsize=10)
    return figure
