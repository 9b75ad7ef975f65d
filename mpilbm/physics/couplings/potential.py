"""A pseudopotential psi(rho): a formula whose numbers are arguments of the kernels."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree, names_of, numeric, symbolic
from mpilbm.model.expressions import Expression


class Potential:
    """The pseudopotential psi(rho), from the text of a formula of `rho`.

    `tree` is the formula; its parts without rho are replaced by the names psi_0, psi_1, …, and
    `numbers` holds their values. Raises FormulaError for invalid formulas.
    """

    def __init__(self, text: str):
        self.text, self.formula = text, Formula(text, ("rho",))
        self.numbers: dict[str, float] = {}
        self.tree = self._parted(self.formula.tree)

    def _parted(self, tree: Tree) -> Tree:
        """Return the tree with its parts without rho replaced by names."""
        if "rho" not in names_of(tree):
            name = f"psi_{len(self.numbers)}"
            self.numbers[name] = float(numeric(tree, {}))
            return name
        if not isinstance(tree, tuple):
            return tree
        if tree[0] == "**":
            return "**", self._parted(tree[1]), tree[2]
        return tree[0], *(self._parted(branch) for branch in tree[1:])

    def expression(self, rho: Expression, number: Callable[[str], Expression]) -> Expression:
        """psi as a SymPy expression; `number(name)` is the symbol of a number."""
        return symbolic(self.tree, {"rho": rho} | {name: number(name) for name in self.numbers})

    @cached_property
    def structure(self) -> str:
        """The form of the formula, which determines the kernel text."""
        return repr(self.tree)

    def __call__(self, rho: float | np.ndarray) -> np.ndarray:
        """Return psi for a number or an array of densities."""
        return numeric(self.formula.tree, {"rho": rho})

    def slope(self, rho: float | np.ndarray) -> np.ndarray:
        """Return dpsi/drho, by a central difference."""
        step = 1e-5 * np.asarray(rho)
        return (self(rho + step) - self(rho - step)) / (2 * step)
