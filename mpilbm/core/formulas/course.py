"""The course of a number in time: its value, its derivative and its integral, from a formula."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree, names_of, numeric

NAMES = ("t", "pi")
BLOCK = 4096  # steps whose integrals are added together

Floats = NDArray[np.float64]
ONE_BRANCH = {  # f -> f'(a), the derivative of a function of one branch
    "sin": lambda a: ("cos", a),
    "cos": lambda a: ("neg", ("sin", a)),
    "tan": lambda a: ("+", 1, ("**", ("tan", a), 2)),
    "exp": lambda a: ("exp", a),
    "log": lambda a: ("/", 1, a),
    "sqrt": lambda a: ("/", 0.5, ("sqrt", a)),
    "tanh": lambda a: ("-", 1, ("**", ("tanh", a), 2)),
    "abs": lambda a: ("where", (">", a, 0), 1, ("where", ("<", a, 0), -1, 0)),
}


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
        return _derivative(self.tree, "t")

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


def _derivative(tree: Tree, name: str) -> Tree:
    """d tree / d name.

    Of `where`, `min` and `max` the derivative is that of the branch that holds; a jump from one
    branch to the other has none.
    """
    if name not in names_of(tree):
        return 0
    if not isinstance(tree, tuple):
        return 1
    operation, *branches = tree
    if operation == "where":
        return "where", branches[0], *(_derivative(each, name) for each in branches[1:])
    if operation == "**":
        base, exponent = branches
        outer: Tree = ("*", exponent, ("**", base, exponent - 1)) if exponent != 1 else 1
        return "*", outer, _derivative(base, name)
    inner = [_derivative(each, name) for each in branches]
    if operation in ("+", "-", "neg"):
        return operation, *inner
    if operation in ("min", "max"):
        return _of_extreme(operation, branches, inner)
    a = branches[0]
    if operation == "*":
        return "+", ("*", inner[0], branches[1]), ("*", a, inner[1])
    if operation == "/":
        b = branches[1]
        return "/", ("-", inner[0], ("*", ("/", a, b), inner[1])), b
    return "*", ONE_BRANCH[operation](a), inner[0]


def _of_extreme(operation: str, branches: list[Tree], inner: list[Tree]) -> Tree:
    """The derivative of the first branch that is the least, or the largest, one."""
    found = inner[-1]
    for k in range(len(branches) - 2, -1, -1):
        rest = (operation, *branches[k + 1 :]) if k + 2 < len(branches) else branches[-1]
        holds = "<=" if operation == "min" else ">="
        found = ("where", (holds, branches[k], rest), inner[k], found)
    return found
