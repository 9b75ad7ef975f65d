"""The fluctuations of the velocity in the cells of a face, from planes of random numbers."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.given_functions import AtPoints, PointValue
from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.core.formulas.ramp import rise
from mpilbm.core.formulas.values import CellValue, Given, Plane
from mpilbm.model.case import Case
from mpilbm.physics.random_planes import KNOTS, SPACING, RandomPlanes, knots

Floats = NDArray[np.float64]
AXES = "xyz"
FACES = ("x-", "x+", "y-", "y+", "z-", "z+")
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # of the stresses
NEGATIVE = 1e-9  # of the trace, above which a negative variance is no rounding error
LEFT = 0.25  # least share of the variance that the condition of zero flow may leave


class Strength(Protocol):
    """The keys of Turbulence."""

    @property
    def intensity(self) -> float | str | None:
        """rms over the speed."""

    @property
    def stresses(self) -> tuple[float | str, ...] | None:
        """R for each of PAIRS."""

    @property
    def length(self) -> float:
        """Length along the face."""

    @property
    def length_along(self) -> float | None:
        """Length along the flow."""

    @property
    def seed(self) -> int:
        """The key of the random numbers."""


class Inlet:
    """A face with turbulence: the strength of u' in its cells, and planes of u' at times.

    Arrays have the shape of the face, slowest axis first. All members are computed when they are
    used first.
    """

    def __init__(
        self,
        given: Strength,
        case: Case,
        where: Sequence[str],
        velocity: Any,
        fluid: Callable[[str], NDArray[np.bool_]],
    ):
        self._given, self._where, self._velocity, self._fluid = given, where, velocity, fluid
        self._size, self._periodic = case.domain.size, case.domain.periodic
        self._sound = sqrt(case.lattice.cs2)
        self.plane = lru_cache(KNOTS + 1)(self._plane)

    @property
    def face(self) -> str:
        """The face."""
        return self._where[0]

    @property
    def normal(self) -> int:
        """The axis across the face."""
        return AXES.index(self.face[0])

    @cached_property
    def _along(self) -> list[int]:
        """The axes along the face, slowest first."""
        return [a for a in (2, 1, 0) if a != self.normal]

    @property
    def shape(self) -> tuple[int, int]:
        """Cells along these axes."""
        return self._size[self._along[0]], self._size[self._along[1]]

    @property
    def _order(self) -> list[int]:
        """The order of components in a, normal first."""
        return [self.normal, *self._along]

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """Where the face is fluid."""
        return self._fluid(self.face)

    @cached_property
    def u(self) -> list[Floats]:
        """The given velocity, after its ramp."""
        return [self._on_face(value) for value in self._velocity or ()]

    @cached_property
    def speed(self) -> float:
        """The mean velocity into the box."""
        inwards = self.u[self.normal] * (1 if self.face[1] == "-" else -1)
        return float(inwards[self.open].mean()) if self.open.any() else 0.0

    @cached_property
    def stresses(self) -> list[Floats]:
        """R for each of PAIRS."""
        if self._given.stresses is not None:
            return [self._on_face(value) for value in self._given.stresses]
        assert self._given.intensity is not None, "Turbulence requires one of them"
        squares = self._on_face(self._given.intensity) ** 2 * sum(u**2 for u in self.u)
        return [squares if i == j else np.zeros(self.shape) for i, j in PAIRS]

    @cached_property
    def largest_intensity(self) -> float:
        """The largest rms of a component relative to the mean of |u| over the face."""
        variance = np.max(self.stresses[:3], axis=0)[self.open]
        mean = np.sqrt(sum(u**2 for u in self.u))[self.open].mean()
        return float(np.sqrt(variance.max()) / mean)

    def _on_face(self, value: Given) -> Floats:
        """A value at the centres of the cells of the face, at t = 0 and without a ramp."""
        if isinstance(value, Plane):
            return value.values
        slow, fast = np.mgrid[: self.shape[0], : self.shape[1]] + 0.5
        layer = 0.5 if self.face[1] == "-" else self._size[self.normal] - 0.5
        places = {self._along[0]: slow, self._along[1]: fast}
        places[self.normal] = np.full(self.shape, layer)
        points = [np.ascontiguousarray(places[a]) for a in range(3)]
        if isinstance(value, PointValue):
            return value.at(points, 0)
        box = dict(zip(("nx", "ny", "nz"), self._size, strict=True))
        known = dict(zip(AXES, points, strict=True)) | box
        found: Any = Formula(value).evaluate(**known) if isinstance(value, str) else value
        return np.array(np.broadcast_to(found, self.shape), np.float64)

    def problems(self) -> list[str]:
        """Faces and velocities that are no inlet, and values that are no stresses."""
        if len(self._where) != 1:
            faces = ", ".join(self._where) or "none"
            return [f"found in an entry with the faces {faces}; allowed: one face per entry"]
        if self._velocity is None:
            return ["found with rho; allowed with a velocity that enters; remove it"]
        if not isinstance(self._velocity, tuple) or len(self._velocity) != 3:
            return []  # which is refused with the velocity
        try:
            timed = any(CellValue("u", u, 3).timed for u in self._velocity)
        except FormulaError:
            return []
        if timed:
            return [
                "found with a velocity that depends on t; allowed: numbers, formulas of x, y and "
                "z, arrays, and a ramp; remove it, or t"
            ]
        return [*self._wrong_numbers()]

    def _wrong_numbers(self) -> Iterator[str]:
        """The first problem of the numbers in the cells of the face."""
        given, key = self._given, "intensity" if self._given.stresses is None else "stresses"
        if not all(np.isfinite(each).all() for each in (*self.stresses, *self.u)):
            yield f"{key}: is not finite in some cells of {self.face}; change the formula"
        elif not self.speed > 0:
            yield (
                f"found at {self.face}, through which the mean velocity into the box is "
                f"{self.speed:.3g}; allowed: above 0; remove it"
            )
        elif given.intensity is not None and (self._on_face(given.intensity) < 0).any():
            yield f"{key}: is negative in some cells of {self.face}; allowed: 0 or more"
        elif (wrong := self._indefinite()).any():
            cell = tuple(np.argwhere(wrong)[0])
            found = ", ".join(f"{each[cell]:.3g}" for each in self.stresses)
            at = zip(self._along[::-1], cell[::-1], strict=True)
            place = ", ".join(f"{AXES[a]} = {k + 0.5:g}" for a, k in at)
            yield (
                f"{key}: found [{found}] at {place}; allowed: variances of 0 or more, shear "
                "stresses up to the root of the product of two variances, and a positive "
                "semidefinite tensor of all"
            )
        elif (rms := np.sqrt(np.max(self.stresses[:3]))) > self._sound:
            yield (
                f"{key}: found the rms {rms:.4g} at {self.face}; allowed: below the speed of "
                f"sound, {self._sound:.4g}; lower it, or give it with its unit"
            )
        elif self._left < LEFT:
            yield (
                f"length: found {given.length:g} at {self.face} with {self.shape[1]} x "
                f"{self.shape[0]} cells: a constant flow rate leaves {self._left:.0%} of such "
                "eddies; use at most a quarter of the shorter side"
            )

    def _tensor(self) -> Floats:
        """R with the normal component first, (*shape, 3, 3)."""
        found = np.empty((*self.shape, 3, 3))
        place = [self._order.index(a) for a in range(3)]
        for (i, j), values in zip(PAIRS, self.stresses, strict=True):
            found[..., place[i], place[j]] = found[..., place[j], place[i]] = values
        return found

    def _indefinite(self) -> NDArray[np.bool_]:
        R = self._tensor()
        least = np.linalg.eigvalsh(R)[..., 0]
        return (least < -NEGATIVE * np.trace(R, axis1=-2, axis2=-1)) & self.open

    @cached_property
    def _a(self) -> Floats:
        """The lower triangle a with a a^T = R, (*shape, 3, 3); 0 where nothing is left of R."""
        R, a = self._tensor(), np.zeros((*self.shape, 3, 3))
        for j in range(3):
            left = R[..., j, j] - (a[..., j, :j] ** 2).sum(axis=-1)
            a[..., j, j] = np.sqrt(np.maximum(left, 0))
            divisor = np.where(a[..., j, j] > 0, a[..., j, j], 1)
            for i in range(j + 1, 3):
                rest = R[..., i, j] - (a[..., i, :j] * a[..., j, :j]).sum(axis=-1)
                a[..., i, j] = np.where(a[..., j, j] > 0, rest / divisor, 0)
        return a

    @cached_property
    def _random(self) -> RandomPlanes:
        periodic = [self._periodic[a] for a in self._along]
        given = self._given
        stream = FACES.index(self.face)
        return RandomPlanes(self.shape, periodic, given.length, given.seed, stream)

    @cached_property
    def _weight(self) -> Floats:
        """s of the zero mean: the rms of the normal component in open cells."""
        return np.where(self.open, self._a[..., 0, 0], 0)

    @cached_property
    def _left(self) -> float:
        """The variance of xi_n - <s xi_n> / <s>, weighted by s^2; 1 if s is 0 everywhere."""
        s = self._weight
        if not s.any():
            return 1.0
        c = self._random.correlated(s) / s.sum()
        v = (s * c).sum() / s.sum()
        return float((s**2 * (1 - 2 * c + v)).sum() / (s**2).sum())

    @property
    def distance(self) -> float:
        """Steps between two planes of random numbers."""
        length = self._given.length_along or self._given.length
        return length / self.speed / SPACING

    def _plane(self, number: int) -> Floats:
        """u' of a plane of random numbers, (3, *shape)."""
        xi, s = self._random.plane(number, 3), self._weight
        if s.any():
            mean = (s * xi[0]).sum() / s.sum()
            xi[0] = (xi[0] - mean) / np.sqrt(self._left)
        found = np.empty((3, *self.shape))
        for i, axis in enumerate(self._order):
            found[axis] = sum(self._a[..., i, j] * xi[j] for j in range(i + 1))
        return found

    def at(self, component: int, points: Sequence[Floats]) -> Callable[[float], Floats]:
        """A function of the time: a component of u' in the cells with these centres."""
        slow, fast = (points[a].astype(np.int64) for a in self._along)
        cells = slow * self.shape[1] + fast
        known: dict[int, Floats] = {}
        part = np.empty(cells.size)

        def values(t: float) -> Floats:
            first, weights = knots(t / self.distance)
            wanted = range(first, first + KNOTS)
            for number in [each for each in known if each not in wanted]:
                del known[number]
            for number in wanted:
                if number not in known:
                    known[number] = self.plane(number)[component].reshape(-1)[cells]
            found = weights[0] * known[first]
            for weight, number in zip(weights[1:], wanted[1:], strict=True):
                found += np.multiply(weight, known[number], out=part)
            return found

        return values


class Fluctuation(AtPoints):
    """A component of u', times the rise in the first `ramp` steps."""

    timed = True

    def __init__(self, inlet: Callable[[], Inlet], component: int, ramp: int):
        self._inlet, self._component, self._ramp = inlet, component, ramp

    def over(self, places: Sequence[Any]) -> Callable[[float], Floats]:
        """A function of the time that returns the numbers at points."""
        at, steps = self._inlet().at(self._component, places), self._ramp
        return lambda t: at(t) * rise(t, steps) if t < steps else at(t)
