"""How fast a case runs on the ranks at hand, beside how fast their memory copies."""

from dataclasses import dataclass
from statistics import median

import numpy as np

from mpilbm.errors import NonFiniteError
from mpilbm.outputs import number_of_cells
from mpilbm.parallel.agree import on_root, together
from mpilbm.preflight.message_sizes import halo_bytes
from mpilbm.run.run import build_solver

REPEATS = 5
SECONDS = 0.25  # of a repeat, if the number of steps is not given
TIMED_STEPS = 6  # two of them with events on the device, two others on the host
FIRST_STEPS = 4  # meet the memory's pages and the launches for the first time


@dataclass(frozen=True)
class Speed:
    """Times of a case on some ranks; GLUPS are 10^9 updates of fluid cells a second.

    `seconds` has one entry a repeat of `steps` steps, the slowest rank's. `copy_bandwidth`, in
    bytes read and written a second, is that of all ranks together. `split`: mean seconds of a step
    over the ranks, as StepTimes tells them, by edge, exchange, bulk and host.
    """

    ranks: int
    backend: str
    device: str
    compiler: str
    halo: dict
    cells: int
    fluid_cells: int
    steps: int
    seconds: tuple[float, ...]
    bytes_per_update: int
    copy_bandwidth: float
    split: dict

    def rate(self, seconds: float) -> float:
        """GLUPS of a repeat that took so long."""
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
        """Bytes a second that the updates had to move."""
        return self.glups * 1e9 * self.bytes_per_update

    @property
    def share(self) -> float:
        """Of the copy's bandwidth."""
        return self.achieved / self.copy_bandwidth


def measure(case, comm, steps: int | None = None, repeats: int = REPEATS) -> Speed:
    """Run a case `repeats` times `steps` steps after a warm-up, then copy memory. Collective.

    Without `steps` a repeat takes about a quarter of a second. Raises CaseError where the case
    cannot run, NonFiniteError if its flow did not stay finite: such a figure would count for
    nothing.
    """
    for fluid in case.fluids:
        on_root(comm, fluid.initial.require)
    solver, facts = build_solver(case, comm)
    device, halo = solver.device, facts.pop("halo") | sent(solver, comm)
    with solver.exchanger:
        together(comm, solver.fill)
        solver.settle()
        steps = steps or worth_timing(solver, comm)
        timed(solver, comm, steps)
        seconds = tuple(timed(solver, comm, steps) for _ in range(repeats))
        split, halo["hidden"] = where_time_goes(solver, comm)
        together(comm, require_finite, solver)
    fluid_cells = sum(comm.allgather(int(solver.geometry.fluid_cells.sum())))
    del solver  # the copy needs its memory
    return Speed(
        **facts,
        halo=halo,
        cells=number_of_cells(case),
        fluid_cells=fluid_cells,
        steps=steps,
        seconds=seconds,
        copy_bandwidth=copy_bandwidth(device, comm),
        split=split,
    )


def timed(solver, comm, steps: int) -> float:
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


def worth_timing(solver, comm) -> int:
    """An even number of steps that take about SECONDS: in-place layouts differ step by step.

    Asked again of so many, as they may be enqueued many at a time then.
    """
    timed(solver, comm, steps := FIRST_STEPS)
    for _ in range(2):
        a_step = timed(solver, comm, steps) / steps
        steps = max(FIRST_STEPS, 2 * round(SECONDS / a_step / 2))
    return steps


def where_time_goes(solver, comm) -> tuple[dict[str, float], float | None]:
    """Mean seconds of a step over the ranks, and the share of the exchange that is hidden.

    By edge, exchange, bulk and host; see StepTimes.
    """
    host = solver.times.host
    solver.times.every = 3
    timed(solver, comm, TIMED_STEPS)
    found = solver.times.split
    ranks = comm.allgather(found if host is None else found | {"host": host})
    shares = [share for share in comm.allgather(solver.times.hidden) if share is not None]
    split = {name: sum(one[name] for one in ranks) / len(ranks) for name in ranks[0]}
    return split, sum(shares) / len(shares) if shares else None


def copy_bandwidth(device, comm) -> float:
    """Bytes read and written a second by all ranks together, which copy at the same time."""
    return sum(comm.allgather(device.copy_bandwidth(before=comm.barrier)))


def require_finite(solver) -> None:
    """NonFiniteError unless the velocities of the slab's first plane are numbers."""
    u = solver.fields(("u",), 0, 1)["u"][~solver.solid(0, 1)]
    if not np.isfinite(u).all():
        raise NonFiniteError(f"the flow is not finite after {solver.steps} steps; lower its speed")


def sent(solver, comm) -> dict:
    """Bytes that each rank sends in a step, and the most messages of any."""
    of = solver.case, solver.slab, solver.geometry.around
    each = halo_bytes(*of, solver.program.kernels)
    counts, messages = zip(*comm.allgather(each), strict=True)
    return {"bytes": list(counts), "messages": max(messages)}
