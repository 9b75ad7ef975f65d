"""Duration of a run."""

from typing import Annotated

from pydantic import Field

from mpilbm.case.tables.values import MOST_STEPS, Positive
from mpilbm.core.quantity import SECONDS, STEPS
from mpilbm.core.registry import Parameters
from mpilbm.model.box import Size

VELOCITY = "velocity"  # what `Steady` compares by default


class Steady(Parameters):
    """Stop when the flow changes by less than the tolerance in `every` steps.

    The change is |u - u_previous| / |u| over the fluid cells, or |k - k_previous| / |k| of the
    number k of the output that `of` names, such as the permeability.
    """

    every: Annotated[Size, STEPS] = Field(
        description="steps from one comparison to the next", examples=[1000]
    )
    tolerance: Positive = Field(
        description="largest relative change between two comparisons", examples=[1e-6]
    )
    of: str = Field(
        VELOCITY,
        description="`velocity`, or the name of an output of the case that offers a number",
        examples=["permeability"],
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

    @property
    def compares_velocity(self) -> bool:
        """Whether the velocity of all cells is compared with the previous one."""
        return self.steady is not None and self.steady.of == VELOCITY


class UnreadRun(Run):
    """Replaces a [run] table that has errors while the other tables are checked."""

    steps: int = MOST_STEPS

    @property
    def last(self) -> int:
        """Values that change with time are checked at t = 0 only."""
        return 0
