"""The initial fields of a fluid: numbers and formulas, a file, or a random velocity."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import SkipValidation

from mpilbm.case.initial_files import Shape, check_fields, load_fields
from mpilbm.case.random_flow import RandomFlow, waves_of
from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree
from mpilbm.core.formulas.values import AXES, FieldValue, names_in
from mpilbm.core.registry import Parameters
from mpilbm.model.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY
from mpilbm.physics.lattices import Lattice

BLOCK_CELLS = 2**14  # evaluated together
FIXES = {
    "": "change the formula",
    "file": "use another file, or change scale",
    "random": "lower its speed",
}


class InitialFields(Parameters):
    """Values at t = 0: numbers, formulas or fields, a `file`, or a `random` velocity.

    `value` is the density of a fluid, which has limits, or the value of a scalar; `name` is its key
    in the table, rho or value. u has one entry per dimension. A velocity from a file is multiplied
    by `scale`, the difference of its density from 1 by `scale_rho`. `periodic` is a property of the
    box; no cell may be faster than `max_speed`. `where` and `path` are the key path and the case
    file, for messages.
    """

    value: float | str | SkipValidation[FieldValue]
    name: str = "rho"
    u: tuple[float | str | SkipValidation[FieldValue], ...]
    file: Path | None
    random: RandomFlow | None = None
    scale: float = 1.0
    scale_rho: float = 1.0
    non_equilibrium: bool
    iterate: int
    periodic: tuple[bool, ...]
    lattice: SkipValidation[Lattice]
    max_speed: float
    where: str
    path: Path

    @property
    def uniform(self) -> bool:
        """Whether all cells have the same values."""
        numbers = (isinstance(value, int | float) for value in (self.value, *self.u))
        return not self._source and all(numbers)

    @property
    def formulas(self) -> bool:
        """Whether `trees` describe all values."""
        fields = (isinstance(value, FieldValue) for value in (self.value, *self.u))
        return not self._source and not any(fields)

    @property
    def key_of_velocity(self) -> str:
        """The key path of the file or of the velocity, for messages."""
        return f"{self.where}.{self._source or 'u'}"

    @property
    def _source(self) -> str:
        """The key that gives the velocity if `u` does not; else empty."""
        return "file" if self.file else "random" if self.random else ""

    @property
    def trees(self) -> dict[str, Tree]:
        """The formulas, or numbers, of `name`, u_x, u_y …; without those of files and fields."""
        keys = (self.name, *(f"u_{axis}" for axis in AXES[: len(self.u)]))
        values = zip(keys, (self.value, *self.u), strict=True)
        names = names_in(len(self.u))
        return {
            key: Formula(v, names).tree if isinstance(v, str) else v
            for key, v in values
            if not isinstance(v, FieldValue)
        }

    def require(self) -> None:
        """CaseError if `file` is given but holds no fields of so many dimensions."""
        if self.file:
            with self._case_errors():
                check_fields(self.file, len(self.u))

    @contextmanager
    def _case_errors(self) -> Iterator[None]:
        """Turns the ValueError of a reader into a CaseError that names the file."""
        try:
            yield
        except ValueError as error:
            raise CaseError(f"'{self.file}' {error}", f"{self.where}.file", self.path) from None

    def evaluate(self, shape: Shape, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """The value (n, rows, nx) and u (n, rows, nx, D), float64, in the n planes begin … end - 1.

        `shape` is (planes, rows, nx), the stored cells of the whole box; cell centres are at 0.5,
        1.5, … Formulas are evaluated in blocks that depend on `shape` alone, so that results do
        not depend on the number of ranks. Raises CaseError if a value is not finite, a density is
        out of range, or a cell is too fast.
        """
        rho, u = self._read(shape, begin, end) if self.file else self._computed(shape, begin, end)
        wrong = (self.name == "rho") & ((rho < LEAST_DENSITY) | (rho > LARGEST_DENSITY))
        self._refuse(
            wrong, rho, "rho", begin, f"is outside the range of densities; allowed: {DENSITIES}"
        )
        if len(self.u) * max(u.max(), -u.min()) > self.max_speed:
            with np.errstate(over="ignore"):
                speed = np.sqrt((u**2).sum(axis=-1))
            sentence = f"is above the speed of sound; allowed: below {self.max_speed:.4g}"
            self._refuse(speed > self.max_speed, speed, "u", begin, sentence)
        return rho, u

    def _read(self, shape: Shape, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.file is not None
        full = (*shape[:2], shape[2] * self.lattice.volume)
        with self._case_errors():
            fields = load_fields(self.file, full, self.periodic, begin, end)
        rho, u = (self.lattice.stored(field, begin) for field in fields)
        total = rho + u.sum(axis=-1)
        self._refuse(~np.isfinite(total), total, "file", begin, "is not finite")
        if self.scale != 1:
            rho, u = 1 + self.scale_rho * (rho - 1), self.scale * u
        return rho, u

    def _computed(self, shape: Shape, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        _, rows, nx = shape
        rho = np.empty((end - begin, rows, nx))
        u = np.empty((end - begin, rows, nx, len(self.u)))
        targets: dict[str, tuple[Any, np.ndarray]] = {self.name: (self.value, rho)}
        targets |= {f"u.{axis}": (value, u[..., axis]) for axis, value in enumerate(self.u)}
        for key, (value, target) in targets.items():
            if key != self.name and self.random:
                continue
            if not isinstance(value, str):
                field = isinstance(value, FieldValue)
                target[...] = value.planes(begin, end) if field else value
                continue
            evaluate = partial(self._values, Formula(value, names_in(len(self.u))), shape)
            for here, values in in_blocks(shape, begin, end, evaluate):
                target[here] = values
            if not np.isfinite(target.sum()):
                self._refuse(~np.isfinite(target), target, key, begin, "is not finite")
        if self.random:
            u[...] = self._waves(self.random, shape, begin, end)
        return rho, u

    def _waves(self, flow: RandomFlow, shape: Shape, begin: int, end: int) -> np.ndarray:
        planes, rows, nx = shape[0], shape[1], shape[2] * self.lattice.volume
        size = (nx, planes) if len(self.u) == 2 else (nx, rows, planes)
        waves = waves_of(flow, size)
        return self.lattice.stored(np.stack([waves.plane(k) for k in range(begin, end)]), begin)

    def strain(self, shape: Shape, begin: int, end: int) -> np.ndarray:
        """S_ab = (du_a/dx_b + du_b/dx_a) / 2 in planes, (n, rows, nx, D (D + 1) / 2): xx, xy, ….

        Central differences, one-sided at faces that are not periodic. The values of a plane need
        only its two neighbours, so that results do not depend on the number of ranks.
        """
        D = len(self.u)
        inner = self.evaluate(shape, max(begin - 1, 0), min(end + 1, shape[0]))[1]
        below = [self._beyond(shape, -1)] if begin == 0 else []
        above = [self._beyond(shape, shape[0])] if end == shape[0] else []
        u = np.concatenate([*below, inner, *above])
        slopes = [_slope(u[1:-1], 2, self.periodic[0])]
        slopes += [_slope(u[1:-1], 1, self.periodic[1])] if D == 3 else []
        slopes.append((u[2:] - u[:-2]) / 2)
        pairs = combinations_with_replacement(range(D), 2)
        return np.stack([(slopes[b][..., a] + slopes[a][..., b]) / 2 for a, b in pairs], axis=-1)

    def _beyond(self, shape: Shape, plane: int) -> np.ndarray:
        """u (1, rows, nx, D) of the plane before or after the box: periodic or extrapolated."""
        count = shape[0]
        if self.periodic[-1] or count == 1:
            plane %= count
            return self.evaluate(shape, plane, plane + 1)[1]
        edge, inner = (0, 1) if plane < 0 else (count - 1, count - 2)
        near, far = (self.evaluate(shape, k, k + 1)[1] for k in (edge, inner))
        return 2 * near - far

    def _refuse(
        self, bad: np.ndarray, values: np.ndarray, key: str, begin: int, sentence: str
    ) -> None:
        if not bad.any():
            return
        plane, row, x = (int(index) for index in np.argwhere(bad)[0])
        value = values[plane, row, x]
        source = "" if key == self.name and self.random else self._source
        x = self.lattice.x(begin + plane, row, x)
        y, z = (begin + plane, None) if len(self.u) == 2 else (row, begin + plane)
        cell = f"x={x}, y={y}" + ("" if z is None else f", z={z}")
        raise CaseError(
            f"{value:g} in cell {cell} (counted from 0) {sentence}; " + FIXES[source],
            f"{self.where}.{source or key}",
            self.path,
        )

    def _values(self, formula: Formula, shape: Shape, first: int, last: int) -> np.ndarray:
        """A formula in the planes first … last - 1, (n, rows, nx).

        The arrays of coordinates broadcast, so that parts of a formula with one coordinate are
        computed once, not in every cell. On a staggered lattice x differs from row to row.
        """
        planes, rows, cells = shape
        plane, row, k = np.ogrid[first:last, :rows, :cells]
        x, nx = self.lattice.x(plane, row, k) + 0.5, cells * self.lattice.volume
        if len(self.u) == 2:
            found = formula.evaluate(x=x, y=plane + 0.5, nx=nx, ny=planes, t=0.0)
        else:
            y, z = row + 0.5, plane + 0.5
            found = formula.evaluate(x=x, y=y, z=z, nx=nx, ny=rows, nz=planes, t=0.0)
        return np.broadcast_to(found, (last - first, rows, cells))


def in_blocks(
    shape: Shape, begin: int, end: int, evaluate: Callable[[int, int], np.ndarray]
) -> Iterator[tuple[slice, np.ndarray]]:
    """Parts of planes begin … end - 1, and the values of `evaluate(first, last)` in them.

    It is called for equal blocks of planes of the box, which do not depend on begin and end.
    """
    planes, rows, nx = shape
    step = max(1, BLOCK_CELLS // (rows * nx))
    for first in range(begin // step * step, end, step):
        last = min(first + step, planes)
        here = slice(max(first, begin), min(last, end))
        values = evaluate(first, last)[here.start - first : here.stop - first]
        yield slice(here.start - begin, here.stop - begin), values


def _slope(u: np.ndarray, axis: int, periodic: bool) -> np.ndarray:
    """du/dx along an axis of the array: central, at the ends periodic or one-sided."""
    if u.shape[axis] == 1:
        return np.zeros_like(u)
    if periodic:
        return (np.roll(u, -1, axis) - np.roll(u, 1, axis)) / 2
    return np.gradient(u, axis=axis)
