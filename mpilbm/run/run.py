"""A run of the command line: a simulation with an output folder, signals and time limits."""

from pathlib import Path
from typing import TYPE_CHECKING

from mpilbm.errors import StoppedEarly
from mpilbm.outputs import number_of_cells
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.parallel.communicator import Communicator
from mpilbm.run.march import March
from mpilbm.run.progress import Progress, printed
from mpilbm.run.simulation import Simulation
from mpilbm.run.stopping import Signals, Stopping, time_limit

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


class Supervision:
    """Shows the progress, and ends a run with a checkpoint at a signal or a time limit."""

    def __init__(self, march: March, signals: Signals, progress: Progress):
        context = march.context
        self.march, self.signals, self.progress = march, signals, progress
        self.stopping = Stopping(
            context.comm,
            context.clock,
            time_limit(context.case.run.walltime, context.clock),
            Checkpoint(every=1).disk_bytes(context.case, 1),
            context.first_step,
        )

    def next_due(self, step: int, last: int) -> int:
        """The next step at which the ranks agree whether to end."""
        return min(self.stopping.next_step, last)

    def visit(self, step: int, last: int) -> None:
        """Raise StoppedEarly on all ranks after writing a checkpoint, if the run has to end."""
        self.progress.update(step, self.march.watch.residual)
        if step != self.stopping.next_step:
            return
        context, writers = self.march.context, self.march.writers
        with context.clock.measure("outputs"):
            context.samples.settle()
        context.solver.device.synchronize()
        seconds = writers.checkpoint_seconds, context.background.left
        reason = self.stopping.agree(step, self.signals.caught, *seconds)
        if reason and step < last:
            with context.clock.measure("outputs"):
                path = writers.checkpoint(step)
            raise StoppedEarly(
                f"stopped at step {step} by {reason}; continue from {path} with --restart auto"
            )
