"""The box cut into slabs along its slowest axis: z in 3D, y in 2D."""

from dataclasses import dataclass

from mpilbm.errors import CaseError


@dataclass(frozen=True)
class Slab:
    """The planes `begin <= plane < end` of a box of (planes, rows, nx) cells that one rank owns.

    Planes are counted globally from 0, or locally from 0 at `begin`; the local planes -1 and
    `planes` are the neighbours'. `periodic` is that of the slab axis.
    """

    shape: tuple[int, int, int]
    rank: int
    ranks: int
    begin: int
    end: int
    periodic: bool

    @property
    def planes(self) -> int:
        """Number of planes owned."""
        return self.end - self.begin

    @property
    def lower(self) -> int | None:
        """Rank that owns plane `begin - 1`; None at a wall; itself when alone and periodic."""
        return self._neighbour(-1)

    @property
    def upper(self) -> int | None:
        """Rank that owns plane `end`; None at a wall; itself when alone and periodic."""
        return self._neighbour(+1)

    def _neighbour(self, step: int) -> int | None:
        rank = self.rank + step
        return rank % self.ranks if self.periodic or 0 <= rank < self.ranks else None

    def global_plane(self, local: int) -> int | None:
        """Global number of a local plane, wrapped if periodic; None beyond a wall."""
        plane = self.begin + local
        inside = 0 <= plane < self.shape[0]
        return plane % self.shape[0] if self.periodic or inside else None

    def local_plane(self, plane: int) -> int:
        """Local number of a global plane, which need not be owned."""
        return plane - self.begin


def split(shape: tuple[int, int, int], ranks: int, periodic: bool) -> tuple[Slab, ...]:
    """One slab a rank, sizes differing by at most one; CaseError if there are too few planes."""
    planes = shape[0]
    if ranks > planes:
        raise CaseError(
            f"{planes} planes along the last axis cannot be shared by {ranks} ranks, each needs "
            f"at least 1; start at most {planes} ranks or enlarge the box along that axis",
            "domain.size",
        )
    cuts = [rank * planes // ranks for rank in range(ranks + 1)]
    return tuple(
        Slab(shape, rank, ranks, cuts[rank], cuts[rank + 1], periodic) for rank in range(ranks)
    )
