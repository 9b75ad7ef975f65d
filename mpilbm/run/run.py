"""A run of the command line: a simulation with an output folder, signals and time limits."""

from pathlib import Path
from typing import TYPE_CHECKING

from mpilbm.core.errors import StoppedEarly
from mpilbm.outputs import number_of_cells
from mpilbm.parallel.communicator import Communicator
from mpilbm.run.march import March
from mpilbm.run.progress import Progress, printed
from mpilbm.run.simulation import Simulation
from mpilbm.run.stopping import EarlyEnd, Signals, time_limit

if TYPE_CHECKING:
    from mpilbm.case.case import Case


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
    with (
        Signals() as signals,
        Simulation(
            case, comm, directory=directory, restart=restart, overwrite=overwrite, verbose=True
        ) as simulation,
    ):
        signals.stepping = True
        march, context = simulation.march, simulation.context
        last = march.final(context)
        with Progress(
            comm, context.first_step, last, number_of_cells(case), context.clock
        ) as progress:
            march.to(last, [Supervision(march, signals, progress)])
        unfinished = march.watch.unfinished
    end = f"step {simulation.step}: {simulation.reason or 'done'}{unfinished}"
    printed(comm)(f"{end}; the files are in {directory}")
    return "done"


class Supervision(EarlyEnd):
    """Shows the progress, and ends a run with a checkpoint at a signal or a time limit."""

    def __init__(self, march: March, signals: Signals, progress: Progress):
        context = march.context
        super().__init__(march, time_limit(context.case.run.walltime, context.clock))
        self.signals, self.progress = signals, progress

    @property
    def caught(self) -> str:
        """The last signal of this rank."""
        return self.signals.caught

    def visit(self, step: int, last: int) -> None:
        """Show the progress; raise StoppedEarly on all ranks if the run has to end."""
        self.progress.update(step, self.march.watch.residual)
        super().visit(step, last)

    def end(self, step: int, reason: str) -> None:
        """Write a checkpoint, and raise StoppedEarly."""
        with self.march.context.clock.measure("outputs"):
            path = self.march.writers.checkpoint(step)
        raise StoppedEarly(
            f"stopped at step {step} by {reason}; continue from {path} with --restart auto"
        )
