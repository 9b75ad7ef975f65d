"""Samples of the flow: their sums, which checkpoints contain, and the files of their means."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, field_validator

from mpilbm.core.quantity import STEPS
from mpilbm.core.units import counted
from mpilbm.model.findings import SERIOUS, WARNING, Finding
from mpilbm.outputs import Output
from mpilbm.outputs.samples.profiles import Head, SampleFile
from mpilbm.physics.lattices import AXES

if TYPE_CHECKING:
    from mpilbm.case.case import Case


Directions = Annotated[
    tuple[str, ...],
    Field(description="homogeneous directions: x, y, z", examples=[["x", "y"]]),
]
FileSteps = Annotated[
    int | None,
    STEPS,
    Field(
        gt=0,
        description="steps between files; without it: one file at the end",
        examples=[100000],
    ),
]


class Averaged(Output):
    """Sampled at every `every`-th step; files have averages over all samples before them."""

    free: ClassVar[tuple[str, ...]] = ("write",)
    # The keys that a warning of no sample names.
    window: ClassVar[tuple[str, ...]] = ("every",)

    if TYPE_CHECKING:  # fields of the subclasses
        average: tuple[str, ...]
        begin: int | None  # the first step that may be sampled
        write: int | None

    @field_validator("average", check_fields=False)
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not set(value) <= set(AXES) or len(set(value)) < len(value):
            raise ValueError(f"found {list(value)}; allowed: some of x, y, z, each once")
        return value

    @abstractmethod
    def sampled(self, step: int) -> bool:
        """Whether this step is sampled."""

    @abstractmethod
    def samples(self, last: int) -> int:
        """The number of samples in a run of `last` steps."""

    @abstractmethod
    def part_of_names(self, case: "Case") -> str:
        """The part of the names of files and of the group in checkpoints after `name`."""

    @abstractmethod
    def kinds(self, head: Head) -> list[SampleFile]:
        """The kinds of files."""

    def has_table(self, case: "Case") -> bool:
        """Whether the fields of `statistics` are also written as a table."""
        return False

    def axes(self, dimensions: int) -> str:
        """The directions that are not averaged, like "y"; "" if all are."""
        return "".join(axis for axis in AXES[:dimensions] if axis not in self.average)

    def along(self, case: "Case") -> tuple[bool, bool]:
        """Whether the rows of a plane, and x, are averaged; in 2D a plane has only one row."""
        return case.dimensions == 2 or "y" in self.average, "x" in self.average

    def over_planes(self, case: "Case") -> bool:
        """Whether planes are averaged."""
        return AXES[case.dimensions - 1] in self.average

    def file_count(self, times: int) -> int:
        """The number of files after so many samples."""
        return max(1, times * self.every // self.write) if self.write else 1

    def how_often(self, last: int) -> str:
        """The number of samples (not of files), in words."""
        return f"{counted(self.samples(last), 'sample')}, every {self.every}"

    def problems(self, case: "Case") -> list[str]:
        """A direction that does not exist, files between samples."""
        found = super().problems(case)
        if case.dimensions == 2 and "z" in self.average:
            found.append("average: found 'z' in 2D; allowed: x, y")
        if self.write and self.write % self.every:
            found.append(
                f"write: found {self.write}; allowed: a multiple of every = {self.every}, since "
                "files are written at samples"
            )
        return found

    def row_problems(self, case: "Case", what: str) -> list[str]:
        """Rows of a staggered lattice that are not averaged; `what`: what they lack."""
        if not case.lattice.staggered or "x" in self.average:
            return []
        stores = f"{case.lattice.name} stores every other node of a row"
        return [f"average: {stores}, so that only rows have {what}; add 'x'"]

    def warnings(self, case: "Case") -> list[Finding]:
        """No sample, or only one."""
        steps, samples = case.run.steps, self.samples(case.run.steps)
        if samples > 1 or not steps:
            return []
        given = {key: getattr(self, key) for key in self.window}
        keys = ", ".join(f"{key} = {value}" for key, value in given.items())
        found = f"found {keys}, and the run has {counted(steps, 'step')}"
        if samples:
            sentence = f"{found}: one sample is taken; lower begin and every"
            return [Finding(WARNING, "every", sentence)]
        sentence = f"{found}: no sample is taken, no file is written; lower begin and every"
        return [Finding(SERIOUS, self.window[0], sentence)]
