"""The outputs of a run, one module each, written at the steps at which they are due.

Imports the layers below: the case, the solver and the storage of files, but not the run. To add an
output, add a module with a class that derives from `Output` and is registered.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import numpy as np
from pydantic import Field

from mpilbm.backends import memory
from mpilbm.core.machine import terminal
from mpilbm.core.quantity import STEPS
from mpilbm.core.registry import Parameters
from mpilbm.core.units import counted
from mpilbm.model.findings import NOTE, Finding
from mpilbm.outputs.core.samples import Samples
from mpilbm.outputs.core.totals import Totals
from mpilbm.parallel.agree import together
from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.ranks import local_rank
from mpilbm.parallel.slabs import Slab
from mpilbm.solver.step_times import Clock
from mpilbm.storage.background import Background
from mpilbm.storage.csv_log import Synced
from mpilbm.storage.planes import PlaneFiles

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.solver.fields.sources import SlabCopies
    from mpilbm.solver.solver import Solver


class Writer(Protocol):
    """An open output; called on all ranks at the same steps."""

    def write(self, step: int) -> None:
        """Write the output of this step.

        The device may still compute this step. A small row should not wait for it: enqueue the
        work, and give `Context.samples` a function that completes the row.
        """

    def close(self) -> None:
        """Close its files."""


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
    def totals(self) -> Totals:
        """Sums over the box, and the check of the flow."""
        return Totals(
            self.solver, self.slab, self.comm, self.directory if self.keeps_files else None
        )


class Output(Parameters):
    """Base of all outputs: due at every `every`-th step, at step 0 and at the last step.

    A subclass implements `open(context)`, which returns a `Writer`.
    """

    every: Annotated[int, STEPS] = Field(
        gt=0, description="steps from one writing to the next", examples=[1000]
    )

    # The complete names of its files, with <step>, <label>, <axes> or * for variable parts (see
    # storage/own_files.py): --overwrite replaces these files only.
    files: ClassVar[tuple[str, ...]] = ()
    # Keys that say when or in which form it is written, but not what its files contain: a restart
    # that changes them continues the files. Those of base classes are added.
    free: ClassVar[tuple[str, ...]] = ("every",)
    # Whether it needs the kernels of codegen.statistics.
    samples_flow: ClassVar[bool] = False
    # Whether a case may contain several of this kind: only if their files have different names.
    several: ClassVar[bool] = True
    # Whether `run.steady.of` may name it, see `watched`.
    watchable: ClassVar[bool] = False

    @property
    def at_start(self) -> bool:
        """Whether it is written at step 0."""
        return True

    def due(self, step: int, last: int) -> bool:
        """Whether it is written at this step of a run that ends at step `last`."""
        return (step % self.every == 0 or step == last) and (step > 0 or self.at_start)

    def next_due(self, step: int, last: int) -> int:
        """The first step after `step` at which it is due, or `last` if that is earlier."""
        return next_multiple(step, self.every, last)

    def times(self, first: int, last: int) -> int:
        """How often it is written in a run from step `first` to `last`."""
        count = last // self.every - first // self.every
        count += bool(last % self.every) and last > first
        return count + (first == 0 and self.at_start)

    def how_often(self, last: int) -> str:
        """How often it is written in a run of `last` steps, in words."""
        return f"{counted(self.times(0, last), 'time')}, every {self.every}"

    def bodies(self, case: "Case") -> tuple[int, ...]:
        """Numbers of the bodies whose forces it needs."""
        return ()

    def scalars(self, case: "Case") -> tuple[int, ...]:
        """Numbers of the scalars whose transport it needs, see solver/scalar_transport.py."""
        return ()

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """The roles of optional kernels that it needs; others are compiled when first used."""
        return ()

    @property
    def splits(self) -> bool:
        """Whether it needs the pressure and viscous parts of these forces."""
        return False

    @property
    def by_cell(self) -> bool:
        """Whether it needs these parts for each cell next to a body; with `splits`."""
        return False

    def problems(self, case: "Case") -> list[str]:
        """Errors of this output in this case, a sentence each."""
        return []

    def warnings(self, case: "Case") -> list[Finding]:
        """Findings, see `case_findings.from_registered`."""
        steps = case.run.steps
        if not 0 < steps < self.every:
            return []
        what = "step 0 and the last step are" if self.at_start else "the last step is"
        return [Finding(
            NOTE, "every",
            f"found {self.every}, and the run has {counted(steps, 'step')}: only {what} written",
        )]  # fmt: skip

    def disk_bytes(self, case: "Case", times: int) -> int:
        """Upper bound of the bytes on the disk after it is written `times` times."""
        return 0

    def device_bytes(self, case: "Case", planes: int) -> int:
        """Bytes of its own device memory on a rank with `planes` planes."""
        return 0

    def host_bytes(self, case: "Case", planes: int) -> int:
        """Bytes of its own memory on the host on a rank with `planes` planes."""
        return 0

    def stages(self, case: "Case") -> bool:
        """Whether it needs the memory of `Context.copies`, which all outputs share."""
        return False

    def staged_bytes(self, case: "Case") -> int:
        """Bytes of a plane of its values in this memory, besides fields and populations."""
        return 0

    def kept_bytes(self, case: "Case") -> int:
        """Bytes that it adds to each checkpoint."""
        return 0

    def definition(self, case: "Case") -> dict[str, Any]:
        """What a row of its tables, or a file of its series, contains; see `contents`.

        By default all keys but `free` and those with their default. A key whose value is elsewhere,
        such as in a file, is to be replaced by this value, as lists and numbers.
        """
        free = {key for cls in type(self).__mro__ for key in vars(cls).get("free", ())}
        return self.model_dump(mode="json", exclude=free, exclude_defaults=True)

    def contents(self, case: "Case") -> dict[tuple[str, ...], dict[str, Any]]:
        """The definition of its files by their names, in which <step> and <axes> are variable.

        A restart with another definition sets these files aside, see core/definitions.py.
        """
        return {self.names_in(case): self.definition(case) | _units(case)}

    def names_in(self, case: "Case") -> tuple[str, ...]:
        """The names of its files in this case, in which <step> and <axes> are variable."""
        return self.files

    def lengths(self, case: "Case") -> dict[str, float]:
        """Reference lengths of bodies in cells by label, for summary.json.

        They may depend on input files, which are not read again with the results.
        """
        return {}

    def watched(self, context: Context) -> Callable[[], float]:
        """A function that returns the number of the current step which `run.steady` compares.

        On rank 0; on the other ranks its result is not used. Collective; may wait for the device.
        """
        raise NotImplementedError

    def open(self, context: Context) -> Writer:
        """The writer of a run."""
        raise NotImplementedError


def _units(case: "Case") -> dict[str, Any]:
    """The units of the numbers in its files, as a part of their definition."""
    return {"units": asdict(case.units)} if case.units else {}


def largest_plane(case: "Case") -> int:
    """The largest `Output.staged_bytes` of a case."""
    return max((output.staged_bytes(case) for output in case.outputs), default=0)


def next_multiple(step: int, every: int, last: int) -> int:
    """The first multiple of `every` after `step`, or `last` if that is earlier."""
    return min((step // every + 1) * every, last)


def number_of_cells(case: "Case") -> int:
    """Cells of the box, solid cells included."""
    planes, rows, nx = case.shape
    return planes * rows * nx
