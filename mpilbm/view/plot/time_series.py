"""Curves over time."""

import csv
import re
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.units import counted, lattice_text, si_text
from mpilbm.outputs.drawing.ranges import last_half, show_range
from mpilbm.outputs.monitor import dimensions_of, si_columns
from mpilbm.outputs.nusselt.scales import supplied
from mpilbm.storage.csv_log import COEFFICIENTS, short
from mpilbm.view.plot.frequencies import Oscillation, oscillation
from mpilbm.view.plot.panels import COLOURS, panels, plain_logarithms
from mpilbm.view.plot.slices import FIELD_UNITS
from mpilbm.view.results.run import Run
from mpilbm.view.results.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mpilbm.case.case import Case
    from mpilbm.outputs.body_forces import BodyForces


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


MOST_CURVES = 8
ROUND_OFF = 1e-6  # of the force; its components in float32 have this error


def forces_figure(plt: Any, run: Run, label: str) -> "tuple[Figure, list[str]] | None":
    """The coefficients, or the force, over time, and a line of text for each; None without rows.

    Across the flow the text has the frequency, if the signal has one, see `oscillation`.
    """
    table = run.table(f"forces_{label}")
    if table.rows < 2:
        return None
    names = [name for name in table if short(name) in COEFFICIENTS]
    forces = [name for name in table if name.startswith("force_")]
    names = names or [name for name in forces if ("(" in name) != ("time_s" in table)]
    time, unit = _time(run, table)
    half = last_half(time)
    figure, axes = plt.subplots(len(names), 1, figsize=(7, 2.2 * len(names) + 0.7),
                                sharex=True, squeeze=False)  # fmt: skip
    scale, sentences = _strouhal_scale(run, label), []
    size = sqrt(sum(np.square(table[name][half]).mean() for name in names))
    for axis, name, colour in zip(axes.flat, names, COLOURS, strict=False):
        values = table[name]
        axis.plot(time, values, color=colour, linewidth=1.2)
        mean, rms = values[half].mean(), values[half].std()
        axis.axhline(mean, color="0.3", linewidth=0.8, linestyle="--")
        axis.axvspan(time[half][0], time[-1], color="0.5", alpha=0.08)
        text = f"mean {mean:.5g}, rms {rms:.3g}"
        if max(abs(mean), rms) < ROUND_OFF * size:
            text += f", 0 within round-off (below {ROUND_OFF:g} of the force)"
        # sound waves dominate the spectrum of the drag
        across = _across(run, label, name)
        found = oscillation(time[half], values[half], size) if across else None
        if found is not None:
            text += ", " + _frequency(found, scale, unit)
        axis.set(ylabel=_plain(name))
        axis.set_title(f"last half: {text}", fontsize=9)
        axis.grid(alpha=0.25)
        show_range(axis, time, [values])
        sentences.append(f"{label}: {_plain(name)}: {text} (last half of the rows)")
    axes.flat[-1].set_xlabel(f"time ({unit})")
    figure.suptitle(f"{run.title}: {label}", fontsize=10)
    return figure, sentences


def _across(run: Run, label: str, name: str) -> bool:
    """Whether a column is a lift, or a force across the flow."""
    output = _forces_of(run.case, label)
    if output is None or output.velocity is None:
        return True
    along = "xyz"[int(np.abs(output.velocity).argmax())]
    return short(name) != "c_d" and not name.startswith(f"force_{along}")


def _frequency(found: Oscillation, scale: "Scale | None", unit: str) -> str:
    """The frequency in words, as Strouhal number f L / U if its scale is known."""
    end = f"({counted(found.periods, 'period')}"
    if scale is None:
        return (f"frequency {found.frequency:.5g} ± {found.error:.1g} per {_single(unit)} "
                f"{end})")  # fmt: skip
    return (f"Strouhal number {found.frequency * scale.time:.5g} ± {found.error * scale.time:.1g} "
            f"{end}, L = {scale.length:.5g} cells)")  # fmt: skip


def _single(unit: str) -> str:
    return "step" if unit == "steps" else unit


def _plain(name: str) -> str:
    """The name of a column with its unit, as a label of an axis."""
    if found := re.fullmatch("(force)_([xyz])_(.*)", name):
        return f"{found[1]} {found[2]} ({si_text(found[3])})"
    return name.replace("_", " ", 1) if "(" in name else name


class Scale(NamedTuple):
    """The length L in cells, and the time L / U in the unit of the figure: St = f L / U."""

    length: float
    time: float


def _strouhal_scale(run: Run, label: str) -> Scale | None:
    """The scale of a Strouhal number; None if it is unknown, as in results of earlier versions.

    L: that of `BodyForces.lengths`, which the run has recorded.
    """
    output, lengths = _forces_of(run.case, label), run.summary.get("lengths")
    length = lengths.get(label) if isinstance(lengths, dict) else None
    if output is None or output.velocity is None or not isinstance(length, int | float):
        return None
    speed = sqrt(sum(v * v for v in output.velocity))
    if not length or not speed:
        return None
    return Scale(length, length / speed * (run.units.step if run.units else 1.0))


def _forces_of(case: "Case", label: str) -> "BodyForces | None":
    for output in case.outputs:
        if output.name == "body_forces" and label in (case.bodies[k].label
                                                      for k in output.bodies(case)):  # fmt: skip
            return output
    return None


def _time(run: Run, table: Table) -> tuple[np.ndarray, str]:
    """The times of the rows, in s if the run is in SI, else in steps."""
    if "time_s" in table:
        return table["time_s"], "s"
    if run.units is not None:
        return table["step"] * run.units.step, "s"
    return table["step"].astype(float), "steps"


