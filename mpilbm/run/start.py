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
from mpilbm.solver.scalar_bounds import of_box
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
    case, comm, directory, restart, overwrite, clock, say = request
    folder = None if directory is None else RunDirectory(directory)
    if restart is not None:
        require_path("Simulation: restart", restart)
    if restart == "auto" and folder is None:
        raise UsageError(
            'Simulation: restart = "auto" takes the newest checkpoint of an output folder; '
            "give directory, or the path of a checkpoint"
        )
    if folder is not None:
        stack.callback(folder.release)
        for note in on_root(comm, folder.claim, case, restart, overwrite):
            say(note)
    where = directory or Path()
    checkpoints = on_root(comm, _checkpoints, case, restart, where)
    findings: list[Finding] = []

    def look(case: Case, parts: list[diagnose.Diagnosis] | None) -> None:
        with say.during("checking the case"):
            findings.extend(on_root(comm, _findings, case, parts, not checkpoints))
        for each in findings:
            say(each.line)

    solver, facts = build_solver(case, comm, look, bool(checkpoints), say)
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
        if restart:
            say("there is no checkpoint yet: starting from step 0")
        with say.during("setting the initial state"):
            together(comm, solver.fill)
            solver.settle()
    bounds = together(comm, solver.own_bounds)
    solver.watch(of_box(solver.case, comm.allgather(bounds)))
    if folder is not None:
        for note in on_root(comm, _set_aside, folder, step, restart == "auto"):
            say(note)
    context = Context(
        case=solver.case,
        slab=solver.slab,
        slabs=tuple(comm.allgather(solver.slab)),
        comm=comm,
        solver=solver,
        directory=where,
        keeps_files=folder is not None,
        first_step=step,
        clock=clock,
        checkpoint=path,
        say=say,
        findings=findings,
    )
    return Started(context, facts, folder)


def _checkpoints(case: Case, restart: Path | str | None, directory: Path) -> list[Path]:
    """The checkpoints to try; without any, CaseError if files of the initial state are missing."""
    found = [] if restart is None else candidates(restart, directory)
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


def _set_aside(folder: RunDirectory, first: int, automatic: bool) -> list[str]:
    """Set files of an earlier run aside; warnings of checkpoints that a restart would prefer.

    `automatic`: `load` has warned of later checkpoints, which are damaged.
    """
    folder.set_aside()
    later = [] if automatic else [path for step, path in existing(folder.path) if step > first]
    text = "warning: {} is later than this start; --restart auto would use it"
    return [text.format(path) for path in later]
