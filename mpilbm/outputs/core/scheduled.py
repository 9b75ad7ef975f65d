"""Outputs with a time window and a label."""

from typing import Annotated, ClassVar

from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.tables import Label
from mpilbm.core.quantity import STEPS
from mpilbm.outputs import Output
from mpilbm.outputs.core import next_multiple


class Scheduled(Output):
    """Base of outputs that have a time window, and a label in the names of their files.

    They are due at multiples of `every` from `begin` to `end`, and at the last step of the run
    unless `end` is earlier. Without `begin` the state of step 0 is not written.
    """

    free: ClassVar[tuple[str, ...]] = ("begin", "end", "label")

    begin: Annotated[int | None, STEPS] = Field(
        None,
        ge=0,
        description="no earlier step is written; 0: also the initial state; "
        "without it: the first multiple of every",
        examples=[0],
    )
    end: Annotated[int | None, STEPS] = Field(
        None,
        ge=0,
        description="no later step is written; without it: the last step of the run",
        examples=[5000],
    )
    label: Label | None = Field(
        None,
        description="part of the file names; without it: the number of this [[output]], from 0",
        examples=["wake"],
    )

    def label_in(self, case: Case) -> str:
        """The label, or the number of this output among those of the case."""
        numbers = [number for number, other in enumerate(case.outputs) if other is self]
        return self.label or str(numbers[0])

    def names_in(self, case: Case) -> tuple[str, ...]:
        """The names in `files` with its label; names without one are of outputs without a label."""
        names = [name for name in self.files if "<label>" in name or self.label is None]
        return tuple(name.replace("<label>", self.label_in(case)) for name in names)

    @property
    def at_start(self) -> bool:
        """Whether it is written at step 0."""
        return self.begin == 0

    def due(self, step: int, last: int) -> bool:
        """Whether it is written at this step of a run that ends at step `last`."""
        early = step < (self.begin or 0)
        late = self.end is not None and step > self.end
        return super().due(step, last) and not early and not late

    def next_due(self, step: int, last: int) -> int:
        """The first step after `step` at which it is due, or `last` if that is earlier."""
        if self.end is not None and step >= self.end:
            return last
        return next_multiple(max(step, (self.begin or 0) - 1), self.every, last)

    def times(self, first: int, last: int) -> int:
        """How often it is written in a run from step `first` to `last`."""
        final = last if self.end is None else min(self.end, last)
        begin = max(first, (self.begin or 0) - 1)
        count = max(0, final // self.every - begin // self.every)
        count += final == last and bool(last % self.every) and last > first
        return count + (first == 0 and self.at_start)

    def problems(self, case: Case) -> list[str]:
        """An empty window, and a label that another output of this kind has."""
        found = []
        if self.end is not None and self.end < (self.begin or 0):
            found.append(f"end: found {self.end}; allowed: {self.begin} = begin or later")
        same = [other for other in case.outputs if type(other) is type(self) and other is not self]
        if self.several and any(other.label_in(case) == self.label_in(case) for other in same):
            found.append(
                f"label: two outputs '{self.name}' have the label '{self.label or ''}', and so the "
                "same file names; choose another one, or keep one of them"
            )
        return found