def permeability_figure(plt: Any, run: Run) -> "tuple[Figure | None, list[str]]":
    """The permeability along the driven axis over time, in mD if known, and a line of text.

    No figure with fewer than two rows.
    """
    table = run.table("permeability")
    suffix, unit = ("_mD", "mD") if any(name.endswith("_mD") for name in table) else ("", "cells^2")
    driven = next((axis for axis in "xyz" if f"k_{axis}" in table
                   and np.isfinite(table[f"k_{axis}"]).any()), None)  # fmt: skip
    if driven is None:
        return None, []
    text = _permeability_text(table, driven)
    if table.rows < 2:
        return None, [text]
    time, label = _time(run, table)
    values = table[f"k_{driven}{suffix}"]
    figure, axis = plt.subplots(figsize=(6, 3.4))
    axis.plot(time, values, color=COLOURS[0], label=f"k_{driven}, last: {values[-1]:.5g} {unit}")
    axis.set(xlabel=f"time ({label})", ylabel=f"permeability ({unit})")
    show_range(axis, time, [values])
    axis.grid(alpha=0.25)
    axis.legend()
    figure.suptitle(run.title, fontsize=10)
    return figure, [text]


def _permeability_text(table: Table, axis: str) -> str:
    """k in all units that the table has, Reynolds number and porosity, of the last row."""
    units = (("_mD", "mD"), ("_m2", "m^2"), ("", "cells^2"))
    k, *same = [f"{table[f'k_{axis}{suffix}'][-1]:.5g} {unit}" for suffix, unit in units
                if f"k_{axis}{suffix}" in table]  # fmt: skip
    parts = [f"permeability k_{axis} = {k}" + f" ({', '.join(same)})" * bool(same)]
    for name, words in (("reynolds", "Re = <u> sqrt(k) / nu ="), ("porosity", "porosity"),
                        ("tortuosity", "tortuosity")):  # fmt: skip
        if name in table and np.isfinite(table[name][-1]):
            parts.append(f"{words} {table[name][-1]:.3g}")
    return ", ".join(parts) + f" at step {table['step'][-1]:,.0f}"


def _adiabatic(case: "Case", file: str) -> set[str]:
    """The columns of faces through which the scalar has no given flux: they are round-off."""
    for output in case.outputs:
        if output.name == "nusselt" and output.file == file:
            scalar = case.scalars[output.scales(case).number]
            faces = {axis + side for axis in "xyz" for side in "-+"} - supplied(scalar)
            return {f"nusselt_{face}" for face in faces}
    return set()


def nusselt_figure(plt: Any, run: Run, name: str) -> "Figure | None":
    """The Nusselt numbers of a table over time, of faces only where a value or flux is given."""
    table = run.table(name)
    hidden = _adiabatic(run.case, f"{name}.csv")
    names = [each for each in table if each.startswith("nusselt_") and each not in hidden]
    if table.rows < 2 or not names:
        return None
    time, label = _time(run, table)
    figure, axis = plt.subplots(figsize=(6, 3.4))
    for each, colour in zip(names, COLOURS, strict=False):
        last, shown = table[each][-1], each.removeprefix("nusselt_")
        axis.plot(time, table[each], color=colour, label=f"{shown}, last: {last:.5g}")
    axis.set(xlabel=f"time ({label})", ylabel="Nusselt number")
    show_range(axis, time, [table[each] for each in names])
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8)
    figure.suptitle(run.title, fontsize=10)
    return figure


def residual_figure(plt: Any, run: Run) -> "Figure | None":
    """The relative change that run.steady compares, over time, with its tolerance."""
    table = run.table("steady")
    name = next((each for each in table if each not in ("step", "time", "time_s")), None)
    if table.rows < 2 or name is None:
        return None
    time, label = _time(run, table)
    figure, axis = plt.subplots(figsize=(6, 3.4))
    axis.semilogy(time, table[name], color=COLOURS[0], marker=".", linewidth=1.2)
    if run.case.run.steady is not None:
        axis.axhline(run.case.run.steady.tolerance, color=COLOURS[1], linestyle="--",
                     label=f"tolerance {run.case.run.steady.tolerance:g}")  # fmt: skip
        axis.legend()
    plain_logarithms(axis.yaxis)
    axis.set(xlabel=f"time ({label})", ylabel="relative change (1)")
    axis.grid(alpha=0.25)
    figure.suptitle(run.title, fontsize=10)
    return figure


def probe_figure(plt: Any, run: Run, name: str) -> "Figure | None":
    """The fields of a probe over time, a panel for each, at most MOST_CURVES points."""
    table = run.table(name)
    fields = [key for key in table if key not in ("step", "time", "time_s")]
    if table.rows < 2 or not fields:
        return None
    if table.path.suffix == ".csv":
        return None  # its columns are named by the points; `watch` shows them
    time, label = _time(run, table)
    figure, axes = plt.subplots(len(fields), 1, figsize=(7, 2.2 * len(fields) + 0.7),
                                sharex=True, squeeze=False)  # fmt: skip
    for axis, field in zip(axes.flat, fields, strict=True):
        values = table[field].reshape(table.rows, -1)[:, :MOST_CURVES]
        parts = table[field].shape[2:] or (1,)
        for column in range(values.shape[1]):
            point, part = divmod(column, parts[0])
            text = f"point {point}" + f", {'xyz'[part]}" * (parts[0] > 1)
            axis.plot(time, values[:, column], linewidth=1.1, color=f"C{column}", label=text)
        unit = table.units.get(field) or FIELD_UNITS.get(field.partition("_")[0], "1")
        axis.set(ylabel=f"{field} ({unit})")
        show_range(axis, time, list(values.T))
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8, ncols=2)
    axes.flat[-1].set_xlabel(f"time ({label})")
    figure.suptitle(f"{run.title}: {name}", fontsize=10)
    return figure
