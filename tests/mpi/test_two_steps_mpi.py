"""Two steps in one pass on several ranks, set up as in a run, on an emulated GPU."""

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.slabs import Cluster
from support.two_steps import FILLED, FORCE, moments, small_tiles, tile, two_are_faster

from mpilbm.backends.cuda import overlap, tiles
from mpilbm.backends.interfaces import Parts
from mpilbm.case.case import parse_case
from mpilbm.core.registry import make
from mpilbm.parallel import ranks as world
from mpilbm.run import setup
from mpilbm.run.progress import Say
from mpilbm.solver import two_steps

pytestmark = [pytest.mark.mpi, pytest.mark.skipif(command() is None, reason="no C++ compiler")]
CASE = moments(size=(14, 13, 15), body=[FILLED], **FORCE)


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    small_tiles(monkeypatch)
    two_are_faster(monkeypatch)
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    divided = Parts(2, 2) if world.world().rank % 2 == 0 else None  # slabs have 5 planes or more
    monkeypatch.setattr(overlap, "parts", lambda *_: divided)
    place = world.local_rank(world.world())
    opened = setup.Opened(make("backends", "cpu"), EmulatedDevice(), place, [])
    monkeypatch.setattr(setup, "open_device", lambda *_: opened)


@pytest.mark.parametrize(("way", "faster"), [("direct", True), ("staged", True), ("staged", False)])
def test_ranks_take_two_steps_together(way, faster, monkeypatch):
    """If one rank does not gain, all take single steps; the bits are those of one rank."""
    comm = world.world()
    if not faster and comm.rank == comm.size - 1:
        monkeypatch.setattr(two_steps, "fastest_way", lambda *_: "single steps")
    solver, _ = setup.build_solver(parse_case(CASE | {"halo": {"name": way}}), comm, Say(comm))
    with solver.exchanger:
        assert bool(solver.two_steps) == faster
        solver.initialise()
        for steps in (5, 8):
            solver.advance(steps)
        state = solver.read_state("", 0, solver.slab.planes)
    monkeypatch.setattr(two_steps, "fastest_way", lambda *_: "single steps")
    whole = Cluster(CASE, 1, EmulatedDevice).start().run(13).state()
    begin, end = solver.slab.begin, solver.slab.end
    solid = solver.solid(0, solver.slab.planes)[:, None]
    np.testing.assert_array_equal(np.where(solid, 0, state), whole[begin:end])
