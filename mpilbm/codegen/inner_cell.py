"""The text of a list's kernel where it speaks of a cell inwards of the entry's."""

import re
from dataclasses import replace

OWN = "own"  # the entry's place in the arrays of its own list
NAMES = re.compile(r"\b(cells?|blocked|moved|slipped|plane|row|x|node)(_[mp])?\b")


class InwardText:
    """The text of a list's kernel where it speaks of the k-th cell inwards.

    All values have names of their own. What is read counts as if the entry's cell read it: both
    belong to the slab, so whatever travels for the one is there for the other.
    """

    def __init__(self, kernel, k: int):
        self._kernel, self._end = kernel, f"_in{k}"
        self.per_entry("cells", "int64*")
        kernel.entry += "\n" + self._shifted(kernel.head).replace("[entry]", f"[{OWN}]")

    def __getattr__(self, name):
        return getattr(self._kernel, name)

    def _shifted(self, text: str) -> str:
        return NAMES.sub(rf"\1{self._end}\2", text)

    def per_entry(self, name: str, type: str) -> None:
        """Declare an array of the list's own."""
        self._kernel.per_entry(f"{name}{self._end}", type)

    def read(self, name, pointer, type, grid, slot, offset):
        """Load a value of the cell inwards."""
        value = self._kernel.read(f"{name}{self._end}", pointer, type, grid, slot, offset)
        load = self._kernel.loads[value]
        self._kernel.loads[value] = replace(load, address=self._shifted(load.address))
        return value

    def load(self, name, text):
        """Load a value from an array of the list's own."""
        return self._kernel.load(f"{name}{self._end}", self._shifted(text))

    def coordinate(self, name, index):
        """The coordinate of the cell inwards."""
        return self._kernel.coordinate(f"{name}{self._end}", self._shifted(index))

    def let(self, name, expression):
        """Name a value of the cell inwards."""
        return self._kernel.let(f"{name}{self._end}", expression)
