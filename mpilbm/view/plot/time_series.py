"""Curves of tables over time: monitor, permeability, Nusselt numbers, residuals, probes, …"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.core.units import lattice_text, si_text
from mpilbm.outputs.drawing import show_range
from mpilbm.outputs.monitor import dimensions_of, si_columns
from mpilbm.outputs.nusselt import supplied
from mpilbm.view.plot import (
    COLOURS,
    SINGLE,
    Drawn,
    colours,
    mean_lines,
    over_time,
    panels,
    plain_logarithms,
    time_of,
)
from mpilbm.view.plot.flow_rates import flow_rate_figure
from mpilbm.view.plot.forces import forces_figure
from mpilbm.view.plot.slices import FIELD_UNITS
from mpilbm.view.results import Run
from mpilbm.view.results.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MONITOR = 3.3, 2.3  # inches of a panel
MOST_CURVES = 8
TIMES = ("step", "time", "time_s")  # columns that are not drawn

Columns = dict[str, np.ndarray]


def of_tables(plt: Any, run: Run, across: int | None) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of the tables of a run by name, and lines of text."""
    figures: dict[str, Any] = {}
    sentences: list[str] = []
    for name in run.tables:
        if name == "monitor":
            table = run.table(name)
            if table.rows > 1 and across == 1:
                figures |= monitor_figures(plt, dict(table))
            elif table.rows > 1:
                figures[name] = monitor_figure(plt, dict(table), run.title, across)
        for first, draw in FIGURES.items():
            if f"{name}_".startswith(f"{first}_"):
                figures[name], lines = draw(plt, run, name)
                sentences += lines
    return {name: figure for name, figure in figures.items() if figure is not None}, sentences


# ------------------------------------------------------------------------------------ monitor


def in_si(curves: Columns) -> tuple[Columns, dict[str, str]]:
    """Curves of the monitor in SI where the file has them, and the unit of each by name."""
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
    rate = f"{square} {unit}".replace(" 1/", "/")
    return {"variance": square, "dissipation": rate}.get(part, unit)


def monitor_figure(plt: Any, curves: Columns, title: str, across: int | None = None) -> "Figure":
    """A panel for each quantity over the steps; components share one, mass as relative change."""
    curves, units = in_si(curves)
    groups = _groups(curves)
    figure, axes = panels(plt, len(groups), across or (3 if len(groups) > 4 else 2), MONITOR)
    for axis, (label, names) in zip(axes, groups.items(), strict=True):
        _draw(axis, label, names, curves, units)
    figure.suptitle(title, fontsize=10)
    return figure


def monitor_figures(plt: Any, curves: Columns) -> "dict[str, Figure]":
    """The panels of monitor_figure as figures of their own, by name."""
    curves, units = in_si(curves)
    found = {}
    for label, names in _groups(curves).items():
        figure, (axis,) = panels(plt, 1, 1, (MONITOR[0] + 1, MONITOR[1]))
        _draw(axis, label, names, curves, units)
        found[f"monitor_{label}"] = figure
    return found


def _groups(curves: Columns) -> dict[str, list[str]]:
    """The columns of each panel: those of a vector together."""
    groups: dict[str, list[str]] = {}
    for name in curves:
        if name not in TIMES:
            groups.setdefault(re.sub("_[xyz]$", "", name), []).append(name)
    return groups


def _draw(
    axis: "Axes", label: str, names: list[str], curves: Columns, units: dict[str, str]
) -> None:
    time, xlabel = ("time_s", "time (s)") if "time_s" in curves else ("step", "time (steps)")
    shown, unit = [], units[names[0]]
    for name, colour in zip(names, COLOURS, strict=False):
        values = curves[name]
        if re.match("mass(_|$)", name) and values[0]:
            label, unit, values = f"relative change of {label}", "1", values / values[0] - 1
        shown.append(values)
        axis.plot(curves[time], values, color=colour, linewidth=1.4, label=name[-1])
    ylabel = unit if unit[0] == "(" else f"({unit})"
    axis.set(title=label.replace("_", " "), xlabel=xlabel, ylabel=ylabel)
    show_range(axis, curves[time], shown)
    axis.locator_params(axis="x", nbins=6)
    axis.grid(alpha=0.25)
    if len(names) > 1:
        axis.legend()


# ------------------------------------------------------------------------------- other tables


def permeability_figure(plt: Any, run: Run, name: str = "permeability") -> Drawn:
    """The permeability along the driven axis over time, in mD if known, and a line of text.

    No figure with fewer than two rows.
    """
    table = run.table(name)
    suffix, unit = ("_mD", "mD") if any(key.endswith("_mD") for key in table) else ("", "cells^2")
    known = (axis for axis in "xyz" if f"k_{axis}" in table)
    driven = next((axis for axis in known if np.isfinite(table[f"k_{axis}"]).any()), None)
    if driven is None:
        return None, []
    text = _permeability_text(table, driven)
    if table.rows < 2:
        return None, [text]
    time, label = time_of(run, table)
    values = table[f"k_{driven}{suffix}"]
    figure, (axis,) = over_time(plt, run.title, label, 1, SINGLE)
    axis.plot(time, values, color=COLOURS[0], label=f"k_{driven}, last: {values[-1]:.5g} {unit}")
    axis.set(ylabel=f"permeability ({unit})")
    show_range(axis, time, [values])
    axis.legend()
    return figure, [text]


