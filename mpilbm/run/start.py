"""The start of a simulation: output folder, findings, solver, and the state of its first step."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from mpilbm.case.case import Case
from mpilbm.case.given_objects import require_path
from mpilbm.case.velocity_bounds import initial_ranges
from mpilbm.core.errors import UsageError
from mpilbm.core.units import counted
from mpilbm.model.findings import Finding, in_order
from mpilbm.outputs import Context
from mpilbm.outputs.core.restart import candidates, load
from mpilbm.parallel import Communicator, on_root, together
from mpilbm.run.preflight.inspection import inspect
from mpilbm.run.progress import Say
from mpilbm.run.setup import build_solver
from mpilbm.solids import diagnose, geometry_findings
from mpilbm.solver.step_times import Clock
from mpilbm.storage.directory import RunDirectory, existing
from mpilbm.storage.file_system import spread


class Request(NamedTuple):
    """The arguments of a simulation, see Simulation; `say` gets lines for the user."""

    case: Case
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
    case, comm, directory, say = request.case, request.comm, request.directory, request.say
    folder = None if directory is None else RunDirectory(directory)
    if folder is not None:
        stack.callback(folder.release)
    checkpoints = on_root(comm, _claim, folder, request)
    findings: list[Finding] = []

    def look(case: Case, parts: list[diagnose.Diagnosis] | None) -> None:
        with say.during("checking the case"):
            findings.extend(on_root(comm, _findings, case, parts, not checkpoints))
        for each in findings:
            say(each.line)

    solver, facts = build_solver(case, comm, say, look, bool(checkpoints))
    stack.enter_context(solver.exchanger)
    say(_set_up(facts))
    if directory is not None and (striping := on_root(comm, spread, directory, comm.size)):
        say(striping)
    step, path = 0, None
    if checkpoints:
        with say.during("reading the checkpoint"):
            step, path = load(checkpoints, solver.case, solver.slab, solver, comm, say)
        say(f"continuing from step {step}")
        if step >= case.run.steps:
            last = f"run.steps = {case.run.steps} counts from step 0"
            say(f"nothing is left to do: {last}; raise it")
    else:
        if request.restart:
            say("there is no checkpoint yet: starting from step 0")
        with say.during("setting the initial state"):
            together(comm, solver.fill)
            solver.settle()
    solver.watch(comm.allgather(together(comm, solver.own_bounds)))
    on_root(comm, _set_aside, folder, step, request)
    context = Context(
        case=solver.case,
        slab=solver.slab,
        slabs=tuple(comm.allgather(solver.slab)),
        comm=comm,
        solver=solver,
        directory=directory or Path(),
        keeps_files=folder is not None,
        first_step=step,
        clock=request.clock,
        checkpoint=path,
        say=say,
        findings=findings,
    )
    return Started(context, facts, folder)


def _claim(folder: RunDirectory | None, request: Request) -> list[Path]:
    """Lock the folder; the checkpoints to try.

    CaseError if there are none, and files of the initial state are missing; UsageError for a
    `restart` that names no file.
    """
    case, restart = request.case, request.restart
    if restart is not None:
        require_path("Simulation: restart", restart)
    if restart == "auto" and folder is None:
        raise UsageError(
            'Simulation: restart = "auto" takes the newest checkpoint of an output folder; '
            "give directory, or the path of a checkpoint"
        )
    if folder is not None:
        for note in folder.claim(case, restart, request.overwrite):
            request.say(note)
    found = [] if restart is None else candidates(restart, request.directory or Path())
    for fluid in case.fluids if not found else ():
        fluid.initial.require()
    return found


def _set_up(facts: dict[str, Any]) -> str:
    """The line for the user on ranks, device, halo, layout and expected speed."""
    halo = "halo {name}: {why}".format(**facts["halo"])
    layout = "; layout {layout}: {layout_why}".format(**facts) if facts["layout_why"] else ""
    expected = facts["expected_glups"]
    speed = f"; about {expected:.3g} GLUPS are expected" if expected else ""
    return f"{counted(facts['ranks'], 'rank')} on {facts['device']}; {halo}{layout}{speed}"


def _findings(case: Case, parts: list[diagnose.Diagnosis] | None, initial: bool) -> list[Finding]:
    """The findings of the case and of all slabs, the most serious first.

    `initial`: whether to inspect the initial fields, which a restart does not use.
    """
    ranges = initial_ranges(case) if initial else ()
    idle = geometry_findings.idle([part.fluid for part in parts or ()])
    return in_order(inspect(case, parts or [], ranges) + idle)


def _set_aside(folder: RunDirectory | None, first: int, request: Request) -> None:
    """Set files of an earlier run aside; warn of checkpoints that a restart would prefer.

    Of those that are later than the one of `restart = "auto"`, `load` has warned: they are damaged.
    """
    if folder is None:
        return
    folder.set_aside()
    for step, path in existing(folder.path) if request.restart != "auto" else ():
        if step > first:
            text = "is later than this start; --restart auto would use it"
            request.say(f"warning: {path} {text}")
