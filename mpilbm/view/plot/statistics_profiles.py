"""Profiles of the output `statistics`: figures, and wall units along a wall.

    y+ = y u_tau / nu,  U+ = (U - U_wall) / u_tau,  stresses <u_a' u_b'> / u_tau^2

y is the distance from the wall. u_tau follows from the driving force of a channel, otherwise at a
wall model from its law at the mean velocity, and at other walls from the slope of the mean velocity
at the wall, u_tau^2 = nu |dU/dy|, which needs cells in the viscous sublayer. The halves of a
channel between two walls that move alike are averaged.

A reference is a CSV file (comment lines begin with #) with a column `yplus` and some of `Uplus`,
`uu`, `vv`, `ww`, `uv`: along the flow, normal to the wall, and in the third direction.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.driving import ForcedChannel, WallAt, forced_channel, walls_across
from mpilbm.core.errors import CommandError
from mpilbm.core.units import VELOCITY, Units
from mpilbm.physics.boundaries.wall_model import WallModel, model_at
from mpilbm.view.plot import COLOURS, panels, plain_logarithms
from mpilbm.view.plot.profiles import cited, interpolate, read_reference
from mpilbm.view.results import Run
from mpilbm.view.results.tables import AXES, Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Y_PLUS, MEAN = "yplus", "Uplus"
STRESSES = ("uu", "vv", "ww", "uv")
COLUMNS = (MEAN, *STRESSES)
NEAREST = 3  # y+ from which U+ is compared as a ratio


@dataclass(frozen=True, kw_only=True)
class WallProfile:
    """A profile from one wall outwards, in wall units.

    y         y+, (m,)
    columns   "Uplus" and stresses such as "uu", (m,) each
    u_tau     in lattice units, and `source`, where it is from
    re_tau    u_tau h / nu; h is the thickness of the flow, see case/driving.py
    flow, normal, third   axes; `third` is None in 2D
    """

    y: np.ndarray
    columns: dict[str, np.ndarray]
    u_tau: float
    source: str
    re_tau: float
    flow: str
    normal: str
    third: str | None

    def axes_of(self, column: str) -> str:
        """The axes of a stress such as "uv"."""
        known = {"u": self.flow, "v": self.normal, "w": self.third or ""}
        return "".join(known[letter] for letter in column)


def in_wall_units(case: Case, profile: Profile) -> WallProfile | None:
    """The profile in wall units; None if there is no flow along a no-slip wall normal to it."""
    walls = walls_across(case, profile.axis)
    if not (case.single_fluid and walls):
        return None
    channel = forced_channel(case)
    relative = profile.u - np.array(walls[0].velocity)
    strength = np.nanmean(np.abs(np.delete(relative, profile.axis, axis=1)), axis=0)
    others = [axis for axis in range(case.dimensions) if axis != profile.axis]
    along = channel.along if channel else others[int(strength.argmax())]
    third = next((axis for axis in others if axis != along), None)
    y, columns = _from_the_wall(profile, walls, along, third)
    columns["U"] = columns["U"] * (-1 if columns["U"].mean() < 0 else 1)
    nu = case.fluids[0].viscosity
    u_tau, source = _friction(channel, y, columns["U"], nu, model_at(case, walls[0].face))
    if not np.isfinite(u_tau) or u_tau <= 0:
        return None
    size = float(case.domain.size[profile.axis])
    h = channel.h if channel else size / len(walls)
    scaled = {name: values / u_tau**2 for name, values in columns.items() if name != "U"}
    return WallProfile(
        y=y * u_tau / nu,
        columns={MEAN: columns["U"] / u_tau, **scaled},
        u_tau=u_tau,
        source=source,
        re_tau=u_tau * h / nu,
        flow=AXES[along],
        normal=AXES[profile.axis],
        third=None if third is None else AXES[third],
    )


def _from_the_wall(
    profile: Profile, walls: list[WallAt], along: int, third: int | None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Distances from the wall, mean velocity and stresses; the normal points into the fluid."""
    sides = [_side(profile, wall, along, third) for wall in walls]
    y, columns = sides[0]
    if len(sides) == 2 and walls[0].velocity == walls[1].velocity:
        half = slice(0, (len(y) + 1) // 2)
        both = {name: (values + sides[1][1][name])[half] / 2 for name, values in columns.items()}
        return y[half], both
    return y, columns


def _side(
    profile: Profile, wall: WallAt, along: int, third: int | None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Seen from one wall: cells in order of their distance from it."""
    sign = 1 if wall.face[1] == "-" else -1
    order = slice(None, None, sign)
    s, n = AXES[along], AXES[profile.axis]
    stress = profile.stress
    columns = {
        "U": profile.u[:, along] - wall.velocity[along],
        "uu": stress[s + s],
        "vv": stress[n + n],
        "uv": sign * stress["".join(sorted(s + n))],
    }
    if third is not None:
        columns["ww"] = stress[AXES[third] * 2]
    y = sign * (profile.position - wall.position)
    outside = y[order] > 0  # a node on the wall has no profile
    return y[order][outside], {name: values[order][outside] for name, values in columns.items()}


def _friction(
    channel: ForcedChannel | None, y: np.ndarray, u: np.ndarray, nu: float, model: WallModel | None
) -> tuple[float, str]:
    """u_tau and where it is from; `model`: that of the wall, if it has one."""
    if channel is not None:
        return channel.u_tau, "from the driving force"
    if model is not None and len(u) >= model.sample:
        speed = np.abs(u[model.sample - 1 : model.sample])
        return float(model.u_tau(speed, nu)[0]), f"from the law {model.law.name} at the mean of U"
    if len(y) < 2:
        return float("nan"), ""
    (a, b), (first, second) = y[:2], u[:2]
    slope = (first * b / a - second * a / b) / (b - a)  # a parabola through 0 at the wall
    return float(np.sqrt(nu * abs(slope))), "from the slope of U at the wall"


@dataclass(frozen=True, kw_only=True)
class WallReference:
    """A published flow along a wall: y+ and columns as in WallProfile."""

    path: Path
    y: np.ndarray
    columns: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: Path) -> "WallReference":
        """Read a file with the columns of the module's docstring; CommandError if it has none."""
        names, table = read_reference(path)
        columns = {name: table[:, names.index(name)] for name in COLUMNS if name in names}
        if not columns:
            raise CommandError(
                f"{path}: has yplus, but none of {', '.join(COLUMNS)}; name one column like that"
            )
        y = table[:, names.index(Y_PLUS)]
        if not np.isfinite(y).all():
            raise CommandError(
                f"{path}: has an empty or infinite yplus; give a number in each line"
            )
        return cls(path=path, y=y, columns=columns)

    @property
    def cited(self) -> str:
        """The name of the reference: its line "# CITE: …", or the name of the file."""
        return cited(self.path)

    def sentences(self, profile: WallProfile) -> list[str]:
        """The largest deviation of each column between the first cell and the common end."""
        found = []
        for name in COLUMNS:
            if name not in self.columns or name not in profile.columns:
                continue
            inside = (self.y >= profile.y[0]) & (self.y <= profile.y[-1])
            inside &= np.isfinite(self.columns[name])
            relative = name == MEAN
            inside &= self.y > (NEAREST if relative else 0)
            if not inside.any():
                continue
            at, known = self.y[inside], self.columns[name][inside]
            apart = np.abs(interpolate(profile.y, profile.columns[name], at) - known)
            apart = apart / np.abs(known) if relative else apart
            worst, place = apart.max(), at[apart.argmax()]
            what = "U+" if relative else f"<{name[0]}' {name[1]}'>+"
            size = f"{worst:.1%}" if relative else f"{worst:.3g}"
            deviation = f"largest deviation from {self.path.name} is {size}"
            found.append(f"{what}: {deviation}, at y+ = {place:.3g}")
        return found


def is_wall_reference(path: Path) -> bool:
    """Whether a reference has a column y+."""
    return Y_PLUS in read_reference(path)[0]


SIZE = 4.2, 3.6  # inches of a panel
COLOUR_OF = dict(zip(STRESSES, COLOURS, strict=True))
MARKERS = "os^v"  # of references


def of_statistics(
    plt: Any, run: Run, references: list[Path], across: int | None = None
) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of all profiles of a run by name, and lines of text.

    A flow along a wall is in wall units, with the references; CommandError if there are references
    and no such flow.
    """
    figures: dict[str, Any] = {}
    sentences: list[str] = []
    known = [WallReference.read(path) for path in references]
    compared = False
    for axis, profile in run.profiles.items():
        if profile.scalars:
            figures[f"scalars_{axis}"] = _scalar_figure(plt, run, profile, across)
        wall = in_wall_units(run.case, profile)
        if wall is None:
            figures[f"statistics_{axis}"] = _plain_figure(plt, run, profile, across)
            continue
        figures[f"statistics_{axis}"] = _wall_figure(plt, run, profile, wall, known, across)
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


def _wall_figure(
    plt: Any,
    run: Run,
    profile: Profile,
    wall: WallProfile,
    references: list[WallReference],
    across: int | None,
) -> "Figure":
    """U+ over the logarithm of y+, and stresses in u_tau^2 over y+."""
    figure, (left, right) = panels(plt, 2, across or 2, SIZE)
    label = f"mpilbm, {len(profile.position)} cells"
    left.semilogx(wall.y, wall.columns[MEAN], color=COLOURS[0], label=label)
    for name in STRESSES:
        if name in wall.columns:
            a, b = list(wall.axes_of(name))
            right.plot(wall.y, wall.columns[name], color=COLOUR_OF[name], label=f"<u_{a}' u_{b}'>")
    for one, marker in zip(references, MARKERS, strict=False):
        style: dict[str, Any] = {"linestyle": "", "marker": marker, "mfc": "none"}
        if MEAN in one.columns:
            y, mean = one.y[one.y > 0], one.columns[MEAN][one.y > 0]
            left.plot(y, mean, **style, ms=4, color="black", label=one.cited)
        for name in STRESSES:
            if name in one.columns and name in wall.columns:
                right.plot(one.y, one.columns[name], **style, ms=3, mew=0.7, color=COLOUR_OF[name])
        right.plot([], [], **style, ms=4, color="0.3", label=one.cited)
    left.set(
        xlabel=f"y+ = {wall.normal} u_tau / nu (1), {wall.normal} from the wall",
        ylabel=f"U+ = <u_{wall.flow}> / u_tau (1)",
    )
    left.set_xlim(left=min(1.0, wall.y[0]))
    plain_logarithms(left.xaxis)
    right.set(xlabel="y+ (1)", ylabel="Reynolds stress / u_tau^2 (1)")
    for axis in (left, right):
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8)
    size, number = _of_wall(wall, run.units)
    figure.suptitle(f"{run.title}\n{size}\n{number}; {profile.window}", fontsize=9)
    return figure


def _plain_figure(plt: Any, run: Run, profile: Profile, across: int | None) -> "Figure":
    """Mean velocity and Reynolds stresses over the position; with [units] in SI."""
    speed = run.units.unit(VELOCITY) if run.units else 1.0
    figure, (left, right), position = _over_position(plt, run, profile, 2, across)
    for k in range(profile.u.shape[1]):
        left.plot(position, profile.u[:, k] * speed, color=COLOURS[k], label=f"<u_{AXES[k]}>")
    for k, (pair, values) in enumerate(profile.stress.items()):
        a, b = list(pair)
        right.plot(position, values * speed**2, color=f"C{k}", label=f"<u_{a}' u_{b}'>")
    left.set(ylabel=f"mean velocity ({'m/s' if run.units else 'cells per step'})")
    right.set(ylabel=f"Reynolds stress ({'m^2/s^2' if run.units else 'cells^2 per step^2'})")
    for axis in (left, right):
        axis.locator_params(axis="x", nbins=6)
        if np.isfinite(profile.u).any():
            axis.legend(fontsize=8)
    return figure


def _scalar_figure(plt: Any, run: Run, profile: Profile, across: int | None) -> "Figure":
    """Mean and turbulent flux of each scalar over the position; with [units] in SI."""
    speed, velocity = 1.0, "cells per step"
    if run.units:
        speed, velocity = run.units.unit(VELOCITY), "m/s"
    count = 2 * len(profile.scalars)
    figure, axes, position = _over_position(plt, run, profile, count, across)
    for left, right, label in zip(axes[::2], axes[1::2], profile.scalars, strict=True):
        left.plot(position, profile.scalars[label], color=COLOURS[0])
        for k, values in enumerate(profile.fluxes[label].T):
            name = f"<u_{AXES[k]}' {label}'>"
            right.plot(position, values * speed, color=COLOURS[k], label=name)
        left.set(ylabel=f"mean of {label}")
        right.set(ylabel=f"turbulent flux ({label} x {velocity})")
        right.legend(fontsize=8)
    return figure


def _over_position(
    plt: Any, run: Run, profile: Profile, count: int, across: int | None
) -> "tuple[Figure, list[Axes], np.ndarray]":
    """A figure with panels over the position, and the positions in m or in cells."""
    figure, axes = panels(plt, count, across or 2, SIZE)
    for axis in axes:
        axis.set(xlabel=f"{AXES[profile.axis]} ({'m' if run.units else 'cells'})")
        axis.grid(alpha=0.25)
    figure.suptitle(f"{run.title}\n{profile.window}", fontsize=9)
    return figure, axes, profile.position * (run.units.cell if run.units else 1.0)
