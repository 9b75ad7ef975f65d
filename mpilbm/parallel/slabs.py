"""Decomposition of the box into slabs along its slowest axis: z in 3D, y in 2D."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mpilbm.core.errors import CaseError
from mpilbm.core.units import counted


@dataclass(frozen=True)
class Slab:
    """The planes `begin <= plane < end` of a box of (planes, rows, nx) cells that one rank owns.

    Planes are counted globally from 0, or locally from 0 at `begin`; the local planes -1 and
    `planes` belong to the neighbours. `periodic`: whether the slab axis is periodic.
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
    def wraps(self) -> bool | None:
        """Whether it has all planes of the periodic slab axis; None if that is not periodic."""
        return self.ranks == 1 if self.periodic else None

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

    def blocks(self, cells: int) -> Iterator[tuple[int, int]]:
        """Yield (begin, end) of blocks of local planes with at most so many cells, or one plane."""
        step = max(1, cells // (self.shape[1] * self.shape[2]))
        for begin in range(0, self.planes, step):
            yield begin, min(begin + step, self.planes)


def split(
    shape: tuple[int, int, int],
    ranks: int,
    periodic: bool,
    costs: ArrayLike | None = None,
    least: Sequence[int] = (1, 1, 1),
) -> tuple[Slab, ...]:
    """One slab for each rank; CaseError if there are too few planes.

    Without `costs` the sizes of slabs differ by at most one. With `costs` of the planes (integers)
    the cost of the most expensive slab is minimal, while the first and the last slab have at least
    least[0] and least[2] planes. If there are too few planes for this, or if a slab would have
    fewer than least[1] planes, the sizes differ by at most one.
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
        cheapest = _cheapest_cuts(np.append(0, np.cumsum(np.asarray(costs))), needs)
        cuts = cheapest if np.diff(cheapest).min() >= least[1] else cuts
    return tuple(
        Slab(shape, rank, ranks, cuts[rank], cuts[rank + 1], periodic) for rank in range(ranks)
    )


def _cheapest_cuts(before: np.ndarray, needs: list[int]) -> list[int]:
    """The planes at which slabs begin, and the end of the last slab.

    before: int (planes + 1,), the sum of the costs of all planes before each one, and of all.

    Bisection finds the least cost that no slab needs to exceed. Of the cuts with this cost the ones
    nearest to equal shares are returned; with equal costs these are the equal cuts.
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
    assert latest is not None
    assert backwards is not None
    earliest = [planes - cut for cut in reversed(backwards)]
    shares = np.arange(ranks) * before[-1]
    cuts = [*(np.searchsorted(before * ranks, shares, "right") - 1).tolist(), planes]
    cuts[0] = 0
    for k in range(1, ranks):
        reach = np.searchsorted(before, before[cuts[k - 1]] + high, "right") - 1
        first = max(earliest[k], cuts[k - 1] + needs[k - 1])
        cuts[k] = int(min(max(cuts[k], first), latest[k], reach))
    return cuts


def _latest_cuts(before: np.ndarray, needs: list[int], most: int) -> list[int] | None:
    """The cuts if each slab takes as many planes as cost `most` allows; None: planes remain."""
    planes, left, cuts = len(before) - 1, sum(needs), [0]
    for need in needs:
        left -= need
        reach = int(np.searchsorted(before, before[cuts[-1]] + most, "right")) - 1
        cuts.append(min(reach, planes - left))
        if cuts[-1] < cuts[-2] + need:
            return None
    return cuts if cuts[-1] == planes else None
