"""A rank notices that the process of a neighbour has ended."""

import os
import subprocess
from types import SimpleNamespace

import pytest
from support import halo_cases

from mpilbm.core.errors import MpilbmError
from mpilbm.halo.neighbours import Neighbours, start_time


@pytest.fixture
def process():
    child = subprocess.Popen(["sleep", "60"])
    yield child
    child.kill()
    child.wait()


def neighbours(number, started):
    """Of rank 0 of two, whose neighbour reports this process."""
    comm = SimpleNamespace(allgather=lambda own: [own, (number, started)])
    return Neighbours(halo_cases.slabs(2, True)[0], comm)


def test_a_killed_neighbour_is_noticed(process):
    found = neighbours(process.pid, start_time(process.pid))
    found.check()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie: its parent does not ask
    with pytest.raises(MpilbmError, match=f"process {process.pid} of rank 1 has ended") as error:
        found.check()
    assert "--restart auto" in str(error.value)
    process.wait()
    with pytest.raises(MpilbmError):
        found.check()


def test_another_process_of_the_same_number_is_not_the_neighbour(process):
    started = start_time(process.pid)
    found = neighbours(process.pid, started)
    found.watched[1] = process.pid, str(int(started) - 1)
    with pytest.raises(MpilbmError):
        found.check()


def test_a_neighbour_of_another_namespace_is_not_watched(process):
    found = neighbours(process.pid, str(int(start_time(process.pid)) + 1))
    assert not found.watched
    found.check()


def test_a_rank_that_is_alone_watches_nobody():
    comm = SimpleNamespace(allgather=lambda own: [own])
    Neighbours(halo_cases.slabs(1, True)[0], comm).check()
