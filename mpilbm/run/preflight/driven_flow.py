"""Estimates the speed that forces and pressure differences cause before the last step.

An acceleration g gives u = g t, limited by the friction of walls. r is the hydraulic radius, fluid
volume / wall area (half the height of a channel, a quarter of the diameter of a pipe):

    laminar     u = g r^2 / (2 nu)                      channel: g H^2 / (8 nu)
    turbulent   u = u_tau (2.44 ln(u_tau r / nu) + 5.2) for u_tau r / nu > 107, u_tau = (g r)^(1/2)
    open ends   u = (2 g L)^(1/2)                       Bernoulli
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log, pi, sqrt

import numpy as np

from mpilbm.case.model import Case
from mpilbm.case.velocity_bounds import sampled
from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.values import FieldValue
from mpilbm.physics.boundaries.wall import Wall

TIMES = 65  # of a run at which formulas are evaluated
ALONG = 32  # points along each side of the box
Cause = tuple[str, np.ndarray, float]  # (key, mean acceleration at times t, shear)
TRANSITION = 107  # u_tau r / nu at which plane Poiseuille flow becomes linearly unstable


@dataclass(frozen=True)
class Push:
    """The acceleration along an axis: the keys that cause it, and its mean over the box at times t.

    `shear` is the largest difference from the mean acceleration, averaged over time and the axis.
    """

    axis: int
    keys: tuple[str, ...]
    t: np.ndarray
    mean: np.ndarray
    shear: float

    @property
    def largest(self) -> float:
        """The largest mean acceleration."""
        return float(np.abs(self.mean).max())

    @property
    def gained(self) -> float:
        """The largest speed that a fluid reaches without friction."""
        steps = np.diff(self.t) * (self.mean[1:] + self.mean[:-1]) / 2
        return float(np.abs(np.cumsum(steps)).max(initial=0))


def pushes(case: Case) -> list[Push]:
    """The accelerations along each axis by forces on the fluid and densities at faces.

    The pressure of coupled fluids is not cs2 rho: for them, forces along periodic axes only.
    """
    t = np.array(sorted({*np.linspace(0, case.run.steps, TIMES).astype(int).tolist()}), np.float64)
    found = []
    causes = (_forces, _densities, _jumps) if case.single_fluid else (_forces,)
    for axis in range(case.dimensions):
        if not (case.single_fluid or case.domain.periodic[axis]):
            continue
        parts = [part for cause in causes for part in cause(case, axis, t)]
        if parts:
            keys, means, shears = zip(*parts, strict=True)
            found.append(Push(axis, keys, t, sum(means), max(shears)))
    return found


def _forces(case: Case, axis: int, t: np.ndarray) -> Iterator[Cause]:
    for fluid in case.fluids:
        value = fluid.force.value[axis] if fluid.force else 0
        key = f"{case.key(fluid, 'force')}.value"
        if isinstance(value, str):
            values = _sampled(case, value, t)
            mean = values.mean(axis=(1, 2, 3))
            shear = np.abs(values.mean(axis=(0, 1 + axis)) - mean.mean()).max()
            yield key, mean, float(shear)
        elif isinstance(value, FieldValue):
            continue  # its mean would take the whole box
        elif value:
            yield key, np.full(t.size, value), 0.0


def _sampled(case: Case, text: str, t: np.ndarray) -> np.ndarray:
    """The values of a formula at times t and evenly spaced points of the box, (times, x, y, z)."""
    formula, size = Formula(text), (*case.domain.size, 1)[:3]
    counts = [
        min(n, ALONG) if axis in formula.names else 1 for n, axis in zip(size, "xyz", strict=True)
    ]
    at = [(np.arange(m) + 0.5) * n / m for n, m in zip(size, counts, strict=True)]
    known = dict(zip("xyz", np.meshgrid(*at, indexing="ij", sparse=True), strict=True))
    box = dict(zip(("nx", "ny", "nz"), size, strict=True))
    times = t if "t" in formula.names else t[:1]
    found = formula.evaluate(**known, **box, t=times[:, None, None, None])
    return np.broadcast_to(found, (t.size, *counts))


def _densities(case: Case, axis: int, t: np.ndarray) -> Iterator[Cause]:
    """The cause by a pressure difference cs2 (rho_- - rho_+) between the faces of an axis."""
    ends = {}
    for index, boundary in enumerate(case.boundaries):
        for face in boundary.where:
            given = getattr(boundary, "rho", None)
            if face[0] == "xyz"[axis] and given is not None:
                alone = boundary.model_copy(update={"where": (face,)})
                _, (rho,) = sampled(case, alone, None, (given,), t=t)
                mean = np.broadcast_to(rho.mean(axis=1), t.shape)
                ends[face[1]] = f"boundary.{index}.rho", mean
    if len(ends) == 2:
        (first, low), (last, high) = ends["-"], ends["+"]
        slope = (low - high) / ((low + high) / 2) / case.domain.size[axis]
        if slope.any():
            yield f"{first} and {last}", float(case.lattice.cs2) * slope, 0.0


def _jumps(case: Case, axis: int, t: np.ndarray) -> Iterator[Cause]:
    """The causes by pressure jumps between periodic faces."""
    for index, boundary in enumerate(case.boundaries):
        jump = getattr(boundary, "rho_jump", None)
        if jump is not None and boundary.where[0][0] == "xyz"[axis]:
            _, (rho,) = sampled(case, boundary, None, (jump,), t=t)
            mean = np.broadcast_to(rho.mean(axis=1), t.shape) / case.domain.size[axis]
            yield f"boundary.{index}.rho_jump", float(case.lattice.cs2) * mean, 0.0


def density_ranges(case: Case) -> list[tuple[str, float, float]]:
    """(key, smallest, largest) of the density at each boundary that gives one."""
    found = []
    for index, boundary in enumerate(case.boundaries):
        given = getattr(boundary, "rho", None)
        if given is not None:
            _, (rho,) = sampled(case, boundary, None, (given,))
            found.append((f"boundary.{index}.rho", float(rho.min()), float(rho.max())))
    return found


def is_closed(case: Case, axis: int) -> bool:
    """Whether walls close the faces of an axis."""
    name = "xyz"[axis]
    at = [b for b in case.boundaries for face in b.where if face[0] == name and not b.joins_faces]
    resting = (b.mirrors or (isinstance(b, Wall) and b.velocity is None) for b in at)
    return not case.domain.periodic[axis] and any(resting)


def speed(case: Case, push: Push, radius: float) -> float:
    """The speed that a fluid reaches; `radius` is the hydraulic radius, infinite without walls."""
    nu = max(fluid.viscosity for fluid in case.fluids)
    length = case.domain.size[push.axis]
    sides = {f[0] for b in case.boundaries if isinstance(b, Wall) for f in b.where}
    shape = 2 if len(sides - {"xyz"[push.axis]}) == 2 else 1  # a duct or a channel
    bounds = [push.gained, shape * _between_walls(push.largest, radius, nu)]
    if not case.domain.periodic[push.axis]:
        bounds.append(0.0 if is_closed(case, push.axis) else sqrt(2 * push.largest * length))
    return max(min(bounds), _by_shear(case, push, radius, nu))


def _between_walls(g: float, radius: float, nu: float) -> float:
    """The laminar or turbulent speed of the module's docstring."""
    if not g or radius == inf:
        return inf if g else 0.0
    laminar, friction = g * radius**2 / (2 * nu), sqrt(g * radius)
    if friction * radius / nu < TRANSITION:
        return laminar
    return friction * (2.44 * log(friction * radius / nu) + 5.2)


def _by_shear(case: Case, push: Push, radius: float, nu: float) -> float:
    """The speed by a force that varies across the flow, at most that of one wave in the box."""
    length = max(n for axis, n in enumerate(case.domain.size) if axis != push.axis)
    r, g = min(radius / sqrt(2), length / (2 * pi)), push.shear
    return min(g * push.t[-1], g * r**2 / nu, sqrt(2 * g * length))
