"""What a run writes: each output is one file here, called when its step is due."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from mpilbm.outputs.totals import Totals
from mpilbm.registry import Parameters
from mpilbm.storage.background import Background
from mpilbm.storage.clock import Clock
from mpilbm.units import counted
from mpilbm.verdicts.findings import NOTE, Finding


@dataclass
class Context:
    """What a writer may use. `slabs` are those of all ranks, `slab` the own one.

    `comm` is a communicator of mpi4py or one rank's stand-in; writers are opened and called on
    all ranks alike. `last_step` is the last one as far as is known, `checkpoint` what the run goes
    on from, `kept` what outputs want in checkpoints: objects with a label that holds a dot,
    `values` (numbers a plane), `attributes` and read(begin, end), (end - begin, values) of local
    planes. `rows` are the open CSV files of this rank, which a checkpoint finds on the disk as far
    as its step. `background` has files written while the steps go on.
    """

    case: Any
    slab: Any
    slabs: tuple
    comm: Any
    solver: Any
    directory: Path
    first_step: int = 0
    clock: Clock = field(default_factory=Clock)
    checkpoint: Path | None = None
    last_step: int | None = None
    kept: list = field(default_factory=list)
    rows: list = field(default_factory=list)

    def __post_init__(self):
        self.totals = Totals(self.solver, self.slab, self.comm, self.directory)
        self.background = Background(self.comm)


class Output(Parameters):
    """Base of all outputs: due at every `every`-th step, at step 0 and at the last one.

    A subclass adds `open(context)`, which returns a writer with `write(step)` and `close()`.
    """

    every: int = Field(gt=0, description="steps from one writing to the next", examples=[1000])

    at_start: ClassVar[bool] = True
    # The whole names of its files, with <step>, <label>, <axes> or * for what varies (see
    # own_files.py): --overwrite replaces these and nothing else.
    files: ClassVar[tuple[str, ...]] = ()
    # Whether a case may have more than one: not where they would write files of the same names.
    several: ClassVar[bool] = True

    def times(self, first: int, last: int) -> int:
        """How often it is written in a run from step `first` to `last`."""
        count = last // self.every - first // self.every
        count += bool(last % self.every) and last > first
        return count + (first == 0 and self.at_start)

    def how_often(self, last: int) -> str:
        """The same of a run of `last` steps, in words."""
        return f"{counted(self.times(0, last), 'time')}, every {self.every}"

    def bodies(self, case) -> tuple[int, ...]:
        """Numbers of the bodies whose forces it asks for."""
        return ()

    @property
    def splits(self) -> bool:
        """Whether it asks for their pressure and viscous parts."""
        return False

    def problems(self, case) -> list[str]:
        """What is wrong with this output in this case, each as a sentence."""
        return []

    def warnings(self, case) -> list:
        """Findings, see `case_findings.from_registered`."""
        steps = case.run.steps
        if not 0 < steps < self.every:
            return []
        what = "step 0 and the last step are" if self.at_start else "the last step is"
        return [Finding(
            NOTE, "every",
            f"found {self.every}, and the run has {counted(steps, 'step')}: only {what} written",
        )]  # fmt: skip

    def disk_bytes(self, case, times: int) -> int:
        """Bytes on disk, at their most, when it is written so many times."""
        return 0

    def device_bytes(self, case, planes: int) -> int:
        """Bytes that it takes of the memory of a rank with so many planes."""
        return 0

    def kept_bytes(self, case) -> int:
        """Bytes that it adds to each checkpoint."""
        return 0

    def open(self, context: Context):
        """The writer of a run."""
        raise NotImplementedError


def next_due(step: int, every: int, last: int) -> int:
    """The first step after `step` at which something due every so many steps is due."""
    return min((step // every + 1) * every, last)


def number_of_cells(case) -> int:
    """Cells of the box, solid ones included."""
    planes, rows, nx = case.shape
    return planes * rows * nx
