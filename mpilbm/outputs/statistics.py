"""Means, stresses and turbulent fluxes over time and homogeneous directions, as profiles."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from mpilbm.core.quantity import STEPS
from mpilbm.core.registry import register
from mpilbm.core.units import counted
from mpilbm.model.findings import SERIOUS, WARNING, Finding
from mpilbm.outputs import Context, Output
from mpilbm.outputs.averages.device_sums import DeviceSums
from mpilbm.outputs.averages.forms import FORMS
from mpilbm.outputs.averages.profile_files import Head, write_table
from mpilbm.outputs.averages.sample_writer import Plan, SampleFile, SampleWriter
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.flow_statistics import Places, bytes_needed, numbers
from mpilbm.solver.fields.sources import mean_sizes, sum_sizes
from mpilbm.solver.fields.staging import Staging

if TYPE_CHECKING:
    from mpilbm.case.case import Case


@register("outputs", "statistics")
class RunningStatistics(Output):
    """Mean rho and u and Reynolds stresses as `statistics_<axes>_<step>.h5`.

    Sampled at every `every`-th step from `begin` on, and averaged over the samples, the fluid cells
    and the directions of `average`. `<axes>` are the other directions, "all" if there is none; with
    at most one of them the profile is also written as .csv. In lattice units; with [units] columns
    in SI follow in the .csv, and each dataset of the .h5 has the attributes unit and lattice unit.
    With format = "vtkhdf" or "both" ParaView and PyVista open `statistics_<axes>_<step>.vtkhdf`;
    with [units] it is in SI.

        u = <u>, reynolds_stress = <u_a' u_b'> = <u_a u_b> - <u_a><u_b>: xx, xy, (xz,) yy, (yz, zz)

    For each scalar phi also its mean, named by its label, `flux_<label>` = <u_a' phi'> and
    `variance_<label>` = <phi'^2>; of two scalars `covariance_<label>_<label>` = <phi' psi'>.
    """

    every: Annotated[int, STEPS] = Field(
        gt=0, description="steps from one sample to the next", examples=[10]
    )
    average: tuple[str, ...] = Field(
        (), description="homogeneous directions: x, y, z", examples=[["x", "y"]]
    )
    begin: Annotated[int, STEPS] = Field(
        0, ge=0, description="first step that is sampled", examples=[50000]
    )
    write: Annotated[int | None, STEPS] = Field(
        None,
        gt=0,
        description="steps between files; without it: one file at the end",
        examples=[100000],
    )
    format: Literal["h5", "vtkhdf", "both"] = Field(
        "h5", description="plain HDF5, VTKHDF for ParaView and PyVista, or both"
    )

    free: ClassVar[tuple[str, ...]] = ("average", "begin", "write", "format")
    earlier: ClassVar[dict[str, str]] = {"start": "begin"}
    samples_flow: ClassVar[bool] = True
    files: ClassVar[tuple[str, ...]] = (
        "statistics_<axes>_<step>.h5",
        "statistics_<axes>_<step>.vtkhdf",
        "statistics_<axes>_<step>.csv",
    )

    @field_validator("average")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not set(value) <= set(AXES) or len(set(value)) < len(value):
            raise ValueError(f"found {list(value)}; allowed: some of x, y, z, each once")
        return value

    def axes(self, dimensions: int) -> str:
        """The directions that are not averaged, like "y"; "" if all are."""
        return "".join(axis for axis in AXES[:dimensions] if axis not in self.average)

    def problems(self, case: "Case") -> list[str]:
        """A direction that does not exist, two outputs of one name, files between samples."""
        found = []
        if case.dimensions == 2 and "z" in self.average:
            found.append("average: found 'z' in 2D; allowed: x, y")
        if case.lattice.staggered and "x" not in self.average:
            found.append(
                f"average: {case.lattice.name} stores every other node of a row, so that only "
                "rows have a mean; add 'x'"
            )
        if self.write and self.write % self.every:
            found.append(
                f"write: found {self.write}; allowed: a multiple of every = {self.every}, since "
                "files are written at samples"
            )
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

    def samples(self, last: int) -> int:
        """The number of samples in a run of `last` steps."""
        return max(0, last // self.every - (self.begin - 1) // self.every)

    def how_often(self, last: int) -> str:
        """The number of samples (not of files), in words."""
        return f"{counted(self.samples(last), 'sample')}, every {self.every}"

    def warnings(self, case: "Case") -> list[Finding]:
        """No sample, or only one."""
        steps, samples = case.run.steps, self.samples(case.run.steps)
        if samples > 1 or not steps:
            return []
        found = f"found begin = {self.begin}, every = {self.every}, and the run has " \
                f"{counted(steps, 'step')}"  # fmt: skip
        if not samples:
            sentence = f"{found}: no sample is taken, no file is written; lower begin and every"
            return [Finding(SERIOUS, "begin", sentence)]
        return [Finding(WARNING, "every", f"{found}: one sample is taken; lower begin and every")]

    def disk_bytes(self, case: "Case", times: int) -> int:
        """The profiles."""
        D = case.dimensions
        cells = [n for axis, n in zip(AXES, case.domain.size, strict=False) if axis in self.axes(D)]
        files = max(1, times * self.every // self.write) if self.write else 1
        a_place = 8 * numbers(case.in_samples.values)[0] * int(np.prod(cells, dtype=np.int64))
        image = a_place + (3 - D) * 8 * (1 + len(case.labels)) * int(np.prod(cells, dtype=np.int64))
        sizes = {"h5": a_place, "vtkhdf": image, "both": a_place + image}
        return files * sizes[self.format]

    def device_bytes(self, case: "Case", planes: int) -> int:
        """The sums."""
        value = np.dtype(case.precision.compute).itemsize
        return bytes_needed(case.in_samples.values, planes, self.places(case), value)

    def host_bytes(self, case: "Case", planes: int) -> int:
        """Moments and their fields: of all planes together, or of lines in the planes of a rank."""
        places = self.places(case)
        if self._over_planes(case):
            planes = 1
        elif places.of_cells:
            return 0  # the device computes them in the memory of Context.copies
        return 2 * 8 * planes * places.count * (1 + sum(numbers(case.in_samples.values)))

    def _over_planes(self, case: "Case") -> bool:
        return AXES[case.dimensions - 1] in self.average

    def stages(self, case: "Case") -> bool:
        """Whether the device computes means and stresses, which it does for those of cells."""
        return self.places(case).of_cells

    def staged_bytes(self, case: "Case") -> int:
        """Sums, for checkpoints, and means and stresses of cells."""
        sampled, places = case.in_samples, self.places(case)
        shift = case.precision.compute if places.of_cells else "f8"
        sums = Staging.bytes_of(sum_sizes(sampled, places.count, shift))
        means = Staging.bytes_of(mean_sizes(sampled, places.count)) if places.of_cells else 0
        return max(sums, means)

    def kept_bytes(self, case: "Case") -> int:
        """The sums and shifts of all planes."""
        return 8 * case.shape[0] * self.places(case).count * sum(numbers(case.in_samples.values))

    def places(self, case: "Case") -> Places:
        """The places in a plane for which sums are kept."""
        return Places.of(*case.shape[1:], *self.along(case))

    def along(self, case: "Case") -> tuple[bool, bool]:
        """Whether x and the rows of a plane are averaged; in 2D a plane has only one row."""
        return "x" in self.average, case.dimensions == 2 or "y" in self.average

    def open(self, context: Context) -> SampleWriter:
        """Continues with the sums of the checkpoint, if the run starts from one."""
        label = self.axes(context.case.dimensions) or "all"
        plan = Plan(
            stem=f"{self.name}_{label}",
            label=f"{self.name}.{label}",
            definition=self.definition(context.case),
            begin=self.begin,
            over_planes=self._over_planes(context.case),
            samples_at=lambda step: step % self.every == 0 and step >= self.begin,
            writes_at=lambda step: bool(self.write) and step % (self.write or 1) == 0,
            head=partial(self._head, context.case),
            files=self._files,
            table=write_table if label == "all" or len(label) == 1 else None,
        )
        return SampleWriter(plan, DeviceSums(context, self.along(context.case)), context)

    def _head(self, case: "Case", step: int, first: int, samples: int) -> Head:
        """The description of a profile."""
        axes = self.axes(case.dimensions)
        return Head(
            case=case, axes=axes, average=self.average, step=step, first=first, samples=samples
        )

    def _files(self, head: Head) -> list[SampleFile]:
        return [
            SampleFile(form.suffix, partial(form.describe, head=head), form.targets(head))
            for form in FORMS[self.format]
        ]
