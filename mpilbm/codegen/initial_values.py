"""A kernel that computes the initial fields of a fluid from their formulas.

Formulas of coordinates become tables along the axes, which NumPy evaluates, and operations between
them: 0.1*sin(2*pi*x/nx)*cos(2*pi*y/ny) becomes table_0[x]*table_1[y]. IEEE 754 defines the results
of these operations (sum, product, quotient, root, comparison), so a kernel on any device computes
the bits of `Formula.evaluate`. It is a program of its own, apart from the text of the time step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from mpilbm.codegen import cached
from mpilbm.codegen.program import Program
from mpilbm.codegen.structure import definitions, prelude
from mpilbm.core.formulas.trees import Tree, is_comparison, names_of, numeric
from mpilbm.layouts.formats import Formats
from mpilbm.physics.lattices import AXES, Lattice

if TYPE_CHECKING:  # imports SymPy
    from mpilbm.codegen.kernel_text import KernelText


FUNCTIONS = """\
/* Powers and extremes as NumPy computes them; an extreme of nan is nan. */
INLINE double square(double a) { return a * a; }
INLINE double minimum(double a, double b) { return a < b || a != a ? a : b; }
INLINE double maximum(double a, double b) { return a > b || a != a ? a : b; }
"""
_EXACT = {  # operation -> C text
    "+": "({0} + {1})",
    "-": "({0} - {1})",
    "*": "({0} * {1})",
    "/": "({0} / {1})",
    "neg": "(-{0})",
    "<": "({0} < {1})",
    "<=": "({0} <= {1})",
    ">": "({0} > {1})",
    ">=": "({0} >= {1})",
    "==": "({0} == {1})",
    "!=": "({0} != {1})",
    "and": "({0} && {1})",
    "where": "({0} ? {1} : {2})",
    "sqrt": "sqrt({0})",
    "abs": "fabs({0})",
}
_POWERS = {0: "1.0", 1: "{0}", 2: "square({0})", -1: "(1.0 / {0})"}
_EXTREMES = {"min": "minimum({0}, {1})", "max": "maximum({0}, {1})"}
LARGEST_TABLE = 2**22  # values


@dataclass
class Tables:
    """The tables that several formulas share.

    size    the number of cells along each axis
    trees   {name: formula of the coordinates `axes[name]`}; a name without axes is a number
    """

    size: Mapping[str, int]
    trees: dict[str, Tree] = field(default_factory=dict)
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def divided(self, tree: Tree) -> Tree | None:
        """Return the tree of exact operations and names of tables.

        None if an inexact function, such as tanh, depends on the coordinates of all axes, or if a
        table would be large.
        """
        used = set(names_of(tree))
        axes = tuple(axis for axis in AXES if axis in used)
        if len(axes) < 2 and is_comparison(tree):
            return "!=", self._name(("where", tree, 1, 0), axes), self._name(0, ())
        if len(axes) < 2:
            return self._name(tree, axes)
        assert isinstance(tree, tuple)
        if _is_exact(tree):
            numbers = 1 if tree[0] == "**" else len(tree) - 1
            branches = [self.divided(branch) for branch in tree[1 : 1 + numbers]]
            whole = None not in branches
            return (tree[0], *branches, *tree[1 + numbers :]) if whole else None
        small = np.prod([self.size[axis] for axis in axes]) <= LARGEST_TABLE
        return self._name(tree, axes) if small and len(axes) < len(self.size) else None

    def _name(self, tree: Tree, axes: tuple[str, ...]) -> str:
        """Add a table and return its name; equal tables share a name."""
        found = [name for name, known in self.trees.items() if repr(known) == repr(tree)]
        name = found[0] if found else f"{'table' if axes else 'number'}_{len(self.trees)}"
        self.trees[name], self.axes[name] = tree, axes
        return name

    def values(self) -> dict[str, np.ndarray | float]:
        """Numbers, and tables (1-D, x fastest) for the cells of the whole box, on every slab."""
        box: dict[str, float] = {f"n{axis}": n for axis, n in self.size.items()} | {"t": 0.0}
        found: dict[str, np.ndarray | float] = {}
        for name, tree in self.trees.items():
            axes = self.axes[name][::-1]  # the slowest first
            cells = np.meshgrid(
                *(np.arange(self.size[axis]) + 0.5 for axis in axes), indexing="ij", sparse=True
            )
            values = numeric(tree, box | dict(zip(axes, cells, strict=True)))
            whole = np.broadcast_to(values, [self.size[axis] for axis in axes]).reshape(-1)
            found[name] = np.ascontiguousarray(whole) if axes else float(whole[0])
        return found


def _is_exact(tree: tuple) -> bool:
    """Whether NumPy and C compute the operation of a tree with the same bits."""
    if tree[0] == "**":
        return tree[2] in _POWERS
    return tree[0] in _EXACT or tree[0] in _EXTREMES


def c_text(tree: Tree, names: Mapping[str, str]) -> str:
    """C text of a tree that `divided` returned; `names`: that of each table and number."""
    if not isinstance(tree, tuple):
        return names[str(tree)]
    operation = tree[0]
    if operation == "**":
        return _POWERS[tree[2]].format(c_text(tree[1], names))
    branches = [c_text(branch, names) for branch in tree[1:]]
    if operation in _EXTREMES:
        return reduce(_EXTREMES[operation].format, branches)
    return _EXACT[operation].format(*branches)


NAME = "initial_values"
STATEMENTS = """\
const int64 cell = ((plane - origin) * rows + row) * nx + x;
rho_initial[cell] = rho;
{stores}
const int allowed = rho >= least_density && rho <= largest_density && {square} <= largest_square;
if (!allowed) refused[(plane - first) * nx + x] = 1;"""


def generate(lattice: Lattice, trees: Mapping[str, Tree], tables: Tables) -> Program:
    """The kernel for the trees of rho, u_x, u_y … that `tables` divided; see `kernel`."""
    form = {
        "initial values": repr(dict(trees)),
        "tables": tables.axes,
        "lattice": [lattice.name, lattice.D, lattice.staggered],
    }

    def build() -> Program:
        text = kernel(lattice, trees, tables)
        head = definitions("float64", Formats(("float64",)), lattice.staggered) + prelude()
        head = "\n".join([head, FUNCTIONS])
        return Program(head, {NAME: text.text()}, {NAME: text.kernel()}, "float64", "float64")

    return cached(form, build)


def kernel(lattice: Lattice, trees: Mapping[str, Tree], tables: Tables) -> "KernelText":
    """rho_initial[cell] = rho; u_initial[cell, a] = u_a, in double precision.

    The arrays begin at plane `origin`. refused[plane - first, x] = 1 if a density or a velocity in
    this plane and at this x is not finite or out of range.
    """
    from mpilbm.codegen.kernel_text import KernelText

    text = KernelText(NAME, "cells", "rho and u at t = 0, from tables along the axes")
    text.declare(**_arguments(lattice))
    names = {name: _value(text, name, axes, lattice) for name, axes in tables.axes.items()}
    for name, tree in trees.items():
        text.do(f"const double {name} = {c_text(tree, names)};")
    u = [f"u_{axis}" for axis in AXES[: lattice.D]]
    stores = [f"u_initial[cell * {lattice.D} + {a}] = {u_a};" for a, u_a in enumerate(u)]
    square = " + ".join(f"{u_a} * {u_a}" for u_a in u)
    text.do(STATEMENTS.format(stores="\n".join(stores), square=square))
    text.written |= {"rho_initial", "u_initial", "refused"}
    return text


def _arguments(lattice: Lattice) -> dict[str, str]:
    sizes = {"nx": "int", "rows": "int", "origin": "int64", "first": "int64"}
    arrays = {"rho_initial": "double*", "u_initial": "double*", "refused": "int32*"}
    limits = dict.fromkeys(("least_density", "largest_density", "largest_square"), "double")
    return sizes | arrays | limits | ({"odd": "int"} if lattice.staggered else {})


def _value(text: "KernelText", name: str, axes: tuple[str, ...], lattice: Lattice) -> str:
    """C text of a number, or of a table's value in the kernel's cell; declares its arguments."""
    from mpilbm.codegen.cell_values import index
    from mpilbm.layouts.cells import CELL

    text.argument(name, "double*" if axes else "double")
    place = ""
    for axis in axes[::-1]:  # the slowest first
        here = f"(int64)({index(text, axis, lattice)(CELL)})"
        if place:
            text.argument(f"cells_{axis}", "int64")
        place = f"({place}) * cells_{axis} + {here}" if place else here
    return f"{name}[{place}]" if axes else name
