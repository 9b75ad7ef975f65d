"""The initial fields of a fluid, from numbers and formulas or from a snapshot."""

from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from mpilbm.case.input_fields import check_snapshot, load_snapshot, stored
from mpilbm.errors import CaseError
from mpilbm.formulas.parser import Formula
from mpilbm.formulas.values import names_in
from mpilbm.physics.lattices import x_of
from mpilbm.registry import Parameters
from mpilbm.verdicts.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY

BLOCK_CELLS = 2**14  # evaluated at a time


class Initial(Parameters):
    """Density and velocity at t = 0: numbers or formulas, one u per dimension, or a `file`.

    `where` and `path` are the key path and the file, for messages; no cell may be faster than
    `max_speed`. `staggered`: as the lattice has it.
    """

    rho: float | str
    u: tuple[float | str, ...]
    where: str = "initial"
    path: Path | None = None
    max_speed: float = 1e300
    staggered: bool = False
    file: Path | None = None
    non_equilibrium: bool = False
    iterate: int = 0
    periodic: tuple[bool, ...] = ()

    @property
    def uniform(self) -> bool:
        """Whether all cells are alike."""
        return not (self.file or any(isinstance(value, str) for value in (self.rho, *self.u)))

    def require(self) -> None:
        """CaseError unless the file, if there is one, is a snapshot of as many dimensions."""
        if self.file:
            self._told(check_snapshot, self.file, len(self.u))

    def _told(self, read, *arguments):
        """What a reader returns; its ValueError as CaseError."""
        try:
            return read(*arguments)
        except ValueError as error:
            raise CaseError(f"'{self.file}' {error}", f"{self.where}.file", self.path) from None

    def evaluate(self, shape, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Rho (n, rows, nx) and u (n, rows, nx, D), float64, of the n planes begin … end - 1.

        `shape` = (planes, rows, nx) of the whole box as stored; centres are 0.5, 1.5, … Blocks that
        depend on this shape alone are evaluated, so that no bit depends on how the box is cut.
        Raises CaseError where a value is not finite, a density not positive, or a cell too fast.
        """
        rho, u = self._read(shape, begin, end) if self.file else self._made(shape, begin, end)
        wrong = (rho < LEAST_DENSITY) | (rho > LARGEST_DENSITY)
        self._refuse(
            wrong, rho, "rho", begin, f"is outside the range of densities; allowed: {DENSITIES}"
        )
        if len(self.u) * max(u.max(), -u.min()) > self.max_speed:
            with np.errstate(over="ignore"):
                speed = np.sqrt((u**2).sum(axis=-1))
            sentence = f"is a speed above that of sound; allowed: below {self.max_speed:.4g}"
            self._refuse(speed > self.max_speed, speed, "u", begin, sentence)
        return rho, u

    def _read(self, shape, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """The planes of a snapshot."""
        full = (*shape[:2], shape[2] * (2 if self.staggered else 1))
        fields = self._told(load_snapshot, self.file, full, self.periodic, begin, end)
        rho, u = (stored(self.staggered, field, begin) for field in fields)
        total = rho + u.sum(axis=-1)
        self._refuse(~np.isfinite(total), total, "file", begin, "is not finite")
        return rho, u

    def _made(self, shape, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """The planes by numbers and formulas."""
        _, rows, nx = shape
        rho = np.empty((end - begin, rows, nx))
        u = np.empty((end - begin, rows, nx, len(self.u)))
        targets = {"rho": (self.rho, rho)}
        targets |= {f"u.{axis}": (value, u[..., axis]) for axis, value in enumerate(self.u)}
        for key, (value, target) in targets.items():
            if not isinstance(value, str):
                target[...] = value
                continue
            formula = Formula(value, names_in(len(self.u)))
            for first, last in _blocks(shape, begin, end):
                values = formula.evaluate(**self._cells(shape, first, last))
                values = np.broadcast_to(values, (last - first, rows, nx))
                mine = slice(max(first, begin), min(last, end))
                target[mine.start - begin : mine.stop - begin] = values[
                    mine.start - first : mine.stop - first
                ]
            if not np.isfinite(target.sum()):
                self._refuse(~np.isfinite(target), target, key, begin, "is not finite")
        return rho, u

    def strain(self, shape, begin: int, end: int) -> np.ndarray:
        """S_ab = (du_a/dx_b + du_b/dx_a) / 2 of planes, (n, rows, nx, D (D + 1) / 2): xx, xy, ….

        Central differences, one-sided at faces that are not periodic; each plane from its own and
        its neighbours alone, so that no bit depends on how the box is cut.
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

    def _beyond(self, shape, plane: int) -> np.ndarray:
        """u of the plane (1, rows, nx, D) before or behind the box: wrapped, or extrapolated."""
        count = shape[0]
        if self.periodic[-1] or count == 1:
            plane %= count
            return self.evaluate(shape, plane, plane + 1)[1]
        edge, inner = (0, 1) if plane < 0 else (count - 1, count - 2)
        near, far = (self.evaluate(shape, k, k + 1)[1] for k in (edge, inner))
        return 2 * near - far

    def _refuse(self, bad, values, key: str, begin: int, sentence: str) -> None:
        """CaseError that names the first bad cell."""
        if not bad.any():
            return
        plane, row, x = (int(index) for index in np.argwhere(bad)[0])
        value = values[plane, row, x]
        x = x_of(self.staggered, begin + plane, row, x)
        y, z = (begin + plane, None) if len(self.u) == 2 else (row, begin + plane)
        cell = f"x={x}, y={y}" + ("" if z is None else f", z={z}")
        raise CaseError(
            f"{value:g} in cell {cell} (counted from 0) {sentence}; "
            + ("take another file" if self.file else "change the formula"),
            f"{self.where}.{'file' if self.file else key}",
            self.path,
        )

    def _cells(self, shape, first: int, last: int) -> dict:
        """The values of a formula's names in planes first … last - 1, arrays that broadcast.

        So what depends on one coordinate alone is computed once, not in every cell. Staggered
        rows have an x of their own.
        """
        planes, rows, nx = shape
        plane, row, k = np.ogrid[first:last, :rows, :nx]
        x = x_of(self.staggered, plane, row, k) + 0.5
        nx *= 2 if self.staggered else 1
        if len(self.u) == 2:
            return {"x": x, "y": plane + 0.5, "nx": nx, "ny": planes, "t": 0.0}
        y, z = row + 0.5, plane + 0.5
        return {"x": x, "y": y, "z": z, "nx": nx, "ny": rows, "nz": planes, "t": 0.0}


def _blocks(shape, begin: int, end: int):
    """(first, last) of the blocks of planes of a box, equal but for the last, that hold a slab."""
    planes, rows, nx = shape
    step = max(1, BLOCK_CELLS // (rows * nx))
    for first in range(begin // step * step, end, step):
        yield first, min(first + step, planes)


def _slope(u: np.ndarray, axis: int, periodic: bool) -> np.ndarray:
    """du/dx along an axis of the array; central, wrapped or one-sided at the ends."""
    if u.shape[axis] == 1:
        return np.zeros_like(u)
    if periodic:
        return (np.roll(u, -1, axis) - np.roll(u, 1, axis)) / 2
    return np.gradient(u, axis=axis)
