"""Velocity along the centre lines of a snapshot, also compared with published points.

A reference is a CSV file (comment lines begin with #). The first column is a coordinate `x`, `y` or
`z`, from 0 at one wall to 1 at the other. The others are velocities relative to that of the lid:
`u`, `v`, `w` or, one for each Reynolds number, `u_Re100`, `u_Re400`, … . Empty entries are ignored.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.case.case import Case, recorded_case
from mpilbm.case.checks import norm
from mpilbm.core.errors import CommandError
from mpilbm.core.files import NotATextFile, read_text
from mpilbm.core.printable import one_line
from mpilbm.core.units import reynolds as reynolds_number
from mpilbm.view.plot import COLOURS, panels
from mpilbm.view.plot.planes import half_way, through_fluid
from mpilbm.view.results.snapshot import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COORDINATES = ("x", "y", "z", "yplus")


def cited(path: Path) -> str:
    """The authors and the year of a reference file: its line "# CITE: …", or its name."""
    for line in read_text(path).splitlines():
        if line.startswith("# CITE:"):
            return one_line(line.removeprefix("# CITE:").strip(), 60)
    return path.stem


def read_reference(path: Path) -> tuple[list[str], np.ndarray]:
    """Column names and numbers (points, columns) of a reference file; empty entries become nan."""
    try:
        lines = read_text(path).splitlines()
        lines = [line for line in lines if line.strip() and not line.startswith("#")]
        names, *rows = csv.reader(lines)
        table = np.array([[float(entry or "nan") for entry in row] for row in rows])
    except (NotATextFile, OSError, ValueError) as error:
        raise CommandError(
            f"{path}: cannot be read as a reference ({error}); allowed: a line of column names, "
            "then lines of as many numbers, as in cases/reference"
        ) from error
    if not rows:
        raise CommandError(f"{path}: has column names but no points below them")
    if names[0] not in COORDINATES:
        raise CommandError(
            f"{path}: the columns are {','.join(names)}; a reference has a coordinate x, y or z, "
            "then u, v, w or u_Re<number>, …; or yplus, then Uplus, uu, vv, ww, uv"
        )
    return names, table


def interpolate(x: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Cubic Lagrange interpolation through the four nearest points, with an error of O(h^4)."""
    order = min(4, len(x))
    first = np.clip(np.searchsorted(x, at) - order // 2, 0, len(x) - order)
    near = first[:, None] + np.arange(order)
    result = np.zeros(len(at))
    for k in range(order):
        others = np.delete(near, k, axis=1)
        apart = x[near[:, [k]]] - x[others]
        result += values[near[:, k]] * ((at[:, None] - x[others]) / apart).prod(axis=1)
    return result


AXES, COMPONENTS = "xyz", "uvw"


def centre_line(
    snapshot: View, axis: int, index: tuple[slice, ...] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Cell centres (n,) and velocities (n, 3) on a line through the middle; nan in solids.

    In the units of the snapshot. `index`: another line (z, y, x), or lines whose mean is taken.
    """
    kept, shape = 2 - axis, snapshot.u.shape[:3]
    index = index or tuple(slice(None) if k == kept else half_way(n) for k, n in enumerate(shape))
    others = tuple(k for k in range(3) if k != kept)
    u = snapshot.u[index].mean(axis=others)
    u[snapshot.solid(index).any(axis=others)] = np.nan
    return snapshot.centres(axis), u


def profile_figure(plt: Any, snapshot: View, across: int | None = None) -> "Figure":
    """All velocity components along a line in each direction; with [units] in SI."""
    count = snapshot.dimensions
    figure, axes = panels(plt, count, across or count, (3.6, 3.2))
    for axis, panel in enumerate(axes):
        line = through_fluid(snapshot, axis)
        position, u = centre_line(snapshot, axis, line)
        for k in range(count):
            marker = "o" if len(position) == 1 else None
            panel.plot(position, u[:, k], marker=marker, color=COLOURS[k], label=f"u_{AXES[k]}")
        metres = snapshot.label("", " m")
        middles = {k: snapshot.middle(k, line[2 - k]) for k in range(count) if k != axis}
        others = [f"{AXES[k]} = {middle:g}{metres}" for k, middle in middles.items()]
        length, speed = snapshot.label("cells", "m"), snapshot.label("cells per step", "m/s")
        panel.set(title="along " + ", ".join(others), xlabel=f"{AXES[axis]} ({length})")
        panel.set(ylabel=f"velocity ({speed})")
        panel.set_xlim(*snapshot.ends(axis))
        panel.locator_params(axis="x", nbins=5)  # numbers in metres are long
        panel.grid(alpha=0.25)
    axes[0].legend()
    figure.suptitle(f"{snapshot.title}\n{snapshot.time}", fontsize=10)
    return figure


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A computed profile and the points of a reference.

    Positions are relative to the distance of the walls, velocities to that of the lid.
    """

    path: Path
    axis: int
    component: int
    reynolds: float
    points: np.ndarray  # (m, 2): position, velocity
    position: np.ndarray  # (n,)
    velocity: np.ndarray  # (n,)

    @classmethod
    def read(cls, path: Path, snapshot: View, reynolds: float | None = None) -> "Comparison":
        """The centre line of a snapshot, and the column of its (or the given) Reynolds number."""
        case = recorded_case(snapshot.case, snapshot.path)
        lid = _lid_speed(case, snapshot.path)
        names, table = read_reference(path)
        axis = AXES.index(names[0])
        if axis >= case.dimensions:
            raise CommandError(f"{path}: is along {names[0]}, but the case has two dimensions")
        low, high = _walls(case, axis)
        own = reynolds or reynolds_number(case.fluids[0].viscosity, high - low, lid)
        column, component = pick_column(path, names, own)
        points = table[:, [0, column]]
        points = points[~np.isnan(points[:, 1])]
        if not ((points[:, 0] > 0) & (points[:, 0] < 1)).any():
            raise CommandError(f"{path}: no points between the walls, at 0 < {names[0]} < 1")
        position, u = centre_line(snapshot, axis)
        return cls(
            path=path,
            axis=axis,
            component=component,
            reynolds=own,
            points=points,
            position=(position / snapshot.cell - low) / (high - low),
            velocity=u[:, component] / snapshot.velocity / lid,
        )

    @property
    def cited(self) -> str:
        """The name of the reference: its line "# CITE: …", or the name of the file."""
        return cited(self.path)

    def deviation(self) -> tuple[float, float]:
        """Largest |computed - reference| over the points between the walls, and where it is."""
        inside = (self.points[:, 0] > 0) & (self.points[:, 0] < 1)
        at, values = self.points[inside].T
        apart = abs(interpolate(self.position, self.velocity, at) - values)
        return float(apart.max()), float(at[apart.argmax()])

    def sentence(self) -> str:
        """The largest deviation in words."""
        apart, at = self.deviation()
        return (
            f"{COMPONENTS[self.component]}/U along {AXES[self.axis]}: largest deviation from "
            f"{self.path.name} (Re = {self.reynolds:.4g}) is {apart:.4f}, "
            f"at {AXES[self.axis]} = {at:g}"
        )


def _lid_speed(case: Case, path: Path) -> float:
    """The largest constant speed of a boundary of the case; formulas and files count as 0."""
    boundaries = [*case.boundaries, *(body.boundary for body in case.bodies)]
    velocities = [getattr(boundary, "velocity", None) for boundary in boundaries]
    lid = max((norm(each) for each in velocities if isinstance(each, tuple)), default=0.0)
    if not lid:
        raise CommandError(
            f"{path}: no boundary moves at a constant velocity, so there is no lid velocity; a "
            "reference can be compared with a case with such a moving wall only"
        )
    return lid


def _walls(case: Case, axis: int) -> tuple[float, float]:
    """Positions of the walls normal to an axis: half a cell beyond the last cells, or in them."""
    at: dict[str, str] = {}
    for boundary in case.boundaries:
        at |= dict.fromkeys(boundary.where, boundary.wall_at)
    low, high = (0.5 if at.get(AXES[axis] + side) == "node" else 0.0 for side in "-+")
    return low, case.domain.size[axis] - high


def pick_column(path: Path, names: list[str], reynolds: float) -> tuple[int, int]:
    """(column, velocity component) for this Reynolds number; `u`, `v`, `w` without one fit all."""
    found = [re.fullmatch(r"([uvw])(?:_Re([0-9.]+))?", name) for name in names]
    for column, match in enumerate(found):
        if match and (not match[2] or abs(float(match[2]) / reynolds - 1) < 0.01):
            return column, COMPONENTS.index(match[1])
    raise CommandError(
        f"{path}: no column for Reynolds number {reynolds:.5g}; it has {', '.join(names[1:])}; "
        "choose one with --reynolds"
    )


def comparison_figure(
    plt: Any, snapshot: View, comparisons: list[Comparison], across: int | None = None
) -> "Figure":
    """Computed lines and reference points; profiles along y or z have a vertical axis."""
    figure, axes = panels(plt, len(comparisons), across or len(comparisons), (4.2, 4.2))
    for panel, one in zip(axes, comparisons, strict=True):
        upright = one.axis > 0
        turn = (lambda a, b: (b, a)) if upright else (lambda a, b: (a, b))
        line = turn(one.position, one.velocity)
        panel.plot(*line, color=COLOURS[0], label="mpilbm", linewidth=1.6)
        panel.plot(*turn(*one.points.T), "o", mfc="none", mec="black", ms=5, label=one.cited)
        labels = turn(f"{AXES[one.axis]} / L", f"{COMPONENTS[one.component]} / U")
        panel.set(xlabel=labels[0], ylabel=labels[1])
        panel.set_title(f"Re = {one.reynolds:.4g}, largest deviation {one.deviation()[0]:.4f}")
        panel.grid(alpha=0.25)
        panel.legend()
    figure.suptitle(f"{snapshot.title}, {snapshot.time}", fontsize=10)
    return figure
