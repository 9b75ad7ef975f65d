"""The calls of a communicator that the program makes with any number of ranks."""

from typing import Any, Protocol


class Communicator(Protocol):
    """A communicator of mpi4py, or `ranks.Serial` for a run without MPI."""

    @property
    def rank(self) -> int:
        """The number of this rank."""

    @property
    def size(self) -> int:
        """The number of ranks."""

    def bcast(self, obj: Any, /, root: int = 0) -> Any:
        """The root's object on all ranks. Collective."""

    def gather(self, obj: Any, /, root: int = 0) -> list[Any] | None:
        """The objects of all ranks on the root, None on others. Collective."""

    def allgather(self, obj: Any, /) -> list[Any]:
        """The objects of all ranks on all ranks. Collective."""

    def barrier(self) -> None:
        """Wait for all ranks. Collective."""

    def Barrier(self) -> None:  # noqa: N802
        """Wait for all ranks. Collective."""
