"""Kernel text of a boundary list for a cell further inside than the cell of the entry."""

from mpilbm.codegen.text.parts import entry_place
from mpilbm.layouts.grid import CellNames

OWN = "own"  # the position of the entry in the arrays of its own list


class InwardText:
    """The kernel of a boundary list with the k-th cell inwards along the normal as its cell.

    Names of values end in `_in1` or `_in2`. Accesses are recorded as those of the entry's own cell:
    both cells belong to the same slab, so the halo exchange is the same.
    """

    def __init__(self, kernel, k: int):
        self._kernel, self._end = kernel, f"_in{k}"
        self.cell = CellNames.suffixed(self._end)
        cells = self.per_entry("cells", "int64*")
        kernel.entry += "\n" + entry_place(kernel.grid_over, self.cell, cells)

    def __getattr__(self, name):
        return getattr(self._kernel, name)

    def per_entry(self, name: str, type: str) -> str:
        """Declare an array of the list; returns the C text of the value of this entry."""
        return self._kernel.per_entry(f"{name}{self._end}", type)

    def read(self, name, pointer, type, grid, slot, offset):
        """Load a value of the inner cell."""
        name = f"{name}{self._end}"
        return self._kernel.read(name, pointer, type, grid, slot, offset, self.cell)

    def load(self, name, text):
        """Load a value from an array of the list."""
        return self._kernel.load(f"{name}{self._end}", text)

    def coordinate(self, name, index):
        """The coordinate of the inner cell."""
        return self._kernel.coordinate(f"{name}{self._end}", index, self.cell)

    def let(self, name, expression):
        """Define a named value of the inner cell."""
        return self._kernel.let(f"{name}{self._end}", expression)
