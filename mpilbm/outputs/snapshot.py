"""Fields of all cells at one step: VTKHDF files that ParaView and PyVista open directly."""

from typing import Annotated, ClassVar

from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.tables import MOST_STEPS
from mpilbm.core.quantity import LENGTH, STEPS
from mpilbm.core.registry import register
from mpilbm.model.findings import Finding
from mpilbm.outputs.images.output import Strided, box_problems
from mpilbm.outputs.images.part import Part, of_box

Point = tuple[float, ...]


@register("outputs", "snapshot")
class Snapshot(Strided):
    """Fields in cells as `snapshot_<step>.vtkhdf`, for ParaView, PyVista and `mpilbm plot`.

    rho, u, vorticity = curl u (a scalar in 2D), q_criterion = -(du_a/dx_b) (du_b/dx_a) / 2, and of
    one fluid pressure = cs2 (rho - rho_0), the static pressure relative to that at rho_0 = 1.
    Differences are central, and one-sided next to a wall or a solid; all three are 0 in solids.
    If the case has bodies, a field `solid` is added, which is 1 in their cells. The file contains
    all nodes of the box, or those of `box`: the nodes that a staggered lattice (D3Q13) does not
    store are means of their neighbours, see outputs/images/__init__.py. With `stride` a block
    without fluid cells has rho = 1 and u = 0 and is solid.

    With moving bodies `solid` is 1 in cells whose centre is in one of them. The field body_share is
    the share of a cell that a moving body fills, and body the number of this [[body]] in the case,
    from 1; both are 0 elsewhere. With `stride` cells of moving bodies are part of the means, body
    is the largest number in a block, and a block is solid if all of its cells are in bodies.

    `snapshot.vtkhdf.series` lists the files with their times; ParaView opens it as one time series.
    With a label the names begin with `snapshot_<label>`.

    With [units] lengths, time and fields are in SI. With `background` the time steps continue
    while the file is written. This requires one rank, one node, or a parallel file system, where
    each rank writes its own planes. The copies of the fields take at most a quarter of the free
    memory of the device and of the node.
    """

    every: Annotated[int, STEPS] = Field(
        MOST_STEPS,
        gt=0,
        description="steps from one writing to the next; without it: the last step only",
        examples=[1000],
    )
    last_only: bool = Field(False, description="write the last step only")
    box: Annotated[tuple[Point, Point] | None, LENGTH] = Field(
        None,
        description="two opposite corners of the part of the box that is written; without it: all",
        examples=[[[0, 0], [32, 16]]],
    )

    files: ClassVar[tuple[str, ...]] = (
        "snapshot_<step>.vtkhdf",
        "snapshot_<label>_<step>.vtkhdf",
        "snapshot.vtkhdf.series",
        "snapshot_<label>.vtkhdf.series",
    )

    free: ClassVar[tuple[str, ...]] = ("last_only",)

    def due(self, step: int, last: int) -> bool:
        """Whether it is written at this step of a run that ends at step `last`."""
        return super().due(step, last) and (step == last or not self.last_only)

    def times(self, first: int, last: int) -> int:
        """How often it is written in a run from step `first` to `last`."""
        return int(last > first) if self.last_only else super().times(first, last)

    @property
    def _last(self) -> bool:
        """Whether only the last step is written."""
        return self.last_only or "every" not in self.model_fields_set

    def how_often(self, last: int) -> str:
        """How often it is written in a run of `last` steps, in words."""
        return "the last step" if self._last else super().how_often(last)

    def warnings(self, case: Case) -> list[Finding]:
        """Findings; without `every` it is no surprise that one step is written."""
        found = super().warnings(case)
        return [each for each in found if not (self._last and each.where == "every")]

    def label_in(self, case: Case) -> str:
        """The label, or ""."""
        return self.label or ""

    def stem(self, case: Case) -> str:
        """snapshot or, with a label, snapshot_<label>."""
        return f"{self.name}_{self.label}" if self.label else self.name

    def _corners(self, case: Case) -> tuple[Point, Point]:
        size = tuple(map(float, case.domain.size))
        return self.box or ((0.0,) * len(size), size)

    def part(self, case: Case) -> Part:
        """The whole box, or `box`."""
        return of_box(case, *self._corners(case), self.strides(case))

    def part_problems(self, case: Case) -> list[str]:
        """A `box` that is not in the box of the case, and a stride that does not fit."""
        found = self.stride_problems(case)
        return found or box_problems(case, *self._corners(case), self.strides(case), "box: ")
