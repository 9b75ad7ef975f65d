"""Fields in planes of a snapshot: speed with streamlines, vorticity, and any scalar."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.outputs.drawing import SIGNED, colours_of
from mpilbm.solids.moving_bodies import FIELDS_OF_BODIES
from mpilbm.view.plot.planes import AXES, Cut
from mpilbm.view.results.snapshot import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOLID = "0.65"
SLIM = 0.25  # of the longest side of all panels; a narrower panel has at most two numbers
FIELD_UNITS = {  # of fields without [units]
    "rho": "rho_0",
    "u": "cells per step",
    "vorticity": "per step",
    "q": "per step^2",
    "pressure": "rho_0 cells^2/step^2",
}


def slice_figure(
    plt: Any, snapshot: View, draw_slice: Callable, cuts: list[Cut], across: int | None = None
) -> "Figure":
    """A figure with a panel for each plane and one colour bar.

    `draw_slice` draws the planes, and returns an image, and the label and ends of its colour bar.
    """
    figure, axes = _panels(plt, _sides(snapshot, cuts), across)
    image, label, extend = draw_slice(snapshot, axes, cuts)
    place: dict[str, Any] = {"location": "bottom", "aspect": 30} if across == 1 else {}
    bar = figure.colorbar(
        image, ax=axes, shrink=0.9, pad=0.02, panchor=False, label=label, extend=extend, **place
    )
    if across == 1:
        bar.ax.locator_params(nbins=5)  # long numbers side by side
    unit, metres = snapshot.label("cells", "m"), snapshot.label("", " m")
    sides = _sides(snapshot, cuts)
    longest = max(map(max, sides))
    for axis, cut, (width, _) in zip(axes, cuts, sides, strict=True):
        ends = {"xlim": snapshot.ends(cut.across), "ylim": snapshot.ends(cut.up)}
        axis.set(**ends, aspect="equal", facecolor=SOLID)
        axis.set(xlabel=f"{AXES[cut.across]} ({unit})", ylabel=f"{AXES[cut.up]} ({unit})")
        axis.locator_params(nbins=6)
        if width < SLIM * longest:
            axis.locator_params(axis="x", nbins=1)
        if snapshot.dimensions == 3:
            axis.set_title(f"{AXES[cut.normal]} = {cut.position:g}{metres}")
    figure.suptitle(f"{snapshot.title}\n{snapshot.time}", fontsize=10)
    return figure


def fluid_fields(snapshot: View) -> list[str]:
    """The fields that show where the fluids are, of coupled fluids and phases; or scalars."""
    if "coupling" not in snapshot.case:
        return [label for label in _scalar_labels(snapshot) if label in snapshot.fields]
    own = [name for name in snapshot.fields if name == "phi" or name.startswith("rho_")]
    return own or [name for name in snapshot.fields if name == "rho"]


def _scalar_labels(snapshot: View) -> list[str]:
    return [str(table["label"]) for table in snapshot.case.get("scalar", ())]


def planes_of(snapshot: View, cuts: list[Cut], name: str) -> list[np.ma.MaskedArray]:
    """A scalar, or the size of a vector, in planes; solid cells are masked.

    Fields of moving bodies are shown in place of these.
    """
    stored = snapshot.field(name)
    shows = name in FIELDS_OF_BODIES and name not in _scalar_labels(snapshot)
    if shows and name == FIELDS_OF_BODIES[1]:
        return [np.ma.masked_array(cut.largest(stored)) for cut in cuts]
    return [
        np.ma.masked_array(cut.mean(stored, stored.ndim == 4), not shows and cut.solid(snapshot))
        for cut in cuts
    ]


def limits_of(planes: list[np.ma.MaskedArray]) -> tuple[float, float]:
    """The smallest and the largest value in planes; 0 if all is solid."""
    low = min(float(plane.min() if plane.count() else 0) for plane in planes)
    return low, max(float(plane.max() if plane.count() else 0) for plane in planes)


def field_figure(
    plt: Any,
    snapshot: View,
    cuts: list[Cut],
    name: str,
    limits: tuple[float, float] | None = None,
    across: int | None = None,
) -> "Figure":
    """A scalar, or the size of a vector; an order parameter with its interface phi = 0.

    `limits`: the values at the ends of the colours, by default those of the planes.
    """
    stored = snapshot.field(name)
    vector = stored.ndim == 4
    planes = planes_of(snapshot, cuts, name)
    low, high = limits or limits_of(planes)
    own = name in _scalar_labels(snapshot)  # a scalar has a unit of its own
    colours = colours_of(low, high, name in SIGNED and not (own or vector))._asdict()
    level = 0.0 if low < 0 < high else (low + high) / 2
    unit = stored.text("unit") or FIELD_UNITS.get(name.partition("_")[0], "1")
    label = f"|{name}|" if vector else name

    def draw_field(snapshot: View, axes: "list[Axes]", cuts: list[Cut]) -> tuple[Any, str, str]:
        for axis, cut, plane in zip(axes, cuts, planes, strict=True):
            image = _image(axis, snapshot, cut, plane, **colours)
            if "coupling" in snapshot.case and min(plane.shape) > 1 and high > low:
                extent = image.get_extent()
                axis.contour(plane, levels=[level], extent=extent, colors="black", linewidths=0.7)
        return image, label if own else f"{label} ({unit})", "neither"

    return slice_figure(plt, snapshot, draw_field, cuts, across)


def _sides(snapshot: View, cuts: list[Cut]) -> list[tuple[float, float]]:
    """The width and height of each plane."""
    ends = ((snapshot.ends(cut.across), snapshot.ends(cut.up)) for cut in cuts)
    return [(right - left, top - bottom) for (left, right), (bottom, top) in ends]


def _panels(
    plt: Any, shapes: list[tuple[float, float]], across: int | None
) -> "tuple[Figure, list[Axes]]":
    """Panels in a row, or in a column if they are wide, with the proportions of `shapes`.

    With `across` = 1 in a column of the width of one panel.
    """
    widths, heights = [w for w, _ in shapes], [h for _, h in shapes]
    column = across == 1 or max(w / h for w, h in shapes) > 2
    if column:
        side = 3.6 if across == 1 else 7.0
        inch = min(side / max(widths), 4 / max(heights)) if across == 1 else side / max(widths)
        more = 1.0 + (0.8 if across == 1 else 0) + 0.6 * len(shapes)
        size = (side + (1 if across == 1 else 1.5), min(max(sum(heights) * inch + more, 2.8), 14))
        ratios: dict[str, Any] = {"nrows": len(shapes), "height_ratios": heights}
    else:
        inch = min((5 if len(shapes) == 1 else 12) / sum(widths), 8 / max(heights))
        size = (max(sum(widths) * inch, 2.5) + 1.6, max(max(heights) * inch, 2) + 1)
        ratios = {"ncols": len(shapes), "width_ratios": widths}
    figure, axes = plt.subplots(figsize=size, squeeze=False, **ratios)
    return figure, list(axes.flat)


def slice_of(snapshot: View, cut: Cut) -> list[np.ma.MaskedArray]:
    """Velocity along both axes of a plane, speed, and vorticity normal to it; masked in solids.

    Rows are along `up`, columns along `across`.
    """
    u, solid = cut.mean(snapshot.u), cut.solid(snapshot)
    across, up = cut.across, cut.up
    sign = -1 if cut.normal == 1 else 1  # (x, z, y) is left-handed
    along, upwards = snapshot.spacing[across], snapshot.spacing[up]
    vorticity = sign * (_slope(u[..., up], 1, along) - _slope(u[..., across], 0, upwards))
    fields = u[..., across], u[..., up], np.linalg.norm(u, axis=-1), vorticity
    return [np.ma.masked_array(field, solid) for field in fields]


def _slope(field: np.ndarray, axis: int, spacing: float) -> np.ndarray:
    """Central differences; zero if there is only one value."""
    return np.gradient(field, spacing, axis=axis) if field.shape[axis] > 1 else 0 * field


def draw_speed(snapshot: View, axes: "list[Axes]", cuts: list[Cut]) -> tuple[Any, str, str]:
    """Draw speed and streamlines."""
    slices = [slice_of(snapshot, cut) for cut in cuts]
    top = max(float(speed.max() or 0) for _, _, speed, _ in slices) or 1.0
    for axis, cut, (across, up, speed, _) in zip(axes, cuts, slices, strict=True):
        image = _image(axis, snapshot, cut, speed, vmin=0, vmax=top, cmap="viridis")
        moving = max(abs(across).max(), abs(up).max()) > 1e-3 * top
        if min(speed.shape) >= 8 and moving:
            x, y = snapshot.centres(cut.across), snapshot.centres(cut.up)
            lines = axis.streamplot(
                x, y, across, up, color="white", linewidth=0.6, arrowsize=0.7, density=1.1
            )
            lines.lines.set_alpha(0.7)
    unit = snapshot.label("cells per step", "m/s")
    return image, f"speed |u| ({unit})", "neither"


def _image(axis: "Axes", snapshot: View, cut: Cut, plane: np.ndarray, **colours: Any) -> Any:
    """Draw the values of a plane between its ends."""
    extent = *snapshot.ends(cut.across), *snapshot.ends(cut.up)
    return axis.imshow(plane, origin="lower", extent=extent, **colours)


def draw_vorticity(snapshot: View, axes: "list[Axes]", cuts: list[Cut]) -> tuple[Any, str, str]:
    """Draw vorticity, with a colour scale to the 98th percentile."""
    slices = [slice_of(snapshot, cut) for cut in cuts]
    sizes = np.concatenate([abs(vorticity.compressed()) for *_, vorticity in slices])
    top = float(np.percentile(sizes, 98)) if sizes.size else 0.0
    top = top or float(sizes.max(initial=0)) or 1.0
    for axis, cut, (*_, vorticity) in zip(axes, cuts, slices, strict=True):
        image = _image(axis, snapshot, cut, vorticity, vmin=-top, vmax=top, cmap="RdBu_r")
    unit = snapshot.label("per step", "1/s")
    return image, f"vorticity normal to the plane ({unit})", "both"
