"""Figures with equal panels in rows."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#1f5a96", "#c8553d", "#3b8f5a", "#8a6fb0")


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


def plain_logarithms(axis: Any) -> None:
    """Ticks of a logarithmic axis (such as `axes.xaxis`) as numbers like 0.01, without TeX."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
