"""Statistics of a flow along a wall in wall units, also compared with a published flow.

    y+ = y u_tau / nu,  U+ = (U - U_wall) / u_tau,  stresses <u_a' u_b'> / u_tau^2

y is the distance from the wall. u_tau follows from the driving force of a channel, otherwise from
the slope of the mean velocity at the wall, u_tau^2 = nu |dU/dy|, which needs cells in the viscous
sublayer. The halves of a channel between two walls that move alike are averaged.

A reference is a CSV file (comment lines begin with #) with a column `yplus` and some of `Uplus`,
`uu`, `vv`, `ww`, `uv`: along the flow, normal to the wall, and in the third direction.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.driving import ForcedChannel, WallAt, forced_channel, walls_across
from mpilbm.core.errors import CommandError
from mpilbm.view.plot.references import cited, interpolate, read_reference
from mpilbm.view.results.statistics import AXES, Profile

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
    if len(case.fluids) > 1 or case.coupling or not walls:
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
    u_tau, source = _friction(channel, y, columns["U"], nu)
    if not np.isfinite(u_tau) or u_tau <= 0:
        return None
    size = float(case.domain.size[profile.axis])
    h = channel.h if channel else size / len(walls)
    scaled = {name: values / u_tau**2 for name, values in columns.items() if name != "U"}
    return WallProfile(
        y=y * u_tau / nu, columns={MEAN: columns["U"] / u_tau, **scaled}, u_tau=u_tau,
        source=source, re_tau=u_tau * h / nu, flow=AXES[along], normal=AXES[profile.axis],
        third=None if third is None else AXES[third],
    )  # fmt: skip


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
    lower = wall.face[1] == "-"
    order = slice(None) if lower else slice(None, None, -1)
    sign = 1 if lower else -1
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
    channel: ForcedChannel | None, y: np.ndarray, u: np.ndarray, nu: float
) -> tuple[float, str]:
    """u_tau and where it is from."""
    if channel is not None:
        return channel.u_tau, "from the driving force"
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
            found.append(f"{what}: largest deviation from {self.path.name} is {size}, "
                         f"at y+ = {place:.3g}")  # fmt: skip
        return found


def is_wall_reference(path: Path) -> bool:
    """Whether a reference has a column y+."""
    return Y_PLUS in read_reference(path)[0]


def read_wall_reference(path: Path) -> WallReference:
    """Read a file with the columns of the module's docstring; CommandError if it has none."""
    names, table = read_reference(path)
    columns = {name: table[:, names.index(name)] for name in COLUMNS if name in names}
    if not columns:
        raise CommandError(
            f"{path}: has yplus, but none of {', '.join(COLUMNS)}; name one column like that"
        )
    y = table[:, names.index(Y_PLUS)]
    if not np.isfinite(y).all():
        raise CommandError(f"{path}: has an empty or infinite yplus; give a number in each line")
    return WallReference(path=path, y=y, columns=columns)
