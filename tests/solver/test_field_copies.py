"""Fields that are copied behind the steps are those of the step at which they were asked for."""

import threading

import numpy as np
import pytest
from support.rocks import tables
from support.slabs import Cluster

from mpilbm.backends import cpu

NAMES = ("vorticity", "u", "rho", "q_criterion")
PLANES = 2  # in a block: 11 planes have a shorter one at the end


class Slow(cpu.Stream):
    """Works only when somebody waits for it, as a device that is far behind."""

    def flush(self):
        pass


def slow_device():
    device = cpu.Cpu().open()
    device.new_stream = Slow
    return device


def blocks(planes):
    return [(begin, min(begin + PLANES, planes)) for begin in range(0, planes, PLANES)]


@pytest.mark.parametrize("device", [None, slow_device], ids=["at once", "later"])
@pytest.mark.parametrize("layout", ["ab", "aa", "indirect"])
def test_steps_do_not_show_in_what_is_copied_behind_them(tmp_path, layout, device):
    cluster = Cluster(tables(tmp_path, "D2Q9", {"name": layout}), 1, device).start()
    solver = cluster.solvers[0]
    pieces, copies = blocks(solver.slab.planes), solver.copies(NAMES, PLANES, 2**20)
    for _ in range(2):  # the second time in memory that was used before
        cluster.run(3)
        solver.diagnostics.prepare(NAMES)
        started = [(*piece, copies.start(*piece)) for piece in pieces]
        copies.computed()
        expected = solver.fields(NAMES, 0, solver.slab.planes)
        cluster.run(3)
        for begin, end, copy in started:
            with copy as fields:
                for name in NAMES:
                    assert np.array_equal(fields[name], expected[name][begin:end])
    assert len(copies.copied) == (len(pieces) if device else 1)


def test_memory_is_bounded_and_start_waits_for_it(tmp_path):
    solver = Cluster(tables(tmp_path, "D2Q9", {"name": "ab"}), 1, slow_device).start().solvers[0]
    copies = solver.copies(("u",), PLANES, 1)
    copies.left_of_device = 2
    held = [copies.start(0, PLANES) for _ in range(2)]
    with held[0]:
        thread = threading.Thread(target=lambda: held.append(copies.start(0, PLANES)))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join(5)
    assert len(held) == 3
    assert len(copies.copied) == 2
    assert (copies.left_of_host, copies.left_of_device) == (0, 0)
