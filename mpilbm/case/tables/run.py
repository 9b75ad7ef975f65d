"""Duration of a run."""

from typing import Annotated

from pydantic import Field

from mpilbm.case.tables.values import MOST_STEPS, Positive, Size
from mpilbm.quantity import SECONDS, STEPS
from mpilbm.registry import Parameters


class Steady(Parameters):
    """Stop when |u - u_previous| / |u|, computed every `every` steps, is below the tolerance."""

    every: Annotated[Size, STEPS] = Field(
        description="steps from one comparison to the next", examples=[1000]
    )
    tolerance: Positive = Field(
        description="largest relative change of u between two comparisons", examples=[1e-6]
    )


class Run(Parameters):
    """The last step of the run, and two conditions that end it earlier."""

    steps: Annotated[int, STEPS] = Field(
        ge=0,
        lt=MOST_STEPS + 1,
        description="last step of the run, counted from the first start",
        examples=[10000],
    )
    steady: Steady | None = Field(
        None,
        description="stop when the flow is steady",
        examples=[{"every": 1000, "tolerance": 1e-6}],
    )
    walltime: Annotated[Positive | None, SECONDS] = Field(
        None,
        description="seconds after which the run writes a checkpoint and stops",
        examples=[3600],
    )

    @property
    def last(self) -> int:
        """The step up to which values that change with time are checked."""
        return self.steps


class UnreadRun(Run):
    """Replaces a [run] table that has errors while the other tables are checked."""

    steps: int = MOST_STEPS

    @property
    def last(self) -> int:
        """Values that change with time are checked at t = 0 only."""
        return 0
