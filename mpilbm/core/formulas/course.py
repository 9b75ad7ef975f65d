"""The course of a number in time: its value, its derivative and its integral, from a formula."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.derivative import derivative
from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree, numeric

NAMES = ("t", "pi")
BLOCK = 4096  # steps whose integrals are added together

Floats = NDArray[np.float64]


class Course:
    """A number, or a formula of t, the time in steps; all results are float64.

    Raises FormulaError for invalid formulas, and for other names than t and pi.
    """

    def __init__(self, given: float | str):
        self.tree: Tree = Formula(given, NAMES).tree if isinstance(given, str) else given
        self._sums = [0.0]  # the integral from 0 to the begin of each block
        self._block: tuple[int, Floats] = -1, np.zeros(0)  # number, integrals from its begin

    @cached_property
    def _slope(self) -> Tree:
        return derivative(self.tree, "t")

    @property
    def steady(self) -> bool:
        """Whether it is a number."""
        return not isinstance(self.tree, tuple | str)

    def at(self, t: float | Floats) -> Floats:
        """The value at time t; t: number or array."""
        return numeric(self.tree, {"t": t}) + np.zeros(np.shape(t))

    def slope(self, t: float | Floats) -> Floats:
        """d/dt at time t, from the derivative of the formula."""
        return numeric(self._slope, {"t": t}) + np.zeros(np.shape(t))

    def integral(self, t: float | Floats) -> Floats:
        """The integral from 0 to t >= 0.

        Of a formula by Simpson's rule over each step, from the first to the last: it depends on t
        alone, not on the times that were asked for before.
        """
        if self.steady:
            return self.at(0) * np.asarray(t, float)
        times = np.asarray(t, float)
        whole = np.floor(times)
        blocks, found = (whole // BLOCK).astype(int), np.zeros(times.shape)
        for block in np.unique(blocks):
            while len(self._sums) <= block:
                self._sums.append(self._sums[-1] + float(self._of_block(len(self._sums) - 1)[-1]))
            here = blocks == block
            within = (whole[here] - block * BLOCK).astype(int)
            found[here] = self._sums[block] + self._of_block(block)[within]
        return found + np.where(times > whole, self._simpson(whole, times - whole), 0)

    def _of_block(self, block: int) -> Floats:
        """The integrals from the begin of a block to each of its steps, (BLOCK + 1,)."""
        if self._block[0] != block:
            steps = self._simpson(block * BLOCK + np.arange(BLOCK, dtype=float), 1.0)
            self._block = block, np.append(0.0, np.cumsum(steps))
        return self._block[1]

    def _simpson(self, t: float | Floats, length: float | Floats) -> Floats:
        """The integrals from t to t + length."""
        ends, middle = self.at(t) + self.at(t + length), self.at(t + length / 2)
        return length / 6 * (ends + 4 * middle)
