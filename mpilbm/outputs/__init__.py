"""The outputs of a run, one module each, written at the steps at which they are due.

A class that derives from `Output` says what an output samples and writes, when, with which kernels,
and with how much memory. Its `open` returns the writer of a run. To add an output, add a module
with a class that derives from `Output` and is registered.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from mpilbm.backends import memory
from mpilbm.core.machine import terminal
from mpilbm.core.units import counted
from mpilbm.model.findings import NOTE, Finding
from mpilbm.outputs.core import Budget, KernelNeeds, Schedule, largest_plane
from mpilbm.outputs.core.totals import Totals
from mpilbm.outputs.paired_samples import Floats, PairedSamples, of_forces
from mpilbm.parallel import Communicator, together
from mpilbm.parallel.ranks import local_rank
from mpilbm.parallel.slabs import Slab
from mpilbm.solids.moving_cells import PlacedBodies
from mpilbm.solver.step_times import Clock
from mpilbm.storage.background import Background
from mpilbm.storage.csv_log import Synced
from mpilbm.storage.planes import PlaneFiles

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.solver.fields.sources import SlabCopies
    from mpilbm.solver.solver import Solver


MOST_SAMPLES = 32  # that are not complete yet
LONGEST_DELAY = 1.0  # seconds, after which the next sample completes all earlier ones


class Writer(Protocol):
    """An open output; called on all ranks at the same steps."""

    def write(self, step: int) -> None:
        """Write the output of this step.

        The device may still compute this step. A small row should not wait for it: enqueue the
        work, and give `Context.samples` a function that completes the row.
        """

    def close(self) -> None:
        """Close its files."""


@runtime_checkable
class SamplesAhead(Writer, Protocol):
    """A writer of an output with `ahead`."""

    def prepare(self, step: int) -> None:
        """Sample the step before one at which it may be written; collective.

        Called again at the same step if the state was replaced.
        """


class PlaneCopies(Protocol):
    """Values of planes on their way to a file, see staging.Copies."""

    def blocks(self, planes: int) -> list[tuple[int, int]]:
        """Ranges (begin, end) of planes that are copied at a time."""

    def start(self, begin: int, end: int) -> AbstractContextManager[dict[str, np.ndarray]]:
        """The values of these planes by name; entered once, in any thread."""


class Kept(Protocol):
    """Data that an output adds to each checkpoint: numbers of each plane, and attributes."""

    @property
    def label(self) -> str:
        """The name of its group in the file, which contains a dot."""

    @property
    def values(self) -> int:
        """The number of values of a plane."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the group."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """The numbers of local planes, float64 (end - begin, values)."""

    def copies(self) -> PlaneCopies:
        """Copies of these numbers, named "sums", on their way to files; see Context.copies."""


