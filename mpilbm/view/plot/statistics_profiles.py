"""Figures of profiles of the output `statistics`: mean velocity and Reynolds stresses."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.case.case import Case
from mpilbm.core.errors import CommandError
from mpilbm.core.units import VELOCITY, Units
from mpilbm.view.plot.panels import COLOURS, panels, plain_logarithms
from mpilbm.view.plot.wall_profiles import (
    MEAN,
    STRESSES,
    WallProfile,
    WallReference,
    in_wall_units,
    read_wall_reference,
)
from mpilbm.view.results.run import Run
from mpilbm.view.results.statistics import AXES, Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.2, 3.6  # inches of a panel
COLOUR_OF = dict(zip(STRESSES, COLOURS, strict=True))


def of_statistics(
    plt: Any, run: Run, references: list[Path], across: int | None = None
) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of all profiles of a run by name, and lines of text.

    A flow along a wall is in wall units, with the references; CommandError if there are references
    and no such flow.
    """
    figures: dict[str, Any] = {}
    sentences: list[str] = []
    known = [read_wall_reference(path) for path in references]
    compared = False
    for axis, profile in run.profiles.items():
        if profile.scalars:
            figures[f"scalars_{axis}"] = scalar_figure(plt, run.title, profile, run.case, across)
        wall = in_wall_units(run.case, profile)
        if wall is None:
            figures[f"statistics_{axis}"] = plain_figure(plt, run.title, profile, run.case, across)
            continue
        figures[f"statistics_{axis}"] = wall_figure(
            plt, run.title, profile, wall, known, run.units, across
        )
        sentences.append(", ".join(_of_wall(wall, run.units)))
        sentences += [line for one in known for line in one.sentences(wall)]
        compared = True
    if known and not compared:
        raise CommandError(
            f"{references[0]}: is in wall units, and {run.directory} has no profile "
            "statistics_<axis>_<step>.h5 of a flow along a wall; add an [[output]] with name = "
            '"statistics" that averages the other directions, such as average = ["x", "z"]'
        )
    return figures, sentences


def _of_wall(wall: WallProfile, units: Units | None) -> tuple[str, str]:
    """u_tau with its source, and Re_tau, in words."""
    value = units.to_si(wall.u_tau, VELOCITY) if units else wall.u_tau
    unit = "m/s" if units else "cells/step"
    return f"u_tau = {value:.4g} {unit} {wall.source}", f"Re_tau = {wall.re_tau:.4g}"


def wall_figure(
    plt: Any,
    title: str,
    profile: Profile,
    wall: WallProfile,
    references: list[WallReference],
    units: Units | None = None,
    across: int | None = None,
) -> "Figure":
    """U+ over the logarithm of y+, and stresses in u_tau^2 over y+."""
    figure, (left, right) = panels(plt, 2, across or 2, (WIDTH, HEIGHT))
    label = f"mpilbm, {len(profile.position)} cells"
    left.semilogx(wall.y, wall.columns[MEAN], color=COLOURS[0], label=label)
    for one, marker in zip(references, "os^v", strict=False):
        style: dict[str, Any] = {"linestyle": "", "marker": marker, "mfc": "none", "ms": 4}
        if MEAN in one.columns:
            shown = one.y > 0
            left.plot(one.y[shown], one.columns[MEAN][shown], **style, color="black",
                      label=one.cited)  # fmt: skip
    for name in STRESSES:
        if name in wall.columns:
            a, b = list(wall.axes_of(name))
            right.plot(wall.y, wall.columns[name], color=COLOUR_OF[name],
                       label=f"<u_{a}' u_{b}'>")  # fmt: skip
            for one, marker in zip(references, "os^v", strict=False):
                if name in one.columns:
                    right.plot(one.y, one.columns[name], linestyle="", marker=marker, mfc="none",
                               ms=3, mew=0.7, color=COLOUR_OF[name])  # fmt: skip
    for one, marker in zip(references, "os^v", strict=False):
        right.plot([], [], linestyle="", marker=marker, mfc="none", ms=4, color="0.3",
                   label=one.cited)  # fmt: skip
    left.set(xlabel=f"y+ = {wall.normal} u_tau / nu (1), {wall.normal} from the wall",
             ylabel=f"U+ = <u_{wall.flow}> / u_tau (1)")  # fmt: skip
    left.set_xlim(left=min(1.0, wall.y[0]))
    plain_logarithms(left.xaxis)
    right.set(xlabel="y+ (1)", ylabel="Reynolds stress / u_tau^2 (1)")
    for axis in (left, right):
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8)
    size, number = _of_wall(wall, units)
    figure.suptitle(f"{title}\n{size}\n{number}; {profile.window}", fontsize=9)
    return figure


def plain_figure(
    plt: Any, title: str, profile: Profile, case: Case, across: int | None = None
) -> "Figure":
    """Mean velocity and Reynolds stresses over the position; with [units] in SI."""
    units = case.units
    cell, speed = (units.cell, units.unit(VELOCITY)) if units else (1.0, 1.0)
    position = profile.position * cell
    figure, (left, right) = panels(plt, 2, across or 2, (WIDTH, HEIGHT))
    for k in range(profile.u.shape[1]):
        left.plot(position, profile.u[:, k] * speed, color=COLOURS[k], label=f"<u_{AXES[k]}>")
    for k, (pair, values) in enumerate(profile.stress.items()):
        a, b = list(pair)
        right.plot(position, values * speed**2, color=f"C{k}", label=f"<u_{a}' u_{b}'>")
    length = "m" if units else "cells"
    velocity = "m/s" if units else "cells per step"
    square = "m^2/s^2" if units else "cells^2 per step^2"
    for axis, name in (
        (left, f"mean velocity ({velocity})"),
        (right, f"Reynolds stress ({square})"),
    ):
        axis.set(xlabel=f"{AXES[profile.axis]} ({length})", ylabel=name)
        axis.locator_params(axis="x", nbins=6)
        axis.grid(alpha=0.25)
        if np.isfinite(profile.u).any():
            axis.legend(fontsize=8)
    figure.suptitle(f"{title}\n{profile.window}", fontsize=9)
    return figure


def scalar_figure(
    plt: Any, title: str, profile: Profile, case: Case, across: int | None = None
) -> "Figure":
    """Mean and turbulent flux of each scalar over the position; with [units] in SI."""
    units = case.units
    cell, speed = (units.cell, units.unit(VELOCITY)) if units else (1.0, 1.0)
    length, velocity = ("m", "m/s") if units else ("cells", "cells per step")
    figure, axes = panels(plt, 2 * len(profile.scalars), across or 2, (WIDTH, HEIGHT))
    pairs = zip(axes[::2], axes[1::2], profile.scalars, strict=True)
    for left, right, label in pairs:
        left.plot(profile.position * cell, profile.scalars[label], color=COLOURS[0])
        for k, values in enumerate(profile.fluxes[label].T):
            name = f"<u_{AXES[k]}' {label}'>"
            right.plot(profile.position * cell, values * speed, color=COLOURS[k], label=name)
        left.set(ylabel=f"mean of {label}")
        right.set(ylabel=f"turbulent flux ({label} x {velocity})")
        right.legend(fontsize=8)
    for axis in axes:
        axis.set(xlabel=f"{AXES[profile.axis]} ({length})")
        axis.grid(alpha=0.25)
    figure.suptitle(f"{title}\n{profile.window}", fontsize=9)
    return figure
