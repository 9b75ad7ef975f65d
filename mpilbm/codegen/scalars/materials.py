"""The material of each cell, and the numbers that kernels use for it."""

from dataclasses import dataclass
from typing import NamedTuple

from sympy import Piecewise, Symbol

from mpilbm.codegen.scalars.names import COLUMNS, MATERIAL, table_name
from mpilbm.codegen.text.cell_kernel import CellKernel
from mpilbm.layouts import HERE
from mpilbm.layouts.grid import Grid
from mpilbm.model.expressions import Expression, Vector


class Material(NamedTuple):
    """Symbols of a kernel: the number of the material of its cell, and the numbers of a scalar."""

    number: Symbol
    capacity: Symbol
    conducts: Symbol
    rates: dict[str, Symbol]

    def at_rest(self, u: Vector) -> list[Expression]:
        """The velocity in the fluid, 0 in bodies."""
        return [Piecewise((u_a, self.number < 0.5), (0, True)) for u_a in u]


@dataclass(frozen=True)
class Materials:
    """The materials as a scalar sees them.

    `grid`: the memory of their numbers. `suffix`: the end of the names of the scalar's arrays.
    `rates`: names of the relaxation rates.
    """

    grid: Grid
    suffix: str
    rates: tuple[str, ...]

    def at(self, kernel: CellKernel) -> Material:
        """The material of the kernel's cell."""
        kernel.argument(MATERIAL, "uint8*")
        number = f"{MATERIAL}[{kernel.address(self.grid, 0, HERE)}]"
        table, columns = table_name(self.suffix), (*COLUMNS, *self.rates)
        kernel.argument(table, "real*")
        capacity, conducts, *rates = (
            kernel.load(f"{name}_here{self.suffix}", f"{table}[{number} * {len(columns)} + {k}]")
            for k, name in enumerate(columns)
        )
        named = dict(zip(self.rates, rates, strict=True))
        return Material(
            kernel.load(MATERIAL + "_here", f"(real){number}"), capacity, conducts, named
        )
