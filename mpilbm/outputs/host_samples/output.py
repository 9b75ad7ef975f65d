"""The base of outputs whose samples of rho and u are evaluated on the host."""

from abc import abstractmethod
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field, field_validator

from mpilbm import __version__
from mpilbm.backends import memory
from mpilbm.core.quantity import STEPS
from mpilbm.core.units import DENSITY, LATTICE_UNIT, LENGTH, VELOCITY, Units, counted
from mpilbm.model.findings import SERIOUS, WARNING, Finding
from mpilbm.outputs import Context
from mpilbm.outputs.averages.forms import Target
from mpilbm.outputs.averages.profile_files import Head
from mpilbm.outputs.averages.sample_writer import Plan, SampleFile, SampleWriter
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.host_samples.host_sums import HostSums
from mpilbm.outputs.host_samples.plane_sums import PlaneSums
from mpilbm.parallel.agree import together
from mpilbm.parallel.ranks import local_rank
from mpilbm.physics.lattices import AXES
from mpilbm.storage.partial_file import dataset

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case


class HostSampled(Scheduled):
    """Sampled at multiples of `every` from `begin` to `end`; a file at the last step of the run."""

    free: ClassVar[tuple[str, ...]] = ("write",)

    average: tuple[str, ...] = Field(
        (), description="homogeneous directions: x, y, z", examples=[["x", "y"]]
    )
    write: Annotated[int | None, STEPS] = Field(
        None,
        gt=0,
        description="steps between files; without it: one file at the end",
        examples=[100000],
    )

    @field_validator("average")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not set(value) <= set(AXES) or len(set(value)) < len(value):
            raise ValueError(f"found {list(value)}; allowed: some of x, y, z, each once")
        return value

    @abstractmethod
    def sums(self, case: "Case") -> PlaneSums:
        """The numbers of a plane."""

    def axes(self, dimensions: int) -> str:
        """The directions that are not averaged, like "y"; "" if all are."""
        return "".join(axis for axis in AXES[:dimensions] if axis not in self.average)

    def along(self, case: "Case") -> tuple[bool, bool]:
        """Whether the rows of a plane, and x, are averaged; in 2D a plane has only one row."""
        return case.dimensions == 2 or "y" in self.average, "x" in self.average

    def over_planes(self, case: "Case") -> bool:
        """Whether planes are averaged."""
        return AXES[case.dimensions - 1] in self.average

    def sampled(self, step: int) -> bool:
        """Whether this step is sampled."""
        return step % self.every == 0 and super().due(step, step + 1)

    def due(self, step: int, last: int) -> bool:
        """Whether it is sampled, or a file is written, at this step."""
        return self.sampled(step) or (step == last and step > 0)

    def samples(self, last: int) -> int:
        """The number of samples in a run of `last` steps."""
        final = last if self.end is None else min(self.end, last)
        first = max(self.every, -(-(self.begin or 0) // self.every) * self.every)
        return max(0, (final - first) // self.every + 1) + self.at_start

    def how_often(self, last: int) -> str:
        """The number of samples (not of files), in words."""
        return f"{counted(self.samples(last), 'sample')}, every {self.every}"

    def problems(self, case: "Case") -> list[str]:
        """A direction that does not exist, files between samples, an empty window."""
        found = super().problems(case)
        if case.dimensions == 2 and "z" in self.average:
            found.append("average: found 'z' in 2D; allowed: x, y")
        if self.write and self.write % self.every:
            found.append(
                f"write: found {self.write}; allowed: a multiple of every = {self.every}, since "
                "files are written at samples"
            )
        return found

    def warnings(self, case: "Case") -> list[Finding]:
        """No sample, or only one."""
        steps, samples = case.run.steps, self.samples(case.run.steps)
        if samples > 1 or not steps:
            return []
        found = f"found every = {self.every}, and the run has {counted(steps, 'step')}"
        if not samples:
            sentence = f"{found}: no sample is taken, no file is written; lower begin and every"
            return [Finding(SERIOUS, "every", sentence)]
        return [Finding(WARNING, "every", f"{found}: one sample is taken; lower begin and every")]

    def disk_bytes(self, case: "Case", times: int) -> int:
        """The datasets of all files."""
        planes = 1 if self.over_planes(case) else case.shape[0]
        files = max(1, times * self.every // self.write) if self.write else 1
        return files * 8 * planes * sum(map(prod, self.sums(case).shapes.values()))

    def kept_bytes(self, case: "Case") -> int:
        """The numbers of all planes."""
        return 8 * case.shape[0] * self.sums(case).values

    def host_bytes(self, case: "Case", planes: int) -> int:
        """The numbers of its planes, and their copy for a checkpoint or the arrays of a file."""
        sums = self.sums(case)
        of_file = sum(map(prod, sums.shapes.values())) * (not self.over_planes(case))
        return 8 * planes * (sums.values + max(sums.values, of_file))

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """That of rho and u."""
        return ("fields",)

    def stages(self, case: "Case") -> bool:
        """Always: the host gets copies of rho and u."""
        return True

    def open(self, context: Context) -> SampleWriter:
        """Continues with the numbers of the checkpoint, if the run starts from one."""
        case, label, sums = context.case, self.label_in(context.case), self.sums(context.case)
        needed, sharing = self.host_bytes(case, context.slab.planes), local_rank(context.comm)[1]
        what = f"the output '{self.name}'"
        together(context.comm, memory.require, needed, sharing, what, case.path)
        plan = Plan(
            stem=f"{self.name}_{label}",
            label=f"{self.name}.{label}",
            definition=self.definition(case),
            begin=self.begin or 0,
            over_planes=self.over_planes(case),
            samples_at=self.sampled,
            writes_at=lambda step: bool(self.write) and step % (self.write or 1) == 0,
            head=partial(self._head, case),
            files=partial(self.kinds, sums),
        )
        return SampleWriter(plan, HostSums(context, sums), context)

    def kinds(self, sums: PlaneSums, head: Head) -> list[SampleFile]:
        """The kinds of files, see Plan: plain HDF5."""
        targets = {name: Target(name, np.asarray) for name in sums.shapes}
        return [SampleFile("h5", partial(self._describe, sums, head), targets)]

    def _head(self, case: "Case", step: int, first: int, samples: int) -> Head:
        """The description of a profile."""
        axes = self.axes(case.dimensions)
        return Head(
            case=case, axes=axes, average=self.average, step=step, first=first, samples=samples
        )

    def _describe(self, sums: PlaneSums, head: Head, file: "h5py.File") -> None:
        """Datasets, coordinates, units and attributes, on rank 0."""
        case = head.case
        planes = () if self.over_planes(case) else (case.shape[0],)
        for name, shape in sums.shapes.items():
            dataset(file, name, (*planes, *shape), np.float64)
        self.describe(case, file)
        file.attrs["samples"], file.attrs["step"] = head.samples, head.step
        file.attrs["first_step"] = head.first

    def describe(self, case: "Case", file: "h5py.File") -> None:
        """Coordinates, units and attributes of the datasets of a file."""
        datasets, sizes = list(file), dict(zip(AXES, case.domain.size, strict=False))
        lengths = {axis: np.arange(sizes[axis]) + 0.5 for axis in self.axes(case.dimensions)}
        units = case.units
        for name, values in lengths.items():
            file[name] = values
        for name in (*datasets, *lengths) if units else ():
            unit, text = unit_of(units, name)
            file[name].attrs["unit"], file[name].attrs[LATTICE_UNIT] = text, unit
        file.attrs["average"] = list(self.average)
        file.attrs["directions"] = list(self.axes(case.dimensions)[::-1])
        file.attrs["units"] = "lattice: cells, steps"
        file.attrs["case"], file.attrs["version"] = case.toml, __version__


def unit_of(units: Units | None, name: str) -> tuple[float, str]:
    """The SI value of the lattice unit of a dataset, and its SI unit; (1, "") without one."""
    if units is None or name.endswith(("skewness", "flatness")):
        return 1.0, ""
    if name in AXES:
        return units.unit(LENGTH), "m"
    rho = "rho" in name.split("_")
    unit = units.unit(DENSITY if rho else VELOCITY)
    if name.startswith(("spectrum", "correlation")) or name.endswith("variance"):
        return unit**2, "kg^2/m^6" if rho else "m^2/s^2"
    return unit, "kg/m^3" if rho else "m/s"
