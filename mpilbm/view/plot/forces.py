"""Figures of the forces on bodies: mean, rms, frequency and Strouhal number."""

import re
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from mpilbm.core.units import counted, si_text
from mpilbm.outputs.body_forces import BodyForces
from mpilbm.outputs.core.averages import average, last_half
from mpilbm.outputs.drawing import show_range
from mpilbm.storage.csv_log import COEFFICIENTS, short
from mpilbm.view.plot import COLOURS, Drawn, over_time, time_of
from mpilbm.view.plot.frequencies import Oscillation, oscillation
from mpilbm.view.results import Run

ROUND_OFF = 1e-6  # of the force; its components in float32 have this error


def forces_figure(plt: Any, run: Run, name: str) -> Drawn:
    """The coefficients, or the force, over time, and a line of text for each; None without rows.

    Across the flow the text has the frequency, if the signal has one, see `oscillation`.
    """
    table, label = run.table(name), name.removeprefix("forces_")
    if table.rows < 2:
        return None, []
    names = [column for column in table if short(column) in COEFFICIENTS]
    forces = [column for column in table if column.startswith("force_")]
    names = names or [column for column in forces if ("(" in column) != ("time_s" in table)]
    time, unit = time_of(run, table)
    half = last_half(table["step"])
    height = 2.2 * len(names) + 0.7
    figure, axes = over_time(plt, f"{run.title}: {label}", unit, len(names), (7, height))
    scale, output, sentences = _strouhal_scale(run, label), _forces_of(run, label), []
    along = ""  # the axis of the flow, if it is known
    if output is not None and output.velocity is not None:
        along = "xyz"[int(np.abs(output.velocity).argmax())]
    size = sqrt(sum(np.square(table[column][half]).mean() for column in names))
    for axis, column, colour in zip(axes, names, COLOURS, strict=False):
        values, shown = table[column], _plain(column)
        axis.plot(time, values, color=colour, linewidth=1.2)
        found_mean, rms = average(values[half], table["step"][half]), values[half].std()
        mean = found_mean.mean
        axis.axhline(mean, color="0.3", linewidth=0.8, linestyle="--")
        axis.axvspan(time[half][0], time[-1], color="0.5", alpha=0.08)
        text = f"mean {found_mean}, rms {rms:.3g}"
        if max(abs(mean), rms) < ROUND_OFF * size:
            text += f", 0 within round-off (below {ROUND_OFF:g} of the force)"
        # sound waves dominate the spectrum of the drag
        drag = along and (short(column) == "c_d" or f"force_{along}" in column)
        found = None if drag else oscillation(time[half], values[half], size)
        if found is not None:
            text += ", " + _frequency(found, scale, unit)
        axis.set(ylabel=shown)
        axis.set_title(f"last half: {text}", fontsize=9)
        show_range(axis, time, [values])
        sentences.append(f"{label}: {shown}: {text} (last half of the time)")
    return figure, sentences


def _frequency(found: Oscillation, scale: "Scale | None", unit: str) -> str:
    """The frequency in words, as Strouhal number f L / U if its scale is known."""
    periods, value, error = counted(found.periods, "period"), found.frequency, found.error
    if scale is None:
        per = "step" if unit == "steps" else unit
        return f"frequency {value:.5g} ± {error:.1g} per {per} ({periods})"
    number = f"{value * scale.time:.5g} ± {error * scale.time:.1g}"
    return f"Strouhal number {number} ({periods}, L = {scale.length:.5g} cells)"


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
    output, lengths = _forces_of(run, label), run.summary.get("lengths")
    length = lengths.get(label) if isinstance(lengths, dict) else None
    if output is None or output.velocity is None or not isinstance(length, int | float):
        return None
    speed = sqrt(sum(v * v for v in output.velocity))
    if not length or not speed:
        return None
    return Scale(length, length / speed * (run.units.step if run.units else 1.0))


def _forces_of(run: Run, label: str) -> BodyForces | None:
    """The output that writes the forces on a body."""
    case = run.case
    for output in case.outputs:
        if output.name == "body_forces":
            labels = [case.bodies[k].label for k in output.bodies(case)]
            if label in labels:
                return output
    return None
