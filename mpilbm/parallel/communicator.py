"""The calls of a communicator of mpi4py that mpilbm uses; `ranks.Serial` is the one without MPI."""

from typing import Any, Protocol


class Communicator(Protocol):
    """All ranks of a run. The lower-case calls take any Python object that can be pickled."""

    @property
    def rank(self) -> int:
        """Number of this rank, from 0."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    def bcast(self, value: Any, root: int = 0) -> Any:
        """The value of rank `root` on all ranks."""

    def gather(self, value: Any, root: int = 0) -> list | None:
        """The values of all ranks on rank `root`, None on the others."""

    def allgather(self, value: Any) -> list:
        """The values of all ranks on all ranks."""

    def barrier(self) -> None:
        """Wait until all ranks have called it."""

    def Barrier(self) -> None:  # noqa: N802
        """Wait until all ranks have called it."""


class MessagePassing(Communicator, Protocol):
    """A communicator of several ranks, which can send arrays between two of them."""

    def Send(self, data: Any, dest: int) -> None:  # noqa: N802
        """Send an array to rank `dest`."""

    def Recv(self, data: Any, source: int) -> None:  # noqa: N802
        """Receive an array from rank `source`."""

    def alltoall(self, values: list) -> list:
        """Send values[i] to rank i; the values that all ranks sent to this rank."""

    def Split(self, color: int = 0, key: int = 0) -> Any:  # noqa: N802
        """A communicator of the ranks with the same colour."""