def _permeability_text(table: Table, axis: str) -> str:
    """k in all units that the table has, Reynolds number and porosity, of the last row."""
    last = {name: values[-1] for name, values in table.items()}
    units = {f"k_{axis}_mD": "mD", f"k_{axis}_m2": "m^2", f"k_{axis}": "cells^2"}
    k, *same = [f"{last[name]:.5g} {unit}" for name, unit in units.items() if name in last]
    parts = [f"permeability k_{axis} = {k}" + f" ({', '.join(same)})" * bool(same)]
    for name in ("reynolds", "porosity", "tortuosity"):
        if np.isfinite(last.get(name, np.nan)):
            words = "Re = <u> sqrt(k) / nu =" if name == "reynolds" else name
            parts.append(f"{words} {last[name]:.3g}")
    return ", ".join(parts) + f" at step {last['step']:,.0f}"


def nusselt_figure(plt: Any, run: Run, name: str) -> Drawn:
    """The Nusselt numbers of a table over time, of faces only where a value or flux is given."""
    table, case = run.table(name), run.case
    shown = [column for column in table if column.startswith("nusselt_")]
    for output in case.outputs:
        if output.name == "nusselt" and output.file == f"{name}.csv":
            # without a given flux the number of a face is round-off
            given = supplied(case.scalars[output.scales(case).number])
            faces = {axis + side for axis in "xyz" for side in "-+"} - given
            shown = [column for column in shown if column.removeprefix("nusselt_") not in faces]
            break
    if table.rows < 2 or not shown:
        return None, []
    time, label = time_of(run, table)
    figure, (axis,) = over_time(plt, run.title, label, 1, SINGLE)
    for column, colour in zip(shown, colours(len(shown)), strict=True):
        text = f"{column.removeprefix('nusselt_')}, last: {table[column][-1]:.5g}"
        axis.plot(time, table[column], color=colour, label=text)
    axis.set(ylabel="Nusselt number")
    show_range(axis, time, [table[column] for column in shown])
    axis.legend(fontsize=8)
    return figure, mean_lines(name, table["step"], {each: table[each] for each in shown})


def residual_figure(plt: Any, run: Run, name: str) -> Drawn:
    """The relative change that run.steady compares, over time, with its tolerance."""
    table, steady = run.table(name), run.case.run.steady
    column = next((each for each in table if each not in TIMES), None)
    if table.rows < 2 or column is None or not np.isfinite(table[column]).any():
        return None, []
    time, label = time_of(run, table)
    figure, (axis,) = over_time(plt, run.title, label, 1, SINGLE)
    axis.semilogy(time, table[column], color=COLOURS[0], marker=".", linewidth=1.2)
    if steady is not None:
        text = f"tolerance {steady.tolerance:g}"
        axis.axhline(steady.tolerance, color=COLOURS[1], linestyle="--", label=text)
        axis.legend()
    plain_logarithms(axis.yaxis)
    by_error = steady is not None and steady.by == "error"
    axis.set(ylabel="relative error of the mean (1)" if by_error else "relative change (1)")
    return figure, []


def probe_figure(plt: Any, run: Run, name: str) -> Drawn:
    """The fields of a probe over time, a panel for each, at most MOST_CURVES points.

    No figure of a CSV file, whose columns are named by the points; `mpilbm watch` shows them.
    """
    table = run.table(name)
    fields = [key for key in table if key not in TIMES]
    if table.rows < 2 or not fields or table.path.suffix == ".csv":
        return None, []
    time, label = time_of(run, table)
    height = 2.2 * len(fields) + 0.7
    figure, axes = over_time(plt, f"{run.title}: {name}", label, len(fields), (7, height))
    for axis, field in zip(axes, fields, strict=True):
        values = table[field].reshape(table.rows, -1)[:, :MOST_CURVES]
        parts = table[field].shape[2:] or (1,)
        for column in range(values.shape[1]):
            point, part = divmod(column, parts[0])
            text = f"point {point}" + f", {'xyz'[part]}" * (parts[0] > 1)
            axis.plot(time, values[:, column], linewidth=1.1, color=f"C{column}", label=text)
        unit = table.units.get(field) or FIELD_UNITS.get(field.partition("_")[0], "1")
        axis.set(ylabel=f"{field} ({unit})")
        show_range(axis, time, list(values.T))
        axis.legend(fontsize=8, ncols=2)
    return figure, []


# The first words of the name of a table -> its figure.
FIGURES: dict[str, Callable[[Any, Run, str], Drawn]] = {
    "forces": forces_figure,
    "flow_rate": flow_rate_figure,
    "permeability": permeability_figure,
    "nusselt": nusselt_figure,
    "steady": residual_figure,
    "probe": probe_figure,
}
