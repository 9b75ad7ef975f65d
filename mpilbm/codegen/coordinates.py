"""Values that depend on the coordinates of a cell, in the text of any kernel."""

from collections.abc import Callable, Mapping

from sympy import Symbol

from mpilbm.codegen.printer import symbol
from mpilbm.codegen.values import Index, KernelValues
from mpilbm.core.formulas.values import CellValue
from mpilbm.model.expressions import Expression
from mpilbm.physics.lattices import Lattice


def given(
    kernel: KernelValues,
    value: CellValue,
    lattice: Lattice,
    number: Callable[[str], Symbol] | None = None,
    known: Mapping[str, Expression] | None = None,
) -> Symbol:
    """The symbol of a value: an argument of the kernel, or a formula that it computes in each cell.

    `number(name)` returns the symbol of a number; by default an argument is declared. `known` holds
    the values of the cell that the formula uses, by name. Repeated calls with the same value return
    the same symbol.
    """
    symbols = {
        name: number(name) if number else kernel.argument(name, "real") for name in value.numbers
    }
    if not value.local:
        return symbols[value.name]
    here = symbols | centre_of(kernel, value, lattice) | dict(known or {})
    expression = value.expression(here)
    defined = kernel.definitions.get(symbol(value.name))
    return symbol(value.name) if defined == expression else kernel.let(value.name, expression)


def centre_of(kernel: KernelValues, value: CellValue, lattice: Lattice) -> dict[str, Symbol]:
    """Symbols of the coordinates of the kernel's cell that a formula uses, by axis."""
    return {
        axis: kernel.coordinate(f"cell_{axis}", index(kernel, axis, lattice))
        for axis in value.coordinates
    }


def index(kernel: KernelValues, axis: str, lattice: Lattice) -> Index:
    """A function that gives the C text of the global number of a cell along an axis.

    The centre of the cell is at this number plus 1/2. The argument `below` is the number of planes
    of the box below the first plane of the array.
    """
    if axis == "xyz"[lattice.D - 1]:
        kernel.argument("below", "int64")
        return lambda cell: f"{cell.plane} + below"
    if kernel.listed:
        kernel.declare(node_start="int64*", node_cell="int32*", nx="int")
        operator = "%" if axis == "x" else "/"
        return lambda cell: f"node_cell[node_start[{cell.plane}] + {cell.node}] {operator} nx"
    if axis == "x" and lattice.staggered:
        kernel.argument("odd", "int")
        return lambda cell: f"2 * ({cell.x}) + ODD"
    return (lambda cell: f"({cell.x})") if axis == "x" else (lambda cell: cell.row)
