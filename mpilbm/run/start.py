"""The start of a simulation: output folder, findings, solver, and the state of its first step."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mpilbm.case.given_objects import require_path
from mpilbm.core.errors import UsageError
from mpilbm.core.units import counted
from mpilbm.model.findings import Finding, in_order
from mpilbm.outputs import Context
from mpilbm.outputs.core.restart import candidates, load
from mpilbm.parallel.agree import on_root, together
from mpilbm.parallel.communicator import Communicator
from mpilbm.run.preflight.inspection import initial_ranges, inspect
from mpilbm.run.progress import Say
from mpilbm.run.setup import build_solver
from mpilbm.solids import diagnose, geometry_findings
from mpilbm.solver.scalars.bounds import of_box
from mpilbm.storage.checkpoint_names import existing
from mpilbm.storage.clock import Clock
from mpilbm.storage.directory import RunDirectory
from mpilbm.storage.striping import spread

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.solver.solver import Solver


class Request(NamedTuple):
    """The arguments of a simulation, see Simulation; `say` gets lines for the user."""

    case: "Case"
    comm: Communicator
    directory: Path | None
    restart: Path | str | None
    overwrite: bool
    clock: Clock
    say: Say


class Started(NamedTuple):
    """A simulation before its first step: the folder is None if it writes no outputs.

    `facts` describe device and kernels for the summary.
    """

    context: Context
    facts: dict[str, Any]
    folder: RunDirectory | None


def start(request: Request, stack: ExitStack) -> Started:
    """Set up a simulation; `stack` releases folder and messages. Collective.

    Raises CaseError, CommandError or UsageError before anything is written.
    """
    case, comm, directory, restart, overwrite, clock, say = request
    if restart is not None:
        require_path("Simulation: restart", restart)
    folder = None
    if directory is not None:
        folder = stack.enter_context(claimed(directory, case, comm, restart, overwrite, say))
    checkpoints = _checkpoints(comm, restart, directory)
    for fluid in case.fluids if not checkpoints else ():
        on_root(comm, fluid.initial.require)
    findings: list[Finding] = []

    def look(case: "Case", parts: list[diagnose.Diagnosis] | None, comm: Communicator) -> None:
        findings.extend(report_findings(case, parts, comm, say, initial=not checkpoints))

    solver, facts = build_solver(case, comm, look, bool(checkpoints), say)
    stack.enter_context(solver.exchanger)
    _say_where(facts, comm, directory, say)
    first, checkpoint = begin(solver, comm, checkpoints, restart, say)
    solver.watch(of_box(solver.case, comm.allgather(together(comm, solver.own_bounds))))
    if folder is not None:
        on_root(comm, folder.set_aside)
        if restart != "auto":  # `load` has warned of later checkpoints, which are damaged
            warn_of_later(folder.path, comm, first, say)
    context = Context(
        case=solver.case,
        slab=solver.slab,
        slabs=tuple(comm.allgather(solver.slab)),
        comm=comm,
        solver=solver,
        directory=directory or Path(),
        keeps_files=directory is not None,
        first_step=first,
        clock=clock,
        checkpoint=checkpoint,
        say=say,
        findings=findings,
    )
    return Started(context, facts, folder)


@contextmanager
def claimed(
    directory: Path,
    case: "Case",
    comm: Communicator,
    restart: Path | str | None,
    overwrite: bool,
    say: Say,
) -> Iterator[RunDirectory]:
    """Lock the output folder while the body runs."""
    folder = RunDirectory(directory)
    try:
        for note in on_root(comm, folder.claim, case, restart, overwrite):
            say(note)
        yield folder
    finally:
        folder.release()


def _checkpoints(
    comm: Communicator, restart: Path | str | None, directory: Path | None
) -> list[Path]:
    """The checkpoints from which the simulation may continue, newest first."""
    if restart is None:
        return []
    if restart == "auto" and directory is None:
        raise UsageError(
            'Simulation: restart = "auto" takes the newest checkpoint of an output folder; '
            "give directory, or the path of a checkpoint"
        )
    return on_root(comm, candidates, restart, directory or Path())


def _say_where(facts: dict[str, Any], comm: Communicator, directory: Path | None, say: Say) -> None:
    """Report ranks, device, transport and layout; spread large files over the disks."""
    halo = "halo {name}: {why}".format(**facts["halo"])
    layout = "; layout {layout}: {layout_why}".format(**facts) if facts["layout_why"] else ""
    say(f"{counted(comm.size, 'rank')} on {facts['device']}; {halo}{layout}")
    if directory is not None and (striping := on_root(comm, spread, directory, comm.size)):
        say(striping)


def report_findings(
    case: "Case",
    parts: list[diagnose.Diagnosis] | None,
    comm: Communicator,
    say: Say,
    initial: bool,
) -> list[Finding]:
    """Report the findings of the case and of all slabs, and return them on all ranks; collective.

    `initial`: whether to inspect the initial fields, which a restart does not use.
    """

    def found() -> list[Finding]:
        ranges = initial_ranges(case) if initial else ()
        idle = geometry_findings.idle([part.fluid for part in parts or ()])
        return in_order(inspect(case, parts or [], ranges) + idle)

    findings = on_root(comm, found)
    for each in findings:
        say(each.line)
    return findings


def begin(
    solver: "Solver",
    comm: Communicator,
    checkpoints: Sequence[Path],
    restart: Path | str | None,
    say: Say,
) -> tuple[int, Path | None]:
    """Fill the solver from a checkpoint or with the initial fields; returns (step, checkpoint)."""
    case = solver.case
    if not checkpoints:
        if restart:
            say("there is no checkpoint yet: starting from step 0")
        together(comm, solver.fill)
        solver.settle()
        return 0, None
    step, path = load(checkpoints, case, solver.slab, solver, comm, say)
    say(f"continuing from step {step}")
    if step >= case.run.steps:
        last = f"run.steps = {case.run.steps} counts from step 0"
        say(f"nothing is left to do: {last}; raise it")
    return step, path


def warn_of_later(directory: Path, comm: Communicator, first: int, say: Say) -> None:
    """Warn of checkpoints that an automatic restart would use instead of those of this run."""
    for step, path in existing(directory) if comm.rank == 0 else ():
        if step > first:
            say(f"warning: {path} is later than this start; --restart auto would use it")
