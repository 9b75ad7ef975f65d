"""Pictures of snapshots and profiles, for `mpilbm plot`.

Imports matplotlib, which is optional, only when a picture is drawn. This module
makes figures of equal panels, and of panels above each other over the time.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.outputs.core.averages import average, last_half
from mpilbm.view.results import Run
from mpilbm.view.results.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Drawn: TypeAlias = "tuple[Figure | None, list[str]]"  # a figure, if there is one, and lines of text

COLOURS = ("#1f5a96", "#c8553d", "#3b8f5a", "#8a6fb0")
SINGLE = 6, 3.4  # inches of a figure with one panel


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

    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "text.parse_math": False,
            "figure.constrained_layout.use": True,
            "savefig.dpi": 150,
            "legend.frameon": False,
        }
    )
    return plt


def panels(
    plt: Any, count: int, across: int, size: tuple[float, float]
) -> "tuple[Figure, list[Axes]]":
    """A figure with `count` panels of `size` inches, at most `across` of them in a row."""
    across = min(across, count)
    down = -(-count // across)
    inches = size[0] * across, size[1] * down + 0.4
    figure, axes = plt.subplots(down, across, figsize=inches, squeeze=False)
    for axis in list(axes.flat)[count:]:
        axis.remove()
    return figure, list(axes.flat)[:count]


def over_time(
    plt: Any, title: str, unit: str, count: int, size: tuple[float, float]
) -> "tuple[Figure, list[Axes]]":
    """A figure of `size` inches with panels above each other that share the axis of the time."""
    figure, axes = plt.subplots(count, 1, figsize=size, sharex=True, squeeze=False)
    for axis in axes.flat:
        axis.grid(alpha=0.25)
    axes.flat[-1].set_xlabel(f"time ({unit})")
    figure.suptitle(title, fontsize=10)
    return figure, list(axes.flat)


def plain_logarithms(axis: Any) -> None:
    """Ticks of a logarithmic axis (such as `axes.xaxis`) as numbers like 0.01, without TeX."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def colours(count: int) -> list[str]:
    """The colours of so many curves in a panel; those of Matplotlib from the fifth on."""
    return [COLOURS[k] if k < len(COLOURS) else f"C{k}" for k in range(count)]


def mean_lines(
    name: str, steps: np.ndarray, curves: dict[str, np.ndarray], unit: str = ""
) -> list[str]:
    """A line for each curve with its mean over the last half of the time, and its error."""
    half = last_half(steps)
    means = {column: average(curve[half], steps[half]) for column, curve in curves.items()}
    return [
        f"{name}: {column} = {mean}{unit} (mean of the last half of the time)"
        for column, mean in means.items()
        if np.isfinite(mean.mean)
    ]


def time_of(run: Run, table: Table) -> tuple[np.ndarray, str]:
    """The times of the rows, in s if the run is in SI, else in steps."""
    if "time_s" in table:
        return table["time_s"], "s"
    if run.units is not None:
        return table["step"] * run.units.step, "s"
    return table["step"].astype(float), "steps"
