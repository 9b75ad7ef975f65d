"""What the expressions of a cell need from the kernel that computes them."""

from collections.abc import Mapping
from typing import Protocol

from sympy import Symbol

from mpilbm.codegen.text.parts import Index
from mpilbm.layouts import AnyGrid, Offset
from mpilbm.model.expressions import Expression


class CellKernel(Protocol):
    """A kernel with a cell: that for which it is called, or one further inwards."""

    @property
    def name(self) -> str:
        """The name of the C function."""

    @property
    def unit(self) -> int:
        """Values are loaded as multiples of 1 / unit."""

    @property
    def parity(self) -> int | None:
        """The parity of the steps in which the kernel is used; None for all steps."""

    @property
    def listed(self) -> bool:
        """Whether cells are found in tables."""

    @property
    def known(self) -> Mapping[str, Expression]:
        """Values of scalars that a step has computed, by label."""

    @property
    def definitions(self) -> Mapping[Symbol, Expression]:
        """The named values and their expressions."""

    def argument(self, name: str, type: str) -> Symbol:
        """Declare a parameter of the kernel; returns its symbol."""

    def address(self, grid: AnyGrid, slot: int, offset: Offset) -> str:
        """C text of the index of a value of the cell."""

    def read(
        self, name: str, pointer: str, type: str, grid: AnyGrid, slot: int, offset: Offset
    ) -> Symbol:
        """Load a value of a field; returns the symbol `name`."""

    def load(self, name: str, text: str) -> Symbol:
        """Load a value from a list or a plain array; `text` is its C text."""

    def coordinate(self, name: str, index: Index) -> Symbol:
        """The coordinate of the cell's centre, from the cell's number along an axis."""

    def let(self, name: str, expression: Expression) -> Symbol:
        """Define a named value; returns its symbol."""


class ListKernel(CellKernel, Protocol):
    """A kernel of a boundary list."""

    def per_entry(self, name: str, type: str) -> str:
        """Declare an array of the list's own; returns the C text of the entry's value."""
