"""Curves of monitor.csv over time."""

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.units import lattice_text, si_text
from mpilbm.outputs.drawing.figures import show_range
from mpilbm.outputs.monitor import dimensions_of, si_columns
from mpilbm.view.plot.panels import COLOURS, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def read_monitor(path: Path) -> dict[str, np.ndarray]:
    """Columns of monitor.csv by name; {} if the file does not exist or has fewer than two rows."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
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


def in_si(curves: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Curves in SI where the file has them, and the unit of each by name."""
    D, si = 3 if "momentum_z" in curves else 2, "time_s" in curves
    columns = si_columns(curves, D)
    known = {name: column for name, (column, _) in columns.items() if si and column in curves}
    kept = {n: curves[known.get(n, n)] for n in curves if n not in known.values()}
    units = {name: lattice_text(of) for name, (_, of) in dimensions_of(kept, D).items()}
    units |= {name: si_text(columns[name][0].removeprefix(f"{name}_")) for name in known}
    for name in kept:
        units[name] = _of_scalar(name, units.get(name, "1"))
    return kept, units | {"glups": "10^9 cells/s"}


def _of_scalar(name: str, unit: str) -> str:
    """The unit of a column; those of scalars have that of the scalar, or its square."""
    part, _, label = name.partition("_")
    if part == "mean":
        return f"unit of {label}"
    square = f"(unit of {label})^2"
    return {"variance": square, "dissipation": f"{square} {unit}".replace(" 1/", "/")}.get(
        part, unit
    )


PANEL = 3.3, 2.3  # inches


def monitor_figure(
    plt: Any, curves: dict[str, np.ndarray], title: str, across: int | None = None
) -> "Figure":
    """A panel for each quantity over the steps; components share one, mass as relative change."""
    curves, units = in_si(curves)
    groups = _groups(curves)
    figure, axes = panels(plt, len(groups), across or (3 if len(groups) > 4 else 2), PANEL)
    for axis, (label, names) in zip(axes, groups.items(), strict=True):
        _draw(axis, label, names, curves, units)
    figure.suptitle(title, fontsize=10)
    return figure


def monitor_figures(plt: Any, curves: dict[str, np.ndarray]) -> "dict[str, Figure]":
    """The panels of monitor_figure as figures of their own, by name."""
    curves, units = in_si(curves)
    found = {}
    for label, names in _groups(curves).items():
        figure, (axis,) = panels(plt, 1, 1, (PANEL[0] + 1, PANEL[1]))
        _draw(axis, label, names, curves, units)
        found[f"monitor_{label}"] = figure
    return found


def _groups(curves: dict[str, np.ndarray]) -> dict[str, list[str]]:
    """The columns of each panel: those of a vector together."""
    groups: dict[str, list[str]] = {}
    for name in curves:
        if name not in ("step", "time", "time_s"):
            label = name.removesuffix(name[-2:]) if name[-2:] in ("_x", "_y", "_z") else name
            groups.setdefault(label, []).append(name)
    return groups


def _draw(
    axis: "Axes", label: str, names: list[str], curves: dict[str, np.ndarray], units: dict[str, str]
) -> None:
    """A panel."""
    time, xlabel = ("time_s", "time (s)") if "time_s" in curves else ("step", "time (steps)")
    shown, unit = [], units[names[0]]
    for name, colour in zip(names, COLOURS, strict=False):
        values = curves[name]
        if re.match("mass(_|$)", name) and values[0]:
            label, unit, values = f"relative change of {label}", "1", values / values[0] - 1
        shown.append(values)
        axis.plot(curves[time], values, color=colour, linewidth=1.4, label=name[-1])
    axis.set(
        title=label.replace("_", " "), xlabel=xlabel, ylabel=unit if unit[0] == "(" else f"({unit})"
    )
    show_range(axis, curves[time], shown)
    axis.locator_params(axis="x", nbins=6)
    axis.grid(alpha=0.25)
    if len(names) > 1:
        axis.legend()
