"""A run of the command line: a simulation with an output folder, signals and time limits."""

from pathlib import Path
from typing import NamedTuple

from mpilbm.case.case import Case
from mpilbm.core.errors import StoppedEarly
from mpilbm.outputs import number_of_cells
from mpilbm.parallel import Communicator
from mpilbm.run.march import March
from mpilbm.run.progress import Progress, say
from mpilbm.run.simulation import Simulation
from mpilbm.run.stopping import EarlyEnd, Signals, time_limit


def run(
    case: Case,
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
    with (
        Signals() as signals,
        Simulation(
            case, comm, directory=directory, restart=restart, overwrite=overwrite, verbose=True
        ) as simulation,
    ):
        signals.stepping = True
        march, context = simulation.march, simulation.context
        clock, last = context.clock, march.final

        def end(step: int, reason: str) -> None:
            with clock.measure("outputs"):
                path = march.writers.checkpoint(step)
            raise StoppedEarly(
                f"stopped at step {step} by {reason}; continue from {path} with --restart auto"
            )

        limit = time_limit(case.run.walltime, clock)
        ending = EarlyEnd(march, lambda: signals.caught, end, limit)
        cells = number_of_cells(case)
        with Progress(comm, context.first_step, last, cells, clock) as progress:
            march.to(last, [Shown(progress, march), ending])
        unfinished = march.watch.unfinished
    for line in context.closing:
        say(comm, line)
    text = f"step {simulation.step}: {simulation.reason or 'done'}{unfinished}"
    say(comm, f"{text}; the files are in {directory}")
    return "done"


class Shown(NamedTuple):
    """A visitor of the march that shows the progress whenever something is due."""

    progress: Progress
    march: March

    def next_due(self, step: int, last: int) -> int:
        """The last step: it needs none of its own."""
        return last

    def visit(self, step: int, last: int) -> None:
        """Show the step, and the last residual of `run.steady`."""
        self.progress.update(step, self.march.watch.residual)
