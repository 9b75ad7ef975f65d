"""Exchange between processes: every way moves the same bits to the same places."""

import numpy as np
import pytest
from support import halo_cases
from support.random_device import RandomDevice
from support.settings import tables
from support.slabs import Cluster

from mpilbm import codegen, halo
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.parallel import ranks as world
from mpilbm.parallel import slabs
from mpilbm.solids import build
from mpilbm.solver.solver import Solver

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("planes", [4, 5, 13])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("way", ["direct", "staged", "auto"])
def test_ghost_planes_hold_what_the_neighbour_sent(way, periodic, planes):
    comm = world.world()
    slab = halo_cases.slabs(comm.size, periodic, planes)[comm.rank]
    device = halo_cases.device()
    with make("halo", way).open(slab, comm, device) as exchanger:
        ends = halo_cases.SlabExchange(slab, device, exchanger)
        for step in range(5):
            ends.fill(step)
            ends.exchange.start()
            ends.exchange.finish()
            ends.check(step)


@pytest.mark.parametrize("way", ["direct", "staged"])
def test_two_exchanges_at_once_stay_apart(way):
    comm = world.world()
    slab = halo_cases.slabs(comm.size, True)[comm.rank]
    device = halo_cases.device()
    with make("halo", way).open(slab, comm, device) as exchanger:
        pair = [halo_cases.SlabExchange(slab, device, exchanger) for _ in range(2)]
        for step, ends in enumerate(pair):
            ends.fill(step)
            ends.exchange.start()
        for step, ends in enumerate(pair):
            ends.exchange.finish()
            ends.check(step)


@pytest.mark.parametrize("way", ["direct", "staged"])
@pytest.mark.parametrize(("layout", "setting"), [("ab", "walls"), ("aa", "periodic")])
def test_ranks_are_one_in_whatever_order_a_device_works(way, layout, setting):
    """Also if it does nothing before the host waits for it."""
    comm, found = world.world(), tables("D2Q9", layout, "trt", setting, "single")
    case = parse_case(found, "test.toml")
    slab = slabs.split(case.shape, comm.size, case.domain.periodic[-1])[comm.rank]
    device = RandomDevice(comm.rank)
    with make("halo", way).open(slab, comm, device) as exchanger:
        shape, program = build.build(case, slab), codegen.generate(case)
        solver = Solver(case, slab, shape, device, exchanger, program)
        solver.initialise()
        for _ in range(7):
            solver.step()
        state = solver.read_state("", 0, slab.planes)
    state = np.where(solver.solid(0, slab.planes)[:, None], 0, state)
    whole = Cluster(found).start().run(7).state()
    np.testing.assert_array_equal(state, whole[slab.begin : slab.end])


def test_long_pieces_are_split(monkeypatch):
    monkeypatch.setattr(halo, "LARGEST_MESSAGE", 7)
    comm = world.world()
    slab = halo_cases.slabs(comm.size, True)[comm.rank]
    device = halo_cases.device()
    with make("halo", "direct").open(slab, comm, device) as exchanger:
        ends = halo_cases.SlabExchange(slab, device, exchanger)
        ends.fill(1)
        ends.exchange.start()
        ends.exchange.finish()
        ends.check(1)


def test_an_error_between_start_and_finish_does_not_hang():
    comm = world.world()
    slab = halo_cases.slabs(comm.size, True)[comm.rank]
    device = halo_cases.device()

    def broken_off():
        with make("halo", "direct").open(slab, comm.Dup(), device) as exchanger:
            ends = halo_cases.SlabExchange(slab, device, exchanger)
            if comm.rank == 0:
                ends.exchange.start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken_off()


def test_ranks_of_a_node_are_counted():
    comm = world.world()
    rank, ranks = world.local_rank(comm)
    assert 0 <= rank < ranks <= comm.size
    assert sorted(comm.allgather(rank)) == list(range(comm.size))


@pytest.mark.mpi(min_size=2)
def test_local_reaches_no_other_process():
    comm = world.world()
    slab = halo_cases.slabs(comm.size, True)[comm.rank]
    with pytest.raises(CaseError, match="does not reach other processes"):
        make("halo", "local").open(slab, comm, halo_cases.device())
