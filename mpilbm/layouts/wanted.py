"""The part of a case that decides which layouts it may use."""

from collections.abc import Sequence
from typing import Any, Protocol

from mpilbm.physics.lattices import Lattice


class Wanted(Protocol):
    """What the rules of layouts read; a case has it, see case/model.py."""

    @property
    def lattice(self) -> Lattice:
        """The lattice of the fluids."""

    @property
    def precision(self) -> Any:
        """`storage` is the number format of stored values."""

    @property
    def fluids(self) -> Sequence[Any]:
        """The fluids, with `collision`, `force` and `initial`."""

    @property
    def scalars(self) -> Sequence[Any]:
        """The scalars."""

    @property
    def coupling(self) -> Any:
        """The coupling of the fluids, or None."""

    @property
    def boundaries(self) -> Sequence[Any]:
        """The boundaries of the faces."""

    @property
    def bodies(self) -> Sequence[Any]:
        """The bodies; `shape` is None for a mask."""
