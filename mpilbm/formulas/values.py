"""Numbers and formulas of x, y, z and t in a case: what a kernel computes, what the host hands it.

All parts of a formula that are the same in all cells are numbers, which the host evaluates in
float64, every step if t is in them; so a kernel's text holds the formula's structure alone, and a
formula without x, y, z is one number. What is left, in the cell's coordinates, the kernel evaluates
in its own precision: 0.1*sin(2*pi*x/nx - 0.01*t) becomes n_0*sin(n_1*x/n_2 - n_3).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Discriminator, Tag

from mpilbm.formulas.parser import NAMES, Formula, Tree, is_truth, names_of, numeric, symbolic

AXES = ("x", "y", "z")


def _number_or_formula(value) -> str:
    return "<formula>" if isinstance(value, str) else "<number>"


Value = Annotated[
    Annotated[float, Tag("<number>")] | Annotated[str, Tag("<formula>")],
    Discriminator(_number_or_formula),
]


def _list_or_file(value) -> str:
    return "<file>" if isinstance(value, str) else "<list>"


Vector = Annotated[
    Annotated[tuple[Value, ...], Tag("<list>")] | Annotated[str, Tag("<file>")],
    Discriminator(_list_or_file),
]


def is_file(text: str) -> bool:
    """Whether a text names a file, which no formula does."""
    return text.endswith((".csv", ".npy")) or ".h5:" in text


@dataclass(frozen=True, eq=False)
class Series:
    """A number from a file that changes with time: linear between rows, constant beyond them."""

    t: np.ndarray
    values: np.ndarray

    def at(self, t):
        """The number at time t."""
        return np.interp(t, self.t, self.values)


@dataclass(frozen=True, eq=False)
class Plane:
    """A number from a file for each cell of a face, slowest axis first."""

    values: np.ndarray


def of_cells(plane: Plane, face: str, case, slab, cells) -> np.ndarray:
    """The numbers of cells (plane * rows + row) * nx + x of a slab, as of those next to a face."""
    at = np.unravel_index(cells, (slab.planes, *slab.shape[1:]))
    at = (at[0] + slab.begin, at[1], case.lattice.x(at[0] + slab.begin, *at[1:]))
    axes = {2: "y x", 3: "zyx"}[case.dimensions]
    kept = (k for axis, k in zip(axes, at, strict=True) if axis not in (face[0], " "))
    return plane.values[tuple(kept)]


def names_in(dimensions: int) -> tuple[str, ...]:
    """What a formula may name: no z and nz in two dimensions."""
    return NAMES if dimensions == 3 else tuple(name for name in NAMES if name not in ("z", "nz"))


class CellValue:
    """A number or formula by the name `name`, parted.

    `tree`: the formula in x, y, z and the names of numbers; `numbers`: a tree for each of these, in
    nx, ny, nz and t; `coordinates`: those that `tree` names. Raises FormulaError.
    """

    def __init__(self, name: str, value: float | str, dimensions: int):
        self.name, self.dimensions = name, dimensions
        self.numbers: dict[str, Tree] = {}
        tree = Formula(value, names_in(dimensions)).tree if isinstance(value, str) else value
        used = set(names_of(tree))
        self.coordinates = tuple(axis for axis in AXES if axis in used)
        self.tree = self._parted(tree) if self.coordinates else name
        if not self.coordinates:
            self.numbers[name] = tree

    def _parted(self, tree: Tree) -> Tree:
        """The tree with names for its parts that are the same in all cells."""
        if not set(names_of(tree)) & set(AXES):
            if is_truth(tree):
                return ">", self._number(("where", tree, 1, 0)), 0
            return self._number(tree)
        if not isinstance(tree, tuple):
            return tree
        if tree[0] == "**":
            return "**", self._parted(tree[1]), tree[2]
        return tree[0], *(self._parted(branch) for branch in tree[1:])

    def _number(self, tree: Tree) -> str:
        found = [name for name, known in self.numbers.items() if known == tree]
        name = found[0] if found else f"{self.name}_{len(self.numbers)}"
        self.numbers[name] = tree
        return name

    @property
    def timed(self) -> frozenset[str]:
        """The names of the numbers that change with time."""
        return frozenset(
            name
            for name, tree in self.numbers.items()
            if isinstance(tree, Series) or "t" in names_of(tree)
        )

    def structure(self) -> str:
        """What shapes the kernel text; empty where that is a number and no more."""
        return repr(self.tree) if self.coordinates else ""

    def evaluate(self, size: tuple[int, ...], t: float) -> dict[str, float]:
        """The numbers by name, in a box of `size` cells at time t; 0 for those of a Plane."""
        if isinstance(self.numbers.get(self.name), Series | Plane):
            given = self.numbers[self.name]
            return {self.name: float(given.at(t)) if isinstance(given, Series) else 0.0}
        box = dict(zip(("nx", "ny", "nz"), size, strict=False)) | {"t": t}
        return {name: float(numeric(tree, box)) for name, tree in self.numbers.items()}

    def overflows(self, size: tuple[int, ...], places: dict, compute: str) -> str:
        """What to say if it is finite at some places, but not as kernels compute it; "" if it is.

        `places`: coordinates by axis, arrays that broadcast.
        """
        known = self.evaluate(size, 0) | places
        if compute != "float32" or np.isfinite(numeric(self.tree, known, np.float32)).all():
            return ""
        return (
            "is not finite in float32, in which it is computed: a part of it is above 3.4e38, or "
            "what divides or is under a root is rounded to 0 or less; divide before you raise to a "
            "power, as in (x/nx)**8, or set precision.compute = 'float64'"
        )

    def problem(self, size: tuple[int, ...], compute: str, begin: int, end: int) -> str:
        """What is wrong with the value in a cell of planes begin … end - 1 at t = 0; "" if nothing.

        A value without coordinates is that of all cells.
        """
        numbers, last = self.evaluate(size, 0), AXES[len(size) - 1]
        cells = {axis: (0, n) for axis, n in zip(AXES, size, strict=False)} | {last: (begin, end)}
        sides = [np.arange(*cells[a]) if a in self.coordinates else np.zeros(1) for a in cells]
        places = [side + 0.5 for side in np.meshgrid(*sides, indexing="ij", sparse=True)]
        places = dict(zip(cells, places, strict=True))
        bad = np.argwhere(~np.isfinite(numeric(self.tree, numbers | places)))
        if len(bad):
            cell = zip(cells, bad[0], strict=False)
            cell = [f"{a}={cells[a][0] + n}" for a, n in cell if a in self.coordinates]
            where = f" in cell {', '.join(cell)} (counted from 0)" if cell else ""
            return f"is not finite{where} at t = 0; change the formula"
        return self.overflows(size, places, compute)

    def expression(self, symbols: dict):
        """The SymPy expression, from symbols of the coordinates and numbers."""
        return symbolic(self.tree, symbols)
