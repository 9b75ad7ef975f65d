"""The box cut into slabs along its slowest axis: z in 3D, y in 2D."""

from dataclasses import dataclass

import numpy as np

from mpilbm.errors import CaseError
from mpilbm.units import counted


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


def split(
    shape: tuple[int, int, int], ranks: int, periodic: bool, costs=None, least=(1, 1, 1)
) -> tuple[Slab, ...]:
    """One slab a rank; CaseError if there are too few planes.

    Their sizes differ by at most one or, with `costs` of the planes (integers), are such that the
    most expensive slab is as cheap as any cuts make it. Then the first and the last slab get the
    `least` planes that they need, where there are as many; sizes differ by at most one, too, where
    another slab would get fewer than it needs.
    """
    planes = shape[0]
    if ranks > planes:
        most = max(1, planes // max(least))
        raise CaseError(
            f"{counted(planes, 'plane')} along the last axis cannot be shared by {ranks} ranks, "
            f"each needs at least {max(least)}; start at most {counted(most, 'rank')} or enlarge "
            "the box along that axis",
            "domain.size",
        )
    cuts = [rank * planes // ranks for rank in range(ranks + 1)]
    needs = [least[0], *[1] * (ranks - 2), least[2]]
    if costs is not None and ranks > 1 and sum(needs) <= planes:
        cheapest = _cheapest_cuts(np.append(0, np.cumsum(costs)), needs)
        cuts = cheapest if np.diff(cheapest).min() >= least[1] else cuts
    return tuple(
        Slab(shape, rank, ranks, cuts[rank], cuts[rank + 1], periodic) for rank in range(ranks)
    )


def _cheapest_cuts(before, needs: list[int]) -> list[int]:
    """Where slabs begin and end, from the costs `before` each plane and of all.

    The least cost that no slab needs to exceed is found by bisection. Of the cuts that keep to it
    those are taken that come nearest to equal shares: with equal costs the equal cuts.
    """
    planes, ranks = len(before) - 1, len(needs)
    low, high = 0, int(before[-1])
    while low < high:
        middle = (low + high) // 2
        if _latest_cuts(before, needs, middle) is None:
            low = middle + 1
        else:
            high = middle
    latest = _latest_cuts(before, needs, high)
    backwards = _latest_cuts(before[-1] - before[::-1], needs[::-1], high)
    earliest = [planes - cut for cut in reversed(backwards)]
    shares = np.arange(ranks) * before[-1]
    cuts = [*(np.searchsorted(before * ranks, shares, "right") - 1).tolist(), planes]
    cuts[0] = 0
    for k in range(1, ranks):
        reach = np.searchsorted(before, before[cuts[k - 1]] + high, "right") - 1
        first = max(earliest[k], cuts[k - 1] + needs[k - 1])
        cuts[k] = int(min(max(cuts[k], first), latest[k], reach))
    return cuts


def _latest_cuts(before, needs: list[int], most: int) -> list[int] | None:
    """The cuts where each slab takes all planes that it may for a cost of `most`; None: too few."""
    planes, left, cuts = len(before) - 1, sum(needs), [0]
    for need in needs:
        left -= need
        reach = int(np.searchsorted(before, before[cuts[-1]] + most, "right")) - 1
        cuts.append(min(reach, planes - left))
        if cuts[-1] < cuts[-2] + need:
            return None
    return cuts if cuts[-1] == planes else None
