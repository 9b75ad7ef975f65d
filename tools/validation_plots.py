"""The picture of a validation: a panel for each curve, with named axes and cited references."""

import json
import re
from pathlib import Path

import numpy as np
from validations import Curve, Finding, Validation, Verdict

SMALL = 7  # points, of legends
BELOW = 5  # entries from which a legend is below its panel
FOUND = re.compile(r"(?P<name>[^;]+?): (?P<value>[-+.0-9e]+|nan|inf) \(allowed: [^)]*\)")


def stored(paths: list[Path]) -> dict[str, Verdict]:
    """The verdicts in files that tools/validate has written, or with several of them in `runs`."""
    found = {}
    for path in paths:
        facts = json.loads(path.read_text("utf-8"))
        for run in facts.get("runs", [facts]):
            for row in run["rows"]:
                curves = run.get("curves", {}).get(row.get("run"), {})
                findings = [
                    Finding(match["name"].strip(), float(match["value"]))
                    for match in FOUND.finditer(row.get("found", ""))
                ]
                if row.get("run") not in (None, "all"):
                    found[row["run"]] = Verdict(
                        findings, {name: tuple(map(np.array, c)) for name, c in curves.items()}
                    )
    return found


def panels_of(validation: Validation, verdicts: dict[str, Verdict]) -> dict[str, dict[str, Curve]]:
    """Curves by panel and label; those of theory have a label that ends with ", exact"."""
    found: dict[str, dict] = {}
    for label, verdict in verdicts.items():
        for panel, curve in verdict.curves.items():
            name, exact, _ = panel.partition(", exact")
            found.setdefault(name, {})[label + exact] = curve
    return found | validation.lines(verdicts)


def draw(validation: Validation, verdicts: dict[str, Verdict], path: Path) -> None:
    """Write the picture; nothing without curves or without Matplotlib.

    Points: published curves, and those whose label ends with ", exact" or ", measured".
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    found = panels_of(validation, verdicts)
    if not found:
        return
    images = [(label, name, image) for label, verdict in verdicts.items()
              for name, image in verdict.images.items()]  # fmt: skip
    count = len(found) + len(images)
    columns = 2 if count == 4 else min(3, count)
    lines = -(-count // columns)
    low = any(len(curves) + len(validation.published(name)) >= BELOW
              for name, curves in found.items())  # fmt: skip
    figure = Figure(
        figsize=(4.4 * columns, (3.9 if low else 3.5) * lines), dpi=150, layout="constrained"
    )
    axes = list(np.ravel(figure.subplots(lines, columns, squeeze=False)))
    for axis, (name, curves) in zip(axes, found.items(), strict=False):
        _panel(validation, axis, name, curves)
    for axis, (label, name, image) in zip(axes[len(found) :], images, strict=False):
        shown = axis.imshow(image, origin="lower", cmap="RdBu",
                            extent=(0, image.shape[1], 0, image.shape[0]))  # fmt: skip
        axis.set(title=label, xlabel="x (cells)", ylabel="y (cells)")
        figure.colorbar(shown, ax=axis, label=f"{name} (rho_0)")
    for axis in axes[count:]:
        axis.remove()
    figure.savefig(path)


def _panel(validation: Validation, axis, name: str, curves: dict[str, Curve]) -> None:
    for label, (low, high) in validation.bands(name).items():
        axis.axhspan(low, high, color="0.6", alpha=0.6, linewidth=1, label=label)
    shown = set()
    for label, (x, y) in curves.items():
        own, exact, _ = label.partition(", exact")
        if exact or label.endswith(", measured"):
            text = validation.theory if exact else label
            axis.plot(x, y, ".", color="black", markersize=3, label=None if text in shown else text)
            shown.add(text)
        else:
            x, y = np.asarray(x), np.asarray(y, float)
            if name.startswith(validation.logarithmic_y or ("\0",)):
                axis.plot(x, np.where(y > 0, y, np.nan), ".-", linewidth=1.2, ms=3, label=own)
            else:
                axis.plot(x, y, linewidth=1.2, label=own)
    if name.startswith(validation.logarithmic or ("\0",)):
        axis.set(xscale="log", yscale="log")
    elif name.startswith(validation.logarithmic_y or ("\0",)):
        axis.set(yscale="log")
    for label, curve in validation.published(name).items():
        line = {"linestyle": "--", "linewidth": 1} if label.startswith("~") else {
            "linestyle": "", "marker": "o", "markersize": 3, "markerfacecolor": "none"}  # fmt: skip
        axis.plot(*curve, color="black", label=label.removeprefix("~"), **line)
    across, up = validation.axes_of(name)
    axis.set(title=name, xlabel=across, ylabel=up)
    axis.grid(alpha=0.25)
    entries = len(axis.get_legend_handles_labels()[1])
    if entries >= BELOW:
        longest = max(map(len, axis.get_legend_handles_labels()[1]))
        axis.legend(fontsize=SMALL, ncols=3 if longest < 12 else 2, loc="upper center",
                    bbox_to_anchor=(0.5, -0.17), frameon=False)  # fmt: skip
    else:
        axis.legend(fontsize=SMALL)