class Samples:
    """Samples that the device may still be computing, in the order in which they were taken.

    ```
    device   | steps | sample 1 | steps | sample 2 | steps …
    host     | take 1 | take 2 | … take 33 | complete 1 | take 34 | complete 2 …
    ```

    All ranks take and complete the same samples in the same order, so that completing them may be
    collective. The host is ahead of the device by fewer steps than MOST_SAMPLES samples usually
    span, so it rarely waits. LONGEST_DELAY after it did so, and at the next sample, it completes
    all but this one, so that the rows can be followed; rank 0 has the clock.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm, self._completed = comm, monotonic()
        self._open: deque[Callable[[], None]] = deque()

    def add(self, complete: Callable[[], None]) -> None:
        """Call `complete()` later: it waits for the numbers of a sample and writes its row.

        Collective.
        """
        self._open.append(complete)
        late = self._comm.bcast(monotonic() - self._completed > LONGEST_DELAY)
        self.settle(1 if late else MOST_SAMPLES)
        if late:
            self._completed = monotonic()

    def settle(self, most: int = 0) -> None:
        """Complete the oldest samples until at most `most` are left."""
        while len(self._open) > most:
            self._open.popleft()()


@dataclass(kw_only=True)
class Context:
    """Data shared by the writers of a run. All ranks open and call the same writers.

    slab, slabs   the slab of this rank, and those of all ranks
    comm          a communicator of mpi4py, or `ranks.Serial` without MPI
    directory     the output folder
    keeps_files   whether there is one; without it nothing is written unless a call asks for it
    first_step    the step from which the run starts
    last_step     the last step of the run as far as it is known, None before the first step
    checkpoint    the file from which the run continues, None if it starts from step 0
    kept          data that outputs add to each checkpoint
    rows          the open tables and pictures of this rank: a checkpoint has its name after `sync`
                  of each has returned, so that a restart from it finds all that is due before
    files         creates HDF5 files made of planes
    background    writes files while the time steps continue
    copies        copies of the state and of fields, which these files contain
    totals        sums over the box
    say           gets lines for the user on all ranks; rank 0 shows or keeps them
    findings      those of the case and those of the run so far, the same on all ranks
    results       what outputs add to summary.json when they are closed, on rank 0
    closing       lines for the user at the end of the run, on rank 0
    error         the error that ends the run, when its outputs are closed
    """

    case: "Case"
    slab: Slab
    slabs: tuple[Slab, ...]
    comm: Communicator
    solver: "Solver"
    directory: Path
    first_step: int = 0
    clock: Clock = field(default_factory=Clock)
    checkpoint: Path | None = None
    last_step: int | None = None
    kept: list[Kept] = field(default_factory=list)
    rows: list[Synced] = field(default_factory=list)
    keeps_files: bool = True
    say: Callable[[str], None] = terminal.print_line
    findings: list[Finding] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    closing: list[str] = field(default_factory=list)
    error: BaseException | None = None

    def report(self, found: Finding, instead: Finding | None = None) -> None:
        """Show a finding of the run, and keep it in place of an earlier one; on all ranks."""
        self.say(found.line)
        if instead in self.findings:  # a program may have removed it from Simulation.findings
            self.findings.remove(instead)
        self.findings.append(found)

    @cached_property
    def samples(self) -> Samples:
        """Rows whose numbers the device computes behind the steps."""
        return Samples(self.comm)

    @cached_property
    def files(self) -> PlaneFiles:
        """Creates HDF5 files made of planes in the output folder."""
        return PlaneFiles(self.directory, self.comm, self.slabs)

    @cached_property
    def background(self) -> Background:
        """The files that are written while the time steps continue."""
        return Background(self.comm)

    @cached_property
    def copies(self) -> "SlabCopies":
        """Copies of the state and of fields on their way to files; collective.

        They take at most a quarter of the free memory of the device and of the node.
        """
        host_bytes = memory.least()[0] // 4 // local_rank(self.comm)[1]
        ahead = 2 * self.background.threads
        plane_bytes = largest_plane(self.case)
        return together(self.comm, self.solver.copies, ahead, host_bytes, plane_bytes)

    @cached_property
    def forces(self) -> PairedSamples[Floats | None]:
        """The forces on bodies in the steps before and after a time, for all that use them."""
        return of_forces(self.solver, self.comm)

    @property
    def placed_bodies(self) -> PlacedBodies:
        """The moving bodies where they are after the steps so far, the same on all ranks."""
        moving = self.solver.moving
        return PlacedBodies.at(moving.bodies if moving else (), self.solver.steps)

    @cached_property
    def totals(self) -> Totals:
        """Sums over the box, and the check of the flow."""
        return Totals(
            self.solver, self.slab, self.comm, self.directory if self.keeps_files else None
        )


class Watched(NamedTuple):
    """Numbers that `run.steady` compares.

    names     of the numbers, columns of steady.csv
    numbers   returns those of the current step on rank 0; on the other ranks its result is not
              used. Collective; may wait for the device
    prepare   called at the step before, if given; collective
    """

    names: tuple[str, ...]
    numbers: Callable[[], Sequence[float]]
    prepare: Callable[[], None] | None = None


class Output(Schedule, KernelNeeds, Budget):
    """Base of all outputs: due at every `every`-th step, at step 0 and at the last step.

    A subclass implements `open(context)`, which returns a `Writer`.
    """

    # The complete names of its files, with <step>, <label>, <axes> or * for variable parts (see
    # storage/directory.py): --overwrite replaces these files only.
    files: ClassVar[tuple[str, ...]] = ()
    # Keys that say when or in which form it is written, but not what its files contain: a restart
    # that changes them continues the files. Those of base classes are added.
    free: ClassVar[tuple[str, ...]] = ("every",)
    # Whether a case may contain several of this kind: only if their files have different names.
    several: ClassVar[bool] = True
    # Whether `run.steady.of` may name it, see `watched`.
    watchable: ClassVar[bool] = False

    def problems(self, case: "Case") -> list[str]:
        """Errors of this output in this case, a sentence each."""
        return []

    def warnings(self, case: "Case") -> list[Finding]:
        """Findings, see `case_findings.from_registered`."""
        steps = case.run.steps
        if not 0 < steps < self.every:
            return []
        what = "step 0 and the last step are" if self.at_start else "the last step is"
        has = f"found {self.every}, and the run has {counted(steps, 'step')}"
        return [Finding(NOTE, "every", f"{has}: only {what} written")]

    def names_in(self, case: "Case") -> tuple[str, ...]:
        """The names of its files in this case, in which <step> and <axes> are variable."""
        return self.files

    def definition(self, case: "Case") -> dict[str, Any]:
        """What a row of its tables, or a file of its series, contains; see `contents`.

        By default all keys but `free` and those with their default. A key whose value is elsewhere,
        such as in a file, is to be replaced by this value, as lists and numbers.
        """
        free = {key for cls in type(self).__mro__ for key in vars(cls).get("free", ())}
        return self.model_dump(mode="json", exclude=free, exclude_defaults=True)

    def contents(self, case: "Case") -> dict[tuple[str, ...], dict[str, Any]]:
        """The definition of its files by their names, in which <step> and <axes> are variable.

        A restart with another definition sets these files aside, see core/writers.py.
        """
        units = {"units": asdict(case.units)} if case.units else {}
        return {self.names_in(case): self.definition(case) | units}

    def lengths(self, case: "Case") -> dict[str, float]:
        """Reference lengths of bodies in cells by label, for summary.json.

        They may depend on input files, which are not read again with the results.
        """
        return {}

    def watched(self, context: Context) -> Watched:
        """The numbers that `run.steady` compares."""
        raise NotImplementedError

    def open(self, context: Context) -> Writer:
        """The writer of a run."""
        raise NotImplementedError


def number_of_cells(case: "Case") -> int:
    """Cells of the box, solid cells included."""
    planes, rows, nx = case.shape
    return planes * rows * nx
