"""Plots of a run: slices of speed and vorticity, profiles along centre lines, monitor curves.

Plots are in lattice units: lengths in cells, times in steps; with [units] in SI. Slices are in the
middle of the box: the plane of the middle cell, or the mean of the two planes next to the middle.
Solid cells are grey.
"""

import csv
from collections.abc import Callable, Sequence
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.errors import CommandError
from mpilbm.outputs.monitor import si_columns
from mpilbm.plot.profiles import (
    COLOURS,
    Comparison,
    comparison_figure,
    half_way,
    profile_figure,
)
from mpilbm.results.snapshot import View, view
from mpilbm.storage.directory import make_folder
from mpilbm.storage.files import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# velocity along both axes of a plane, speed, and vorticity normal to it; masked in solids
Slice = list[np.ma.MaskedArray]

AXES = "xyz"
SOLID = "0.65"


def draw(
    directory: Path | str,
    target: Path | str | None = None,
    references: Sequence[Path | str] = (),
    reynolds: float | None = None,
) -> tuple[list[Path], list[str]]:
    """Plot the results in an output folder; writes PNG files to `target`, by default the folder.

    Returns the files, and for each reference a line with the largest deviation from it. Raises
    CommandError if the folder contains no snapshot or a file cannot be read or written.
    """
    plt = pyplot()
    directory = Path(directory)
    newest = last_snapshot(directory)
    target = Path(target or directory)
    make_folder(target)
    with view(newest) as snapshot:
        comparisons = [Comparison.read(path, snapshot, reynolds) for path in references]
        figures = {
            "speed": slice_figure(plt, snapshot, _draw_speed),
            "vorticity": slice_figure(plt, snapshot, _draw_vorticity),
            "profiles": profile_figure(plt, snapshot),
        }
        if comparisons:
            figures["comparison"] = comparison_figure(plt, snapshot, comparisons)
        curves = read_monitor(directory / "monitor.csv")
        if curves:
            figures["monitor"] = monitor_figure(plt, curves, snapshot.title)
    files = [_save(plt, figure, target / f"{name}.png") for name, figure in figures.items()]
    return files, [comparison.sentence() for comparison in comparisons]


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
    files = directory.glob("snapshot_*.vtkhdf")
    last = max(files, key=lambda file: (len(file.name), file.name), default=None)
    if last is None:
        raise CommandError(
            f"{directory}: holds no snapshot_*.vtkhdf; add an [[output]] with name = 'snapshot' to "
            "the case and run it"
        )
    return last


def _save(plt: Any, figure: "Figure", path: Path) -> Path:
    try:
        with whole(path, "wb") as file:
            figure.savefig(file, format="png")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; choose a folder with --output") from error
    plt.close(figure)
    return path


# ---------------------------------------------------------------------------------------- slices


def slice_figure(plt: Any, snapshot: View, draw_slice: Callable) -> "Figure":
    """A figure of the plane in 2D, of the three middle planes in 3D, with one colour bar."""
    two = snapshot.dimensions == 2
    planes = [(0, 1, 2)] if two else [(0, 1, 2), (0, 2, 1), (1, 2, 0)]
    shapes = [(snapshot.size[across], snapshot.size[up]) for across, up, _ in planes]
    figure, axes = _panels(plt, shapes)
    slices = [_slice(snapshot, *axes_of_plane) for axes_of_plane in planes]
    image, label, extend = draw_slice(snapshot, axes, slices)
    for axis, (across, up, normal), (width, height) in zip(axes, planes, shapes, strict=True):
        cell, unit = snapshot.cell, snapshot.label("cells", "m")
        metres = snapshot.label("", " m")
        axis.set(xlim=(0, width * cell), ylim=(0, height * cell), aspect="equal", facecolor=SOLID)
        axis.set(xlabel=f"{AXES[across]} ({unit})", ylabel=f"{AXES[up]} ({unit})")
        if not two:
            axis.set_title(f"{AXES[normal]} = {snapshot.size[normal] / 2 * cell:g}{metres}")
    figure.colorbar(image, ax=axes, label=label, extend=extend, shrink=0.9, pad=0.02, panchor=False)
    figure.suptitle(f"{snapshot.title}\n{snapshot.time}", fontsize=10)
    return figure


