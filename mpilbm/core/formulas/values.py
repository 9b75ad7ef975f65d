"""Numbers and formulas of x, y, z and t in a case, divided into parts for host and kernel.

The host evaluates the parts of a formula that are equal in all cells, in float64 and, if they
depend on t, in every step. They are numbers for the kernel, which evaluates the rest of the formula
at the coordinates of the cell in the precision of the kernel: 0.1*sin(2*pi*x/nx - 0.01*t) becomes
n_0*sin(n_1*x/n_2 - n_3). The kernel text therefore depends on the form of the formula only. A
formula without x, y and z is one number.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated, Any

import numpy as np
from pydantic import Discriminator, Field, Tag

from mpilbm.core.formulas.given_functions import AtPoints, PointValue
from mpilbm.core.formulas.parser import NAMES, Formula
from mpilbm.core.formulas.ramp import rise, risen
from mpilbm.core.formulas.trees import Tree, is_comparison, names_of, numeric, symbolic

AXES = ("x", "y", "z")


def _number_or_formula(value: object) -> str:
    return "<formula>" if isinstance(value, str) else "<number>"


Value = Annotated[
    Annotated[float, Tag("<number>")] | Annotated[str, Tag("<formula>")],
    Discriminator(_number_or_formula),
]

PositiveValue = Annotated[
    Annotated[float, Field(gt=0), Tag("<number>")] | Annotated[str, Tag("<formula>")],
    Discriminator(_number_or_formula),
]


def _list_or_file(value: object) -> str:
    return "<file>" if isinstance(value, str) else "<list>"


GivenVector = Annotated[
    Annotated[tuple[Value, ...], Tag("<list>")] | Annotated[str, Tag("<file>")],
    Discriminator(_list_or_file),
]


def is_file(text: str) -> bool:
    """Whether a text is the name of a file; no formula has this form."""
    return text.endswith((".csv", ".npy")) or ".h5:" in text


@dataclass(frozen=True, eq=False)
class Series:
    """A number that changes with time, from a file.

    It is interpolated linearly between the times `t` and constant before the first and after the
    last of them, and multiplied by the rise in the first `ramp` steps (ramp.py).
    """

    t: np.ndarray
    values: np.ndarray
    ramp: int = 0

    def at(self, t: float | np.ndarray) -> np.ndarray:
        """Return the number at time t."""
        return np.interp(t, self.t, self.values) * rise(t, self.ramp)


@dataclass(frozen=True, eq=False)
class Plane:
    """A number for each cell of a face, from a file; slowest axis first."""

    values: np.ndarray


def names_in(dimensions: int) -> tuple[str, ...]:
    """The names that a formula may use; z and nz are for three dimensions only."""
    return NAMES if dimensions == 3 else tuple(name for name in NAMES if name not in ("z", "nz"))


@dataclass(frozen=True, eq=False)
class FieldValue:
    """A number for each cell of the box: a component of a field with the method `planes`.

    field.planes(begin, end, t) returns the values (n, rows, nx, components) of planes begin … end
    - 1 at time t; `field.timed`: whether they change with time.
    """

    field: Any
    component: int = 0

    @property
    def timed(self) -> bool:
        """Whether it changes with time."""
        return self.field.timed

    def planes(self, begin: int, end: int, t: float = 0) -> np.ndarray:
        """The numbers of planes begin … end - 1 at time t, (n, rows, nx)."""
        return self.field.planes(begin, end, t)[..., self.component]


@dataclass(frozen=True)
class Rising:
    """A number or formula that is multiplied by the rise in the first `ramp` steps (ramp.py)."""

    value: float | str
    ramp: int


Given = float | str | Series | Plane | AtPoints | FieldValue | Rising


def ramped(value: Given, steps: int) -> Given:
    """The value times the rise in the first `steps` steps (ramp.py); the value itself if it is 0.

    Numbers of cells, a Plane or a FieldValue, have no ramp and are returned as they are; see
    `has_ramp`.
    """
    if isinstance(value, Series | PointValue):
        return replace(value, ramp=steps)
    if isinstance(value, int | float | str) and steps and value != 0:
        return Rising(value, steps)
    return value


def unramped(value: Given) -> Given:
    """The number or formula as the case gives it, without the rise."""
    return value.value if isinstance(value, Rising) else value


def has_ramp(value: Given) -> bool:
    """Whether `ramped` changes values of this type."""
    return not isinstance(value, Plane | FieldValue)


class CellValue:
    """A number or formula with the name `name`, divided into parts for kernel and host.

    tree         the formula for the kernel, of x, y, z and the names of numbers
    numbers      {name: tree of nx, ny, nz and t, or a Series, Plane or AtPoints}
    coordinates  the axes that occur in `tree`
    fields       the names among `known` that occur in `tree`: values of the cell
    field        the numbers of all cells, or None; kernels read them from an array

    Raises FormulaError for invalid formulas.
    """

    def __init__(
        self, name: str, value: Given | Tree, dimensions: int, known: tuple[str, ...] = ()
    ):
        self.name, self.dimensions = name, dimensions
        self.numbers: dict[str, Tree | Series | Plane | AtPoints] = {}
        self.field = value if isinstance(value, FieldValue) else None
        self.coordinates: tuple[str, ...] = ()
        self.fields: tuple[str, ...] = ()
        self.tree: Tree = name
        self._ramp, self._changes = 0, False
        if isinstance(value, FieldValue):
            return
        if isinstance(value, Series | Plane | AtPoints):
            self.numbers[name] = value
            return
        names = (*names_in(dimensions), *known)
        given, ramp = (value.value, value.ramp) if isinstance(value, Rising) else (value, 0)
        self._ramp = ramp
        whole = Formula(given, names).tree if isinstance(given, str) else given
        self._changes, tree = "t" in names_of(whole), risen(whole, ramp)
        used = set(names_of(tree))
        self.coordinates = tuple(axis for axis in AXES if axis in used)
        self.fields = tuple(each for each in known if each in used)
        if self.local:
            self.tree = self._divided(tree)
        else:
            self.numbers[name] = tree

    @property
    def local(self) -> bool:
        """Whether kernels evaluate a formula in each cell."""
        return bool(self.coordinates or self.fields)

    def _divided(self, tree: Tree) -> Tree:
        """Return the tree with its parts that are equal in all cells replaced by names."""
        if not set(names_of(tree)) & {*self.coordinates, *self.fields}:
            if is_comparison(tree):
                return ">", self._number(("where", tree, 1, 0)), 0
            return self._number(tree)
        if not isinstance(tree, tuple):
            return tree
        if tree[0] == "**":
            return "**", self._divided(tree[1]), tree[2]
        return tree[0], *(self._divided(branch) for branch in tree[1:])

    def _number(self, tree: Tree) -> str:
        """Add a number and return its name; equal numbers share a name."""
        found = [name for name, known in self.numbers.items() if known == tree]
        name = found[0] if found else f"{self.name}_{len(self.numbers)}"
        self.numbers[name] = tree
        return name

    @property
    def timed(self) -> frozenset[str]:
        """The names of the numbers that change with time."""
        return frozenset(name for name, number in self.numbers.items() if _is_timed(number))

    @property
    def settles(self) -> float:
        """The time from which the numbers are constant: the end of a ramp; inf if there is none."""
        if not self.timed:
            return 0.0
        return float(self._ramp) if self._ramp and not self._changes else inf

    def structure(self) -> str:
        """The form of the value, which determines the kernel text; empty for a number."""
        if self.field:
            return "field"
        return repr(self.tree) if self.local else ""

    def evaluate(self, size: tuple[int, ...], t: float) -> dict[str, float]:
        """Return {name: number} in a box of `size` cells at time t; 0 for values of points."""
        box = {**dict(zip(("nx", "ny", "nz"), size, strict=False)), "t": t}
        return {name: _value(number, box) for name, number in self.numbers.items()}

    def overflows(self, size: tuple[int, ...], places: dict[str, np.ndarray], compute: str) -> str:
        """Return a message if the value is not finite in the precision of the kernel; else "".

        `places`: coordinates by axis, arrays that broadcast; the value in float64 must be finite
        there. `compute`: "float32" or "float64".
        """
        known = self.evaluate(size, 0) | places
        if compute != "float32" or np.isfinite(numeric(self.tree, known, np.float32)).all():
            return ""
        return (
            "is not finite in float32, in which it is computed: a part of it is above 3.4e38, or a "
            "divisor or the argument of a root is rounded to 0 or less; divide before raising to a "
            "power, as in (x/nx)**8, or set precision.compute = 'float64'"
        )

    def problem(self, size: tuple[int, ...], compute: str, begin: int, end: int) -> str:
        """Return a message if a value in planes begin … end - 1 is not finite at t = 0; else ""."""
        numbers, last = self.evaluate(size, 0), AXES[len(size) - 1]
        cells = {axis: (0, n) for axis, n in zip(AXES, size, strict=False)} | {last: (begin, end)}
        sides = [np.arange(*cells[a]) if a in self.coordinates else np.zeros(1) for a in cells]
        grids = np.meshgrid(*sides, indexing="ij", sparse=True)
        places = {axis: grid + 0.5 for axis, grid in zip(cells, grids, strict=True)}
        bad = np.argwhere(~np.isfinite(numeric(self.tree, numbers | places)))
        if len(bad):
            places_of = zip(cells, bad[0], strict=False)
            cell = [f"{a}={cells[a][0] + n}" for a, n in places_of if a in self.coordinates]
            where = f" in cell {', '.join(cell)} (counted from 0)" if cell else ""
            return f"is not finite{where} at t = 0; change the formula"
        return self.overflows(size, places, compute)

    def expression(self, symbols: Mapping[str, Any]) -> Any:
        """Return `tree` as a SymPy expression; symbols: {coordinate or number: symbol}."""
        return symbolic(self.tree, symbols)


def columns(values: Mapping[str, Given]) -> Iterator[tuple[int, Given]]:
    """The place of the first number of each value in a row of all numbers, and the value.

    A formula of x, y and z has any number of numbers, also none.
    """
    column = 0
    for name, value in values.items():
        yield column, value
        column += len(CellValue(name, value, 3).numbers)


def _value(number: Tree | Series | Plane | AtPoints, box: dict[str, float]) -> float:
    if isinstance(number, Series):
        return float(number.at(box["t"]))
    return 0.0 if isinstance(number, Plane | AtPoints) else float(numeric(number, box))


def _is_timed(number: Tree | Series | Plane | AtPoints) -> bool:
    if isinstance(number, Series | AtPoints):
        return isinstance(number, Series) or number.timed
    return not isinstance(number, Plane) and "t" in names_of(number)
