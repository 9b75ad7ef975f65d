"""A run on one page: how its parts are connected, and the loop over time steps."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm import backends, codegen
from mpilbm.case.velocity_bounds import require_forces
from mpilbm.codegen.program import Program
from mpilbm.errors import StoppedEarly
from mpilbm.geometry import build, diagnose, geometry_findings, plane_costs
from mpilbm.geometry.masks import require_masks
from mpilbm.outputs import Context, number_of_cells
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.restart import candidates, load
from mpilbm.outputs.summary import Summary
from mpilbm.outputs.writers import Writers
from mpilbm.parallel.agree import on_root, together
from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.ranks import local_rank
from mpilbm.preflight import layout_choice
from mpilbm.preflight.inspection import initial_ranges, inspect
from mpilbm.run.progress import Progress, say
from mpilbm.run.steady import Watch
from mpilbm.run.stopping import Signals, Stopping, time_limit
from mpilbm.solver import memory_plan
from mpilbm.solver.solver import Solver
from mpilbm.storage.checkpoint_names import existing
from mpilbm.storage.clock import Clock
from mpilbm.storage.directory import RunDirectory
from mpilbm.storage.striping import spread
from mpilbm.units import counted
from mpilbm.verdicts.findings import Finding, in_order

if TYPE_CHECKING:
    from mpilbm.backends import Backend, Device
    from mpilbm.case.case import Case
    from mpilbm.parallel.slabs import Slab

Look = Callable[["Case", list[diagnose.Diagnosis] | None, Communicator], None]


def run(
    case: "Case",
    comm: Communicator,
    directory: Path | str,
    restart: Path | str | None = None,
    overwrite: bool = False,
) -> str:
    """Run a case on the ranks of `comm`, write its files to `directory`, return "done".

    `restart` is None, a checkpoint or "auto". Raises an MpilbmError on all ranks alike:
    CaseError or CommandError before anything is written, NonFiniteError, StoppedEarly with a
    complete checkpoint on the disk, FileSystemError.
    """
    clock, directory = Clock(), Path(directory)
    with Signals() as signals, claimed(directory, case, comm, restart, overwrite) as folder:
        checkpoints = on_root(comm, candidates, restart, directory) if restart is not None else []
        for fluid in case.fluids if not checkpoints else ():
            on_root(comm, fluid.initial.require)
        findings: list[Finding] = []

        def look(case: "Case", parts: list[diagnose.Diagnosis] | None, comm: Communicator) -> None:
            findings.extend(report_findings(case, parts, comm, initial=not checkpoints))

        solver, facts = build_solver(case, comm, look, bool(checkpoints))
        facts["findings"] = [asdict(found) for found in findings]
        halo = "halo {name}: {why}".format(**facts["halo"])
        case = solver.case
        layout = "; layout {layout}: {layout_why}".format(**facts) if facts["layout_why"] else ""
        say(comm, f"{counted(comm.size, 'rank')} on {facts['device']}; {halo}{layout}")
        if striping := on_root(comm, spread, directory, comm.size):
            say(comm, striping)
        with solver.exchanger:
            first, checkpoint = begin(solver, case, comm, checkpoints, restart)
            on_root(comm, folder.set_aside)
            if restart != "auto":  # `load` has warned of later checkpoints, which are damaged
                warn_of_later(directory, comm, first)
            context = Context(
                case=case,
                slab=solver.slab,
                slabs=tuple(comm.allgather(solver.slab)),
                comm=comm,
                solver=solver,
                directory=directory,
                first_step=first,
                clock=clock,
                checkpoint=checkpoint,
            )
            with Summary(context, facts) as summary:
                march(context, summary, signals, folder)
    say(comm, f"step {summary.step}: {summary.reason or 'done'}; the files are in {directory}")
    return "done"


@contextmanager
def claimed(
    directory: Path, case: "Case", comm: Communicator, restart: Path | str | None, overwrite: bool
) -> Iterator[RunDirectory]:
    """Lock the output folder while the body runs."""
    folder = RunDirectory(directory)
    try:
        for note in on_root(comm, folder.claim, case, restart, overwrite):
            say(comm, note)
        yield folder
    finally:
        folder.release()


def build_solver(
    case: "Case", comm: Communicator, look: Look | None = None, restarts: bool = False
) -> tuple[Solver, dict[str, Any]]:
    """The solver of this rank's slab, and facts for the summary; collective.

    `look(case, parts, comm)` is called on all ranks with the second result of build_geometry.
    `restarts`: whether a state is going to be imported.
    """
    slab = plane_costs.slabs(case, comm.size)[comm.rank]
    backend, device = open_device(case.backend, comm)
    case, why_layout = layout_choice.settled(case, comm, device)
    together(comm, memory_plan.require, device, case, slab)
    together(comm, require_forces, case, slab.begin, slab.end)
    on_root(comm, require_masks, case)
    slab = balanced(case, slab, comm)
    geometry_of_slab, parts = build_geometry(case, slab, device, comm)
    if look:
        look(case, parts, comm)
    text = on_root(comm, lambda: codegen.generate(case).to_json())
    program = Program.from_json(text)
    first = local_rank(comm)[0] == 0
    roles = case.kernel_roles | ({"import"} if restarts else set())
    for turn in (True, False):  # one rank per node compiles, the others read the cache
        together(comm, lambda mine: mine and device.compile(program, roles), first == turn)
    halo, why = case.halo.resolve(comm, device)
    shared = backends.shared_devices(comm.allgather(device.identity))
    for warning in (*shared, *dict.fromkeys(filter(None, comm.allgather(device.warning)))):
        say(comm, f"warning: {warning}")
    exchanger = halo.open(slab, comm, device)
    solver = together(comm, Solver, case, slab, geometry_of_slab, device, exchanger, program)
    facts = {
        "ranks": comm.size,
        "backend": backend.name,
        "device": device.description,
        "compiler": device.compiler,
        "layout": case.layout.name,
        "layout_why": why_layout,
        "bytes_per_update": solver.bytes_per_update,
        "halo": {"name": halo.name, "why": why},
    }
    return solver, facts


def balanced(case: "Case", slab: "Slab", comm: Communicator) -> "Slab":
    """This rank's slab if the box is cut into slabs of equal cost.

    Each rank computes the costs of the planes of `slab`. Collective.
    """
    if comm.size == 1 or not case.bodies:
        return slab
    costs = comm.allgather(together(comm, plane_costs.plane_costs, case, slab.begin, slab.end))
    return plane_costs.slabs(case, comm.size, np.concatenate(costs))[comm.rank]


def build_geometry(
    case: "Case", slab: "Slab", device: "Device", comm: Communicator
) -> tuple[build.Geometry, list[diagnose.Diagnosis] | None]:
    """Solid cells and boundary lists of this rank's slab, and the diagnosis of all slabs.

    The diagnosis is None on all ranks but rank 0. Raises CaseError if the geometry is invalid.
    """
    diagnosed: list[diagnose.Diagnosis] = []

    def look(*arguments: Any) -> None:
        diagnosed.append(diagnose.find(*arguments))

    own = device, case, slab, local_rank(comm)[1]
    together(comm, memory_plan.require_host, *own)
    geometry = together(comm, build.build, case, slab, look)
    together(comm, memory_plan.require_host, *own, geometry.lists, geometry.around)
    cells = comm.allgather(int(geometry.fluid_cells.sum()))
    build.require_fluid(case, sum(cells))
    parts = comm.gather(diagnosed[0])
    on_root(comm, geometry_findings.refuse, case, parts)
    return geometry, parts


def report_findings(
    case: "Case", parts: list[diagnose.Diagnosis] | None, comm: Communicator, initial: bool
) -> list[Finding]:
    """Print the findings of the case and of all slabs, and return them on all ranks; collective.

    `initial`: whether to inspect the initial fields, which a restart does not use.
    """

    def found() -> list[Finding]:
        ranges = initial_ranges(case) if initial else ()
        idle = geometry_findings.idle([part.fluid for part in parts or ()])
        return in_order(inspect(case, parts or [], ranges) + idle)

    findings = on_root(comm, found)
    for each in findings:
        say(comm, each.line)
    return findings


def open_device(backend: "Backend", comm: Communicator) -> "tuple[Backend, Device]":
    """The backend on which all ranks agree, and the device of this rank."""
    backend = backends.agreed(comm, together(comm, backend.resolve))
    device = together(comm, backend.open, *local_rank(comm))
    users = backends.users(comm.allgather(device.identity), comm.rank)
    together(comm, device.divide, users or device.sharing)
    return backend, device


def begin(
    solver: Solver,
    case: "Case",
    comm: Communicator,
    checkpoints: Sequence[Path],
    restart: Path | str | None,
) -> tuple[int, Path | None]:
    """Fill the solver from a checkpoint or with the initial fields; returns (step, checkpoint)."""
    if not checkpoints:
        if restart:
            say(comm, "there is no checkpoint yet: starting from step 0")
        together(comm, solver.fill)
        solver.settle()
        return 0, None
    step, path = load(checkpoints, case, solver.slab, solver, comm, lambda text: say(comm, text))
    say(comm, f"continuing from step {step}")
    if step >= case.run.steps:
        last = f"run.steps = {case.run.steps} counts from step 0"
        say(comm, f"nothing is left to do: {last}; raise it")
    return step, path


def warn_of_later(directory: Path, comm: Communicator, first: int) -> None:
    """Warn of checkpoints that an automatic restart would use instead of those of this run."""
    for step, path in existing(directory) if comm.rank == 0 else ():
        if step > first:
            say(comm, f"warning: {path} is later than this start; --restart auto would use it")


def march(context: Context, summary: Summary, signals: Signals, folder: RunDirectory) -> None:
    """Advance to the end of the run, from each step at which something is due to the next one."""
    case, solver, comm, clock = context.case, context.solver, context.comm, context.clock
    step = first = context.first_step
    last = max(first, case.run.steps)
    state_bytes = Checkpoint(every=1).disk_bytes(case, 1)
    stopping = Stopping(comm, clock, time_limit(case.run.walltime, clock), state_bytes, first)
    signals.stepping = True
    clock.follow(solver.device.stream("bulk"))
    with (
        Writers(context) as writers,
        Progress(comm, first, last, number_of_cells(case), clock) as progress,
        Watch(context) as watch,
    ):
        with clock.measure("outputs"):
            watch.verdict(step, last)
            on_root(comm, folder.discard)
            if first == 0:
                writers.write(step, last)
        while step < last:
            due = min(watch.next_due(step, last), writers.next_due(step, last), stopping.next_step)
            with clock.measure("stepping"):
                solver.advance(due - step)
            step = summary.step = due
            with clock.measure("outputs"):
                summary.reason = watch.verdict(step, last)
                last = step if summary.reason else last
                writers.write(step, last)
            progress.update(step)
            if step == stopping.next_step:
                with clock.measure("outputs"):
                    context.samples.settle()
                solver.device.synchronize()
                seconds = writers.checkpoint_seconds, context.background.left
                reason = stopping.agree(step, signals.caught, *seconds)
                if reason and step < last:
                    with clock.measure("outputs"):
                        stop(writers, step, reason)
        with clock.measure("outputs"):
            writers.finish()
        solver.device.synchronize()


def stop(writers: Writers, step: int, reason: str) -> None:
    """Write a checkpoint and raise StoppedEarly."""
    path = writers.checkpoint(step)
    raise StoppedEarly(
        f"stopped at step {step} by {reason}; continue from {path} with --restart auto"
    )
