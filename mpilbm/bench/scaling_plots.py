"""Plots of scalings: speed and efficiency with the model, and the parts of a step's time."""

from pathlib import Path
from textwrap import fill

from mpilbm.plot.pictures import pyplot
from mpilbm.plot.profiles import COLOURS
from mpilbm.storage.files import whole

PARTS = ("edge", "bulk", "exchange")  # one after another on the device
KINDS = ("weak", "strong")


def draw(found, folder: Path) -> list[Path]:
    """Write a plot for each kind of scaling and one of the splits as PNG; returns the files."""
    plt, files = pyplot(), []
    for kind in KINDS:
        if mine := [each for each in found if each.kind == kind]:
            files.append(_saved(plt, _scaling(plt, kind, mine), folder / f"scaling_{kind}.png"))
    if split := [each for each in found if any(row.get("split") for row in each.rows)]:
        files.append(_saved(plt, _splits(plt, split), folder / "scaling_split.png"))
    return files


def _saved(plt, figure, path: Path) -> Path:
    with whole(path, "wb") as file:
        figure.savefig(file, format="png")
    plt.close(figure)
    return path


def _scaling(plt, kind: str, found):
    """GLUPS and efficiency over ranks: measured points, and lines of the model."""
    figure, (speed, share) = plt.subplots(1, 2, figsize=(9, 3.6 + 0.2 * len(found)))
    colours = plt.get_cmap("tab10" if len(found) <= 10 else "tab20").colors
    for number, each in enumerate(found):
        colour = colours[number % len(colours)]
        ranks = [row["ranks"] for row in each.rows]
        speed.plot(ranks, [row["glups"] for row in each.rows], "o", color=colour, label=each.name)
        known = [row for row in each.rows if row["efficiency"]]
        share.plot([row["ranks"] for row in known],
                   [100 * row["efficiency"] for row in known], "o", color=colour)  # fmt: skip
        if model := each.model:
            speed.plot(model.ranks, [model.glups(n) for n in model.ranks], color=colour, lw=1)
            percent = [100 * model.efficiency(n) for n in model.ranks]
            share.plot(model.ranks, percent, color=colour, lw=1)
    speed.set(xscale="log", yscale="log", xlabel="ranks", ylabel="GLUPS")
    share.set(xscale="log", xlabel="ranks", ylabel="efficiency, %", ylim=(0, 105))
    for panel in (speed, share):
        panel.xaxis.set_major_formatter("{x:g}")
        panel.grid(alpha=0.25)
    figure.legend(loc="outside lower center", fontsize=7)
    figure.suptitle(f"{kind.capitalize()} scaling: measured (points), model (lines)")
    return figure


def _splits(plt, found):
    """Time of a step: edge, bulk and visible exchange as a stacked bar, the host next to it."""
    columns = min(3, len(found))
    lines = -(-len(found) // columns)
    size = (3.6 * columns, 0.6 + 2.3 * lines)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False)
    for panel in axes.flat[len(found) :]:
        panel.axis("off")
    for panel, each in zip(axes.flat, found, strict=False):
        rows = [row for row in each.rows if row.get("split")]
        places, below = range(len(rows)), [0.0] * len(rows)
        for part, colour in zip((*PARTS, "host"), COLOURS, strict=True):
            times = [1e6 * row["split"][part] for row in rows]
            host = part == "host"
            at = [place + 0.35 if host else place for place in places]
            label = "visible exchange" if part == "exchange" else part
            panel.bar(at, times, 0.2 if host else 0.45, None if host else below,
                      color=colour, label=label)  # fmt: skip
            below = below if host else [a + b for a, b in zip(below, times, strict=True)]
        panel.set_xticks(list(places), [f"{row['ranks']}" for row in rows])
        panel.set(ylabel="µs a step", xlabel="ranks", xlim=(-0.6, max(len(rows), 4) - 0.4))
        panel.set_title(fill(f"{each.kind}: {each.name}", 44), fontsize=6)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, fontsize=7)
    return figure
