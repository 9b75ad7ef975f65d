"""Kernel text of a boundary list for a cell further inside than the cell of the entry."""

from collections.abc import Mapping

from sympy import Symbol

from mpilbm.codegen.text.entries import EntryText
from mpilbm.codegen.text.parts import Index, entry_place
from mpilbm.layouts import AnyGrid, Offset
from mpilbm.layouts.grid import CellNames
from mpilbm.model.expressions import Expression


class InwardText:
    """The kernel of a boundary list with the k-th cell inwards along the normal as its cell.

    Names of values end in `_in1` or `_in2`. Accesses are recorded as those of the entry's own cell:
    both cells belong to the same slab, so the halo exchange is the same.
    """

    def __init__(self, kernel: EntryText, k: int):
        self._kernel, self._end = kernel, f"_in{k}"
        self.cell = CellNames.suffixed(self._end)
        cells = self.per_entry("cells", "int64*")
        kernel.entry += "\n" + entry_place(kernel.grid_over, self.cell, cells)

    @property
    def name(self) -> str:
        """The name of the C function."""
        return self._kernel.name

    @property
    def unit(self) -> int:
        """Values are loaded as multiples of 1 / unit."""
        return self._kernel.unit

    @property
    def parity(self) -> int | None:
        """The parity of the steps in which the kernel is used."""
        return self._kernel.parity

    @property
    def listed(self) -> bool:
        """Whether cells are found in tables."""
        return self._kernel.listed

    @property
    def known(self) -> Mapping[str, Expression]:
        """Values of scalars that a step has computed, by label."""
        return self._kernel.known

    @property
    def definitions(self) -> Mapping[Symbol, Expression]:
        """The named values of the kernel and their expressions."""
        return self._kernel.definitions

    def argument(self, name: str, type: str) -> Symbol:
        """Declare a parameter of the kernel; returns its symbol."""
        return self._kernel.argument(name, type)

    def address(self, grid: AnyGrid, slot: int, offset: Offset) -> str:
        """C text of the index of a value of the inner cell."""
        return self._kernel.address(grid, slot, offset, self.cell)

    def per_entry(self, name: str, type: str) -> str:
        """Declare an array of the list; returns the C text of the value of this entry."""
        return self._kernel.per_entry(f"{name}{self._end}", type)

    def read(
        self, name: str, pointer: str, type: str, grid: AnyGrid, slot: int, offset: Offset
    ) -> Symbol:
        """Load a value of the inner cell."""
        name = f"{name}{self._end}"
        return self._kernel.read(name, pointer, type, grid, slot, offset, self.cell)

    def load(self, name: str, text: str) -> Symbol:
        """Load a value from an array of the list."""
        return self._kernel.load(f"{name}{self._end}", text)

    def coordinate(self, name: str, index: Index) -> Symbol:
        """The coordinate of the inner cell."""
        return self._kernel.coordinate(f"{name}{self._end}", index, self.cell)

    def let(self, name: str, expression: Expression) -> Symbol:
        """Define a named value of the inner cell."""
        return self._kernel.let(f"{name}{self._end}", expression)
