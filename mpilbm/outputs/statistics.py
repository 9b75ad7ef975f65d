"""Means, stresses and turbulent fluxes over time and homogeneous directions, as profiles."""

from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.quantity import STEPS
from mpilbm.core.registry import register
from mpilbm.outputs import Context
from mpilbm.outputs.samples import (
    Averaged,
    Directions,
    FileSteps,
    Head,
    SampleFile,
    image,
    plain,
    result_unit,
    with_pressure,
)
from mpilbm.outputs.samples.writer import DeviceSums, SampleWriter
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.flow_statistics import Places, bytes_needed, numbers
from mpilbm.solver.fields.sources import mean_sizes, sum_sizes
from mpilbm.solver.fields.staging import Staging

if TYPE_CHECKING:
    import h5py


@register("outputs", "statistics")
class RunningStatistics(Averaged):
    """Mean rho and u and Reynolds stresses as `statistics_<axes>_<step>.h5`.

    Sampled at every `every`-th step from `begin` on, and averaged over the samples, the fluid cells
    and the directions of `average`. `<axes>` are the other directions, "all" if there is none; with
    at most one of them the profile is also written as .csv. In lattice units; with [units] columns
    in SI follow in the .csv, and each dataset of the .h5 has the attributes unit and lattice unit.
    With format = "vtkhdf" or "both" ParaView and PyVista open `statistics_<axes>_<step>.vtkhdf`;
    with [units] it is in SI.

        u = <u>, reynolds_stress = <u_a' u_b'> = <u_a u_b> - <u_a><u_b>: xx, xy, (xz,) yy, (yz, zz)

    Of one fluid also its mean `pressure` p = cs2 (<rho> - rho_0), relative to that at rho_0 = 1;
    for each scalar phi its mean, named by its label, `flux_<label>` = <u_a' phi'> and
    `variance_<label>` = <phi'^2>; of two scalars `covariance_<label>_<label>` = <phi' psi'>.
    """

    every: Annotated[int, STEPS] = Field(
        gt=0, description="steps from one sample to the next", examples=[10]
    )
    average: Directions = ()
    begin: Annotated[int, STEPS] = Field(
        0, ge=0, description="first step that is sampled", examples=[50000]
    )
    write: FileSteps = None
    format: Literal["h5", "vtkhdf", "both"] = Field(
        "h5", description="plain HDF5, VTKHDF for ParaView and PyVista, or both"
    )

    free: ClassVar[tuple[str, ...]] = ("average", "begin", "format")
    earlier: ClassVar[dict[str, str]] = {"start": "begin"}
    window: ClassVar[tuple[str, ...]] = ("begin", "every")
    samples_flow: ClassVar[bool] = True
    files: ClassVar[tuple[str, ...]] = (
        "statistics_<axes>_<step>.h5",
        "statistics_<axes>_<step>.vtkhdf",
        "statistics_<axes>_<step>.csv",
    )

    def sampled(self, step: int) -> bool:
        """Whether this step is sampled."""
        return step % self.every == 0 and step >= self.begin

    def samples(self, last: int) -> int:
        """The number of samples in a run of `last` steps."""
        return max(0, last // self.every - (self.begin - 1) // self.every)

    def part_of_names(self, case: Case) -> str:
        """The directions that are not averaged."""
        return self.axes(case.dimensions) or "all"

    def has_table(self, case: Case) -> bool:
        """Whether at most one direction is not averaged."""
        return len(self.axes(case.dimensions)) <= 1

    def problems(self, case: Case) -> list[str]:
        """A direction that does not exist, two outputs of one name, files between samples."""
        found = super().problems(case) + self.row_problems(case, "a mean")
        for name in case.in_samples.repeated:
            found.append(
                f"two results have the name '{name}': that of a scalar and a part of its "
                "statistics; give the scalar another label"
            )
        D = case.dimensions
        others = [each for each in case.outputs if isinstance(each, RunningStatistics)]
        if sum(each.axes(D) == self.axes(D) for each in others) > 1:
            found.append("average: two statistics of the same directions; remove one")
        return found

    def disk_bytes(self, case: Case, times: int) -> int:
        """The profiles."""
        D = case.dimensions
        pairs = zip(AXES, case.domain.size, strict=False)
        places = prod(n for axis, n in pairs if axis in self.axes(D))
        plain = 8 * (numbers(case.in_samples.values)[0] + case.single_fluid) * places
        image = plain + (3 - D) * 8 * (1 + len(case.labels)) * places
        sizes = {"h5": plain, "vtkhdf": image, "both": plain + image}
        return self.file_count(times) * sizes[self.format]

    def device_bytes(self, case: Case, planes: int) -> int:
        """The sums."""
        value = np.dtype(case.precision.compute).itemsize
        return bytes_needed(case.in_samples.values, planes, self.places(case), value)

    def host_bytes(self, case: Case, planes: int) -> int:
        """Moments and their fields: of all planes together, or of lines in the planes of a rank."""
        places = self.places(case)
        if self.over_planes(case):
            planes = 1
        elif places.of_cells:
            return 0  # the device computes them in the memory of Context.copies
        return 2 * 8 * planes * places.count * (1 + sum(numbers(case.in_samples.values)))

    def stages(self, case: Case) -> bool:
        """Whether the device computes means and stresses, which it does for those of cells."""
        return self.places(case).of_cells

    def staged_bytes(self, case: Case) -> int:
        """Sums, for checkpoints, and means and stresses of cells."""
        sampled, places = case.in_samples, self.places(case)
        shift = case.precision.compute if places.of_cells else "f8"
        sums = Staging.bytes_of(sum_sizes(sampled, places.count, shift))
        means = Staging.bytes_of(mean_sizes(sampled, places.count)) if places.of_cells else 0
        return max(sums, means)

    def kept_bytes(self, case: Case) -> int:
        """The sums and shifts of all planes."""
        return 8 * case.shape[0] * self.places(case).count * sum(numbers(case.in_samples.values))

    def places(self, case: Case) -> Places:
        """The places in a plane for which sums are kept."""
        rows, x = self.along(case)
        return Places.of(*case.shape[1:], x, rows)

    def open(self, context: Context) -> SampleWriter:
        """Continues with the sums of the checkpoint, if the run starts from one."""
        return SampleWriter(self, DeviceSums(context, self.along(context.case)), context)

    def kinds(self, head: Head) -> list[SampleFile]:
        """Plain HDF5, VTKHDF, or both."""
        case, components = head.case, head.case.in_samples.components
        components = components | ({"pressure": ()} if case.single_fluid else {})
        places = tuple(reversed(head.sizes.values()))

        def more(file: "h5py.File") -> None:
            file.attrs["reynolds_stress"] = head.pairs
            if head.case.labels:
                file.attrs["scalars"] = list(head.case.labels)

        shapes = {name: (*places, *shape) for name, shape in components.items()}
        h5 = plain(head, shapes, result_unit, more)
        vtkhdf = image(head, components, result_unit)
        files = {"h5": [h5], "vtkhdf": [vtkhdf], "both": [h5, vtkhdf]}[self.format]
        return [with_pressure(case, file) for file in files]
