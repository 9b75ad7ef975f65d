"""The speed of a case on the ranks of this run, and the bandwidth of copies in their memory."""

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from mpilbm.case.case import Case
from mpilbm.core.errors import NonFiniteError
from mpilbm.outputs import number_of_cells
from mpilbm.parallel import Communicator, on_root, together
from mpilbm.run.preflight.rank_memory import halo_bytes
from mpilbm.run.progress import Say
from mpilbm.run.setup import build_solver
from mpilbm.solver.solver import Solver

REPEATS = 5
SECONDS = 0.25  # of a repeat, if the number of steps is not given
TIMED_STEPS = 6  # two of them with events on the device, two others on the host
FIRST_STEPS = 4  # include first accesses to memory pages and first launches


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Times of a case on some ranks; GLUPS are 10^9 updates of fluid cells a second.

    `seconds` has one entry for each repeat of `steps` steps, of the slowest rank. `copy_bandwidth`,
    in bytes read and written per second, is that of all ranks together. `split`: seconds of a step
    by edge, exchange, bulk and host, as StepTimes reports them, the mean over the ranks.
    `steps_a_pass`: of a pass over the memory, 1 or 2, see solver/two_steps.py.
    `expected_glups`: see expected_speed; None on a CPU.
    """

    ranks: int
    backend: str
    device: str
    compiler: str
    halo: dict[str, Any]
    layout: str
    layout_why: str
    expected_glups: float | None
    cells: int
    fluid_cells: int
    steps: int
    seconds: tuple[float, ...]
    bytes_per_update: int
    steps_a_pass: int
    copy_bandwidth: float
    split: dict[str, float]

    def rate(self, seconds: float) -> float:
        """GLUPS of a repeat of so many seconds."""
        return self.fluid_cells * self.steps / seconds / 1e9

    @property
    def glups(self) -> float:
        """The median over the repeats."""
        return self.rate(median(self.seconds))

    @property
    def spread(self) -> tuple[float, float]:
        """GLUPS of the slowest and of the fastest repeat."""
        return self.rate(max(self.seconds)), self.rate(min(self.seconds))

    @property
    def achieved(self) -> float:
        """Bytes per second that the updates read and write."""
        return self.glups * 1e9 * self.bytes_per_update

    @property
    def share(self) -> float:
        """`achieved` relative to the bandwidth of a copy."""
        return self.achieved / self.copy_bandwidth


def measure(
    case: Case, comm: Communicator, steps: int | None = None, repeats: int = REPEATS
) -> Speed:
    """Run a case `repeats` times `steps` steps after a warm-up, then copy memory. Collective.

    By default a repeat takes about SECONDS. Raises CaseError if the case cannot run,
    NonFiniteError if its flow did not remain finite: the speed of such a run is meaningless.
    """
    for fluid in case.fluids:
        on_root(comm, fluid.initial.require)
    solver, facts = build_solver(case, comm, Say(comm))
    of = solver.case, solver.slab, solver.geometry.around
    each = halo_bytes(*of, solver.program.kernels)
    sent, messages = zip(*comm.allgather(each), strict=True)
    device = solver.device
    halo = facts.pop("halo") | {"bytes": list(sent), "messages": max(messages)}
    with solver.exchanger:
        together(comm, solver.fill)
        solver.settle()
        steps = steps or worth_timing(solver, comm)
        timed(solver, comm, steps)
        seconds = tuple(timed(solver, comm, steps) for _ in range(repeats))
        split, halo["hidden"] = _where_time_goes(solver, comm)
        together(comm, _require_finite, solver)
    fluid_cells = sum(comm.allgather(int(solver.geometry.fluid_cells.sum())))
    steps_a_pass = 2 if solver.two_steps else 1
    del solver  # the copy needs its memory
    return Speed(
        **facts,
        halo=halo,
        cells=number_of_cells(case),
        fluid_cells=fluid_cells,
        steps=steps,
        seconds=seconds,
        steps_a_pass=steps_a_pass,
        copy_bandwidth=sum(comm.allgather(device.copy_bandwidth(before=comm.barrier))),
        split=split,
    )


def timed(solver: Solver, comm: Communicator, steps: int) -> float:
    """Seconds of some steps between two events of the device, on the slowest rank.

    On a CPU an event reads the clock.
    """
    bulk, edge = (solver.device.stream(name) for name in ("bulk", "edge"))
    solver.device.synchronize()
    comm.barrier()
    start = bulk.record(timed=True)
    solver.advance(steps)
    bulk.wait(edge.record())
    return max(comm.allgather(bulk.record(timed=True).seconds_since(start)))


def worth_timing(solver: Solver, comm: Communicator) -> int:
    """An even number of steps that take about SECONDS; in-place layouts alternate two kernels.

    Estimated twice, since many steps that are enqueued together take less time each than a few.
    """
    timed(solver, comm, steps := FIRST_STEPS)
    for _ in range(2):
        a_step = timed(solver, comm, steps) / steps
        steps = max(FIRST_STEPS, 2 * round(SECONDS / a_step / 2))
    return steps


def _where_time_goes(solver: Solver, comm: Communicator) -> tuple[dict[str, float], float | None]:
    """Seconds of a step by edge, exchange, bulk and host, and the hidden share of the exchange.

    Means over the ranks; see StepTimes.
    """
    host = solver.times.host
    solver.times.every = 3
    timed(solver, comm, TIMED_STEPS)
    found = solver.times.split
    assert found is not None, "steps were timed"
    ranks = comm.allgather(found if host is None else found | {"host": host})
    shares = [share for share in comm.allgather(solver.times.hidden) if share is not None]
    split = {name: sum(one[name] for one in ranks) / len(ranks) for name in ranks[0]}
    return split, sum(shares) / len(shares) if shares else None


def _require_finite(solver: Solver) -> None:
    """Check the velocities of the slab's first plane."""
    u = solver.fields(("u",), 0, 1)["u"][~solver.solid(0, 1)]
    if not np.isfinite(u).all():
        raise NonFiniteError(
            f"the flow is not finite after {solver.steps} steps; lower its speed", solver.steps
        )
