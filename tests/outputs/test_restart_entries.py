"""The values that boundaries keep, read from a checkpoint by many ranks."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from mpilbm.core.errors import CaseError
from mpilbm.outputs.core import restart

RANKS, NAMES = 12, 2
PER_RANK = [3, 0, 7, 1, 4, 4, 0, 0, 2, 5, 6, 1]


class Dataset:
    """A dataset that counts the rows which are read."""

    def __init__(self, rows):
        self.rows, self.read = rows, 0

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        found = self.rows[index]
        self.read += len(found)
        return found


class State(SimpleNamespace):
    """The label and the cells of a list of one rank."""

    def write(self, values):
        self.values = values


def states(shift=0):
    """The states of all ranks, one list each."""
    first = np.cumsum([0, *PER_RANK])
    return [
        State(label="outlet", cells=np.arange(*first[k : k + 2], dtype=np.int64) * 5 + shift)
        for k in range(RANKS)
    ]


@pytest.fixture
def stored(monkeypatch):
    """A checkpoint that contains the cells and values of all ranks."""
    cells = np.concatenate([state.cells for state in states()])
    group = {"cells": Dataset(cells), "values": Dataset(np.outer(cells, [1.0, -1.0]))}

    @contextmanager
    def opened(path):
        yield {"boundary.outlet": group}

    monkeypatch.setattr(restart, "opened", opened)
    return group


def read(of, rank):
    counts = np.array([[state.cells.size] for state in of])
    restart._read_entries("file.h5", SimpleNamespace(entry_states=[of[rank]]), counts, rank)


def test_a_rank_reads_only_its_own_entries(stored):
    of = states()
    for rank, count in enumerate(PER_RANK):
        before = [each.read for each in stored.values()]
        read(of, rank)
        after = [each.read for each in stored.values()]
        assert np.subtract(after, before).tolist() == [count, count]
        np.testing.assert_array_equal(of[rank].values, np.outer(of[rank].cells, [1.0, -1.0]))


def test_other_cells_are_refused(stored):
    with pytest.raises(CaseError, match="'outlet' do not act on the cells of this checkpoint"):
        read(states(shift=1), 2)


@pytest.mark.parametrize("more", [1, -1])
def test_more_or_fewer_cells_of_a_rank_are_refused_by_all(stored, more):
    of = states()
    of[9].cells = np.arange(of[9].cells[0], of[9].cells[0] + 5 * (5 + more), 5)
    for rank in range(RANKS):
        with pytest.raises(CaseError, match="do not act on the cells"):
            read(of, rank)
