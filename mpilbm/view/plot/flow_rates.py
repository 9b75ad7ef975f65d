"""Figures of the output `flow_rate`: flows and pressures of planes, and their differences."""

from typing import Any

import numpy as np

from mpilbm.core.units import PRESSURE, lattice_text, si_text
from mpilbm.outputs.drawing import show_range
from mpilbm.outputs.flow_rate import DIFFERENCES, FlowRate
from mpilbm.view.plot import Drawn, colours, mean_lines, over_time, time_of
from mpilbm.view.results import Run
from mpilbm.view.results.tables import Table

DRAWN = ("volume_flow", "pressure", "total_pressure")  # of each plane, a panel for each


def flow_rate_figure(plt: Any, run: Run, name: str) -> Drawn:
    """Flows and pressures of the planes over time, and lines with means over the last half.

    A panel has a curve for each plane; the differences of `between` have their own. In SI if the
    file has these columns. No figure with fewer than two rows, or if no output of the case has
    this name.
    """
    table, output = run.table(name), _output_of(run, name)
    if output is None or table.rows < 2:
        return None, []
    planes = [plane.label for plane in output.plane]
    panels = {of: [f"{of}_{label}" for label in planes] for of in DRAWN}
    panels |= {of: [of] for of in DIFFERENCES if output.between}
    time, unit = time_of(run, table)
    size = 7, 2.0 * len(panels) + 0.7
    figure, axes = over_time(plt, f"{run.title}: {name}", unit, len(panels), size)
    sentences = []
    for axis, (of, names) in zip(axes, panels.items(), strict=True):
        columns = [_in_si(table, each) for each in names]
        curves = [table[column] for column in columns]
        for column, curve, colour in zip(names, curves, colours(len(names)), strict=True):
            label = column.removeprefix(f"{of}_")
            axis.plot(time, curve, color=colour, linewidth=1.2, label=label)
        unit_of = _unit(run, of, columns[0])
        axis.set(ylabel=f"{of.replace('_', ' ')}\n({unit_of})")
        if any(np.isfinite(curve).any() for curve in curves):
            show_range(axis, time, curves)
        if len(names) > 1:
            axis.legend(fontsize=8, ncols=2)
        found, suffix = dict(zip(names, curves, strict=True)), f" {unit_of}" * (unit_of != "1")
        sentences += mean_lines(name, table["step"], found, suffix)
    return figure, sentences


def _output_of(run: Run, name: str) -> FlowRate | None:
    """The output that writes this table."""
    for output in run.case.outputs:
        if isinstance(output, FlowRate) and f"flow_rate_{output.label_in(run.case)}" == name:
            return output
    return None


def _in_si(table: Table, name: str) -> str:
    """The column of a quantity in SI, or that in lattice units."""
    return next((column for column in table if column.startswith(f"{name} (")), name)


def _unit(run: Run, of: str, column: str) -> str:
    """The unit of a column."""
    if "(" in column:
        return si_text(column.partition(" (")[2].rstrip(")"))
    if of == DIFFERENCES[2]:
        return "1"
    return lattice_text((run.dimensions, -1, 0) if of == "volume_flow" else PRESSURE)
