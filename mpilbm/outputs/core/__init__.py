"""What all outputs of a run share: when they are written, sums, samples, restarts, the summary.

This module says what a case asks of an output besides writing: its schedule, kernels and memory.
`Output` derives from these classes; a subclass overrides what differs from their defaults.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.quantity import STEPS
from mpilbm.core.registry import Parameters
from mpilbm.core.units import counted
from mpilbm.physics.boundaries import in_cells


def next_multiple(step: int, every: int, last: int) -> int:
    """The first multiple of `every` after `step`, or `last` if that is earlier."""
    return min((step // every + 1) * every, last)


class Schedule(Parameters):
    """When an output is written: at every `every`-th step, at step 0 and at the last step."""

    every: Annotated[int, STEPS] = Field(
        gt=0, description="steps from one writing to the next", examples=[1000]
    )

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

    def ahead(self, case: Case) -> bool:
        """Whether its writer also samples the step before: it is a SamplesAhead."""
        return False

    def times(self, first: int, last: int) -> int:
        """How often it is written in a run from step `first` to `last`."""
        count = last // self.every - first // self.every
        count += bool(last % self.every) and last > first
        return count + (first == 0 and self.at_start)

    def how_often(self, last: int) -> str:
        """How often it is written in a run of `last` steps, in words."""
        return f"{counted(self.times(0, last), 'time')}, every {self.every}"


class KernelNeeds(Parameters):
    """What an output needs from kernels and geometry, by default nothing; see model/box.py."""

    # Whether it needs the kernels of codegen.statistics.
    samples_flow: ClassVar[bool] = False

    def bodies(self, case: Case) -> tuple[int, ...]:
        """Numbers of the bodies whose forces it needs."""
        return ()

    @property
    def splits(self) -> bool:
        """Whether it needs the pressure and viscous parts of these forces."""
        return False

    @property
    def by_cell(self) -> bool:
        """Whether it needs these parts for each cell next to a body; with `splits`."""
        return False

    def scalars(self, case: Case) -> tuple[int, ...]:
        """Numbers of the scalars whose transport it needs, see solver/scalar_transport.py."""
        return ()

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The roles of optional kernels that it needs; others are compiled when first used."""
        return ()


class Budget(Parameters):
    """The bytes that an output needs on the disk, the device and the host; by default none."""

    def disk_bytes(self, case: Case, times: int) -> int:
        """Upper bound of the bytes on the disk after it is written `times` times."""
        return 0

    def kept_bytes(self, case: Case) -> int:
        """Bytes that it adds to each checkpoint."""
        return 0

    def device_bytes(self, case: Case, planes: int) -> int:
        """Bytes of its own device memory on a rank with `planes` planes."""
        return 0

    def host_bytes(self, case: Case, planes: int) -> int:
        """Bytes of its own memory on the host on a rank with `planes` planes."""
        return 0

    def stages(self, case: Case) -> bool:
        """Whether it needs the memory of `Context.copies`, which all outputs share."""
        return False

    def staged_bytes(self, case: Case) -> int:
        """Bytes of a plane of its values in this memory, besides fields and populations."""
        return 0


def largest_plane(case: Case) -> int:
    """The largest `staged_bytes` of the outputs of a case."""
    return max((output.staged_bytes(case) for output in case.outputs), default=0)


def chosen_bodies(case: Case, labels: tuple[str, ...]) -> tuple[int, ...]:
    """Numbers of the bodies with these labels; without labels of all."""
    return tuple(k for k, body in enumerate(case.bodies) if not labels or body.label in labels)


def parts_problems(case: Case, bodies: tuple[int, ...], key: str) -> list[str]:
    """Bodies that act in cells, of whose forces only the sum is known; `key`: what needs parts."""
    labels = [case.bodies[k].label for k in bodies if k in in_cells(case)]
    return [
        f"{key}: body '{label}' acts in cells, where pressure and stress on its surface are not "
        "known; allowed: bodies with links, such as with the boundary bounce_back"
        for label in labels
    ]


def body_problems(case: Case, labels: tuple[str, ...]) -> list[str]:
    """Unknown labels in the key `body` of an output, and a case without bodies."""
    known = [body.label for body in case.bodies]
    allowed = ", ".join(known) or "none, the case has no [[body]]"
    found = [f"body: found '{each}'; allowed: {allowed}" for each in labels if each not in known]
    return found if known else [*found, "there is no [[body]]; add one or remove this output"]