def _panels(plt: Any, shapes: list[tuple[int, int]]) -> "tuple[Figure, list[Axes]]":
    """Panels in a row, or in a column if they are wide, with the proportions of `shapes`."""
    widths, heights = [w for w, _ in shapes], [h for _, h in shapes]
    column = max(w / h for w, h in shapes) > 2
    if column:
        inch = 7 / max(widths)
        size = (8.5, min(max(sum(heights) * inch + 1 + 0.6 * len(shapes), 2.8), 12))
        ratios: dict[str, Any] = {"nrows": len(shapes), "height_ratios": heights}
    else:
        inch = min((5 if len(shapes) == 1 else 12) / sum(widths), 8 / max(heights))
        size = (max(sum(widths) * inch, 2.5) + 1.6, max(max(heights) * inch, 2) + 1)
        ratios = {"ncols": len(shapes), "width_ratios": widths}
    figure, axes = plt.subplots(figsize=size, squeeze=False, **ratios)
    return figure, list(axes.flat)


def _slice(snapshot: View, across: int, up: int, normal: int) -> Slice:
    """The middle plane normal to an axis, with rows along `up` and columns along `across`."""
    across_plane = 2 - normal
    index = (slice(None),) * across_plane + (half_way(snapshot.u.shape[across_plane]),)
    u = snapshot.u[index].mean(axis=across_plane)
    solid = snapshot.solid(index).any(axis=across_plane)
    sign = -1 if normal == 1 else 1  # (x, z, y) is left-handed
    vorticity = sign * (_slope(u[..., up], 1) - _slope(u[..., across], 0)) / snapshot.cell
    fields = u[..., across], u[..., up], np.linalg.norm(u, axis=-1), vorticity
    return [np.ma.masked_array(field, solid) for field in fields]


def _slope(field: np.ndarray, axis: int) -> np.ndarray:
    """Central differences; zero if there is only one cell."""
    return np.gradient(field, axis=axis) if field.shape[axis] > 1 else np.zeros_like(field)


def _draw_speed(snapshot: View, axes: "list[Axes]", slices: list[Slice]) -> tuple[Any, str, str]:
    """Draw speed and streamlines; returns the image, its label, and the ends of the colour bar."""
    top = max(float(speed.max() or 0) for _, _, speed, _ in slices) or 1.0
    for axis, (across, up, speed, _) in zip(axes, slices, strict=True):
        height, width = speed.shape
        extent = _extent(snapshot, speed)
        image = axis.imshow(speed, origin="lower", extent=extent, vmin=0, vmax=top, cmap="viridis")
        moving = max(abs(across).max(), abs(up).max()) > 1e-3 * top
        if min(speed.shape) >= 8 and moving:
            x, y = ((np.arange(n) + 0.5) * snapshot.cell for n in (width, height))
            lines = axis.streamplot(
                x, y, across, up, color="white", linewidth=0.6, arrowsize=0.7, density=1.1
            )
            lines.lines.set_alpha(0.7)
    unit = snapshot.label("cells per step", "m/s")
    return image, f"speed |u| ({unit})", "neither"


def _extent(snapshot: View, field: np.ndarray) -> tuple[float, float, float, float]:
    """The sides of a slice, for imshow."""
    height, width = field.shape
    return 0, width * snapshot.cell, 0, height * snapshot.cell


def _draw_vorticity(
    snapshot: View, axes: "list[Axes]", slices: list[Slice]
) -> tuple[Any, str, str]:
    """Draw vorticity, with a colour scale to the 98th percentile; returns as _draw_speed."""
    sizes = np.concatenate([abs(vorticity.compressed()) for *_, vorticity in slices])
    top = float(np.percentile(sizes, 98)) if sizes.size else 0.0
    top = top or float(sizes.max(initial=0)) or 1.0
    for axis, (*_, vorticity) in zip(axes, slices, strict=True):
        extent = _extent(snapshot, vorticity)
        image = axis.imshow(
            vorticity, origin="lower", extent=extent, vmin=-top, vmax=top, cmap="RdBu_r"
        )
    unit = snapshot.label("per step", "1/s")
    return image, f"vorticity normal to the plane ({unit})", "both"


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
