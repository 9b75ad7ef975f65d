"""The initial fields of a fluid, from numbers and formulas."""

from pathlib import Path

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.expressions import NAMES, Formula
from mpilbm.lattices import x_of
from mpilbm.registry import Parameters


def names_in(dimensions: int) -> tuple[str, ...]:
    """What a formula may name: no z and nz in two dimensions."""
    return NAMES if dimensions == 3 else tuple(name for name in NAMES if name not in ("z", "nz"))


class Initial(Parameters):
    """Density and velocity at t = 0: numbers or formulas, one u per dimension.

    `where` and `path` are the key path and the file, for messages; no cell may be faster than
    `max_speed`. `staggered`: as the lattice has it.
    """

    rho: float | str
    u: tuple[float | str, ...]
    where: str = "initial"
    path: Path | None = None
    max_speed: float = 1e300
    staggered: bool = False

    def evaluate(self, shape, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Rho (n, rows, nx) and u (n, rows, nx, D), float64, of the n planes begin … end - 1.

        `shape` = (planes, rows, nx) of the whole box as stored; centres are 0.5, 1.5, … One plane
        is evaluated at a time, so that no bit depends on how the box is cut.
        Raises CaseError where a value is not finite, a density not positive, or a cell too fast.
        """
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
            for plane in range(begin, end):
                target[plane - begin] = formula.evaluate(**self._cells(shape, plane))
            if not np.isfinite(target.sum()):
                self._refuse(~np.isfinite(target), target, key, begin, "is not finite")
        self._refuse(rho <= 0, rho, "rho", begin, "is not a density; allowed: > 0")
        if len(self.u) * max(u.max(), -u.min()) > self.max_speed:
            speed = np.sqrt((u**2).sum(axis=-1))
            sentence = f"is a speed above that of sound; allowed: below {self.max_speed:.4g}"
            self._refuse(speed > self.max_speed, speed, "u", begin, sentence)
        return rho, u

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
            f"{value:g} in cell {cell} (counted from 0) {sentence}; change the formula",
            f"{self.where}.{key}",
            self.path,
        )

    def _cells(self, shape, plane: int) -> dict:
        """What the names of a formula stand for in one plane: x (1, nx), y (rows, 1), numbers.

        So what depends on one coordinate alone is computed once, not in every cell. Staggered
        rows have an x of their own: (rows, nx).
        """
        planes, rows, nx = shape
        row, k = np.arange(rows)[:, None], np.arange(nx)[None]
        x, across = x_of(self.staggered, plane, row, k) + 0.5, np.full((1, 1), plane + 0.5)
        nx *= 2 if self.staggered else 1
        if len(self.u) == 2:
            return {"x": x, "y": across, "nx": nx, "ny": planes, "t": 0.0}
        return {"x": x, "y": row + 0.5, "z": across, "nx": nx, "ny": rows, "nz": planes, "t": 0.0}
