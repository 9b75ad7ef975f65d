"""A kernel that computes the initial fields of a fluid from their formulas.

It is a program of its own, so that another formula does not change the text of the time step.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mpilbm.codegen import cached, definitions, prelude
from mpilbm.codegen.initial.tables import FUNCTIONS, Tables, c_text
from mpilbm.codegen.program import Program
from mpilbm.core.formulas.trees import Tree
from mpilbm.layouts.formats import Formats
from mpilbm.physics.lattices import AXES, Lattice

if TYPE_CHECKING:  # imports SymPy
    from mpilbm.codegen.kernel_text import KernelText

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

    The arrays begin at plane `origin`. refused[plane - first, x] is set to 1 if a density or a
    velocity in this plane and at this x is not finite or out of range.
    """
    from mpilbm.codegen.kernel_text import KernelText

    text = KernelText(NAME, "cells", "rho and u at t = 0, from tables along the axes")
    for name, type in _arguments(lattice).items():
        text.argument(name, type)
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
    from mpilbm.codegen.coordinates import index
    from mpilbm.layouts.grid import CELL

    text.argument(name, "double*" if axes else "double")
    place = ""
    for axis in axes[::-1]:  # the slowest first
        here = f"(int64)({index(text, axis, lattice)(CELL)})"
        if place:
            text.argument(f"cells_{axis}", "int64")
        place = f"({place}) * cells_{axis} + {here}" if place else here
    return f"{name}[{place}]" if axes else name
