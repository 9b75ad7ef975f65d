"""The entries of bodies whose forces are measured, and the order in which these are added.

Entries are added in chunks of at most CHUNK, each of one list, one plane and one body, then the
chunks of a body in a plane in the order of the lists. A plane belongs to one slab, so the sums do
not depend on the number of ranks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.solids import Flags, Ints
from mpilbm.solids.entry_list import EntryList, Writes

CHUNK = 256  # entries

Numbers = NDArray[np.int32]


class Selected(NamedTuple):
    """A part of an entry list, and the numbers of its entries in the whole list, int32 (n,)."""

    entries: EntryList
    rows: Numbers


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks of the entries of several lists, of which each list has its own range.

    entry   int32, the entries in the order of the chunks; numbers count from the first list on
    first   int32 (chunks + 1,), where the entries of each chunk begin in `entry`
    ranges  (begin, end) of the chunks of each list
    order   int32 (chunks,), the chunks in the order of the groups
    group   int64 (groups, 2), plane of the slab, and number of the measured owner, of each pair of
            a plane and an owner (a body, or a face) that has entries there; ascending
    start   int32 (groups + 1,), where the chunks of each group begin in `order`
    """

    entry: Numbers
    first: Numbers
    ranges: tuple[tuple[int, int], ...]
    order: Numbers
    group: Ints
    start: Numbers

    @classmethod
    def of(cls, slab: Slab, lists: Sequence[tuple[Ints, Numbers]]) -> "Chunks":
        """The chunks of lists: ascending cells, and the number of the owner of each entry."""
        plane_cells, begin, chunk = slab.shape[1] * slab.shape[2], 0, 0
        count = 1 + max((int(numbers.max(initial=0)) for _, numbers in lists), default=0)
        entry, first, group, ranges = [], [], [], []
        for cells, numbers in lists:
            order, starts, groups = _chunks_of(cells // plane_cells, numbers, count)
            entry.append(order + np.int32(begin))
            first.append(starts + np.int32(begin))
            group.append(groups)
            ranges.append((chunk, chunk + groups.size))
            begin, chunk = begin + order.size, chunk + groups.size
        groups = np.concatenate([np.empty(0, np.int64), *group])
        order = np.argsort(groups, kind="stable").astype(np.int32)
        known, start = np.unique(groups[order], return_index=True)
        return cls(
            entry=np.concatenate([np.empty(0, np.int32), *entry]),
            first=np.concatenate([*first, [begin]]).astype(np.int32),
            ranges=tuple(ranges),
            order=order,
            group=np.stack(np.divmod(known, count), 1),
            start=np.append(start, groups.size).astype(np.int32),
        )

    @property
    def planes(self) -> Ints:
        """The plane of each chunk, in the order of the groups."""
        return np.repeat(self.group[:, 0], np.diff(self.start))


def numbered(entries: EntryList, numbers: Mapping[int, int]) -> tuple[Ints, Numbers]:
    """The cells of a list, and the number of the owner of each entry; `numbers`: by place."""
    own = np.array([numbers.get(owner.place, 0) for owner in entries.owners], np.int32)
    return entries.cells, own[entries.member]


def _chunks_of(group: Ints, numbers: Numbers, most: int) -> tuple[Numbers, Numbers, Ints]:
    """The order of the entries of a list, where each chunk begins, and its plane and owner.

    `group`: the plane of each entry; the numbers of the owners are less than `most`.
    """
    if most > 1:
        group *= most
        group += numbers
    order = np.arange(group.size, dtype=np.int32)
    if most > 1:
        order = np.argsort(group, kind="stable").astype(np.int32)
        group = group[order]
    begins = np.flatnonzero(np.append(group.size > 0, group[1:] != group[:-1]))
    sizes = np.diff(begins, append=group.size)
    count = -(-sizes // CHUNK)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    starts = np.repeat(begins, count) + CHUNK * within
    return order, starts.astype(np.int32), group[starts]


@dataclass(frozen=True, eq=False)
class BodyLinks:
    """The entries that the forces on bodies need.

    staged    entries whose incoming populations are staged: with `split` all entries of the cells
              next to the bodies, otherwise those of mirrors and of other boundaries there that the
              boundaries of the bodies read, see Capabilities.read_by_others
    measured  the entries of the bodies
    chunks    of the measured entries
    """

    staged: tuple[Selected, ...]
    measured: tuple[Selected, ...]
    chunks: Chunks

    @classmethod
    def find(cls, case: Case, slab: Slab, lists: Sequence[EntryList]) -> "BodyLinks":
        """Select from the entries of a slab those that the forces on `case.needs.weighed` need."""
        pairs = [(each, each.of_bodies(case.needs.weighed)) for each in lists]
        mine = selected((each, flags) for each, flags in pairs if flags.any())
        measured = tuple(Selected(replace(e, writes=Writes.MEASURED), rows) for e, rows in mine)
        conditions = [each.entries.boundary for each in measured]
        read = any(c.capabilities.reads is Reads.CELL and not c.read_by_others for c in conditions)

        def wanted(of: Condition) -> bool:
            return case.needs.split or of.mirrors or (read and of.read_by_others)

        beside = [each for each in lists if wanted(each.boundary)]
        cells = np.concatenate([np.empty(0, np.int64), *(m.entries.cells for m in measured)])
        staged = tuple(selected((each, np.isin(each.cells, cells)) for each in beside))
        owners = {owner.place: owner.body for each in lists for owner in each.owners}
        numbers = {
            p: case.needs.weighed.index(b) for p, b in owners.items() if b in case.needs.weighed
        }
        of = [numbered(each.entries, numbers) for each in measured]
        return cls(staged, measured, Chunks.of(slab, of))

    @property
    def lists(self) -> tuple[EntryList, ...]:
        """All entries: staged ones first."""
        return tuple(each.entries for each in (*self.staged, *self.measured))

    @property
    def first_measured(self) -> int:
        """The number of the first measured entry among all."""
        return sum(each.rows.size for each in self.staged)


def selected(pairs: Iterable[tuple[EntryList, Flags]]) -> Iterator[Selected]:
    """The entries of lists for which flags are set."""
    for each, flags in pairs:
        rows = np.flatnonzero(flags)
        entries = each if rows.size == flags.size else each.only(rows)
        yield Selected(entries, rows.astype(np.int32))
