"""Means and Reynolds stresses over time and homogeneous directions, as profiles."""

import csv
from math import prod
from typing import ClassVar

import numpy as np
from pydantic import Field, field_validator

from mpilbm import __version__
from mpilbm.outputs import Context, Output
from mpilbm.outputs.restart import opened, read_planes
from mpilbm.parallel.agree import on_root, together
from mpilbm.physics.lattices import AXES
from mpilbm.registry import register
from mpilbm.solver.fields.flow_statistics import bytes_needed, merged, numbers, places
from mpilbm.storage.file_system import best_writer
from mpilbm.storage.files import whole
from mpilbm.storage.places import dataset
from mpilbm.storage.planes import plane_file
from mpilbm.system import terminal
from mpilbm.units import counted
from mpilbm.verdicts.findings import SERIOUS, WARNING, Finding


@register("outputs", "statistics")
class RunningStatistics(Output):
    """Mean rho and u and Reynolds stresses as `statistics_<directions left>_<step>.h5`.

    Sampled at every `every`-th step from `start` on, over the fluid cells and the directions of
    `average`; what is left of one direction is also written as .csv. Lattice units.

        u = <u>, reynolds_stress = <u_a' u_b'> = <u_a u_b> - <u_a><u_b>: xx, xy, (xz,) yy, (yz, zz)
    """

    every: int = Field(gt=0, description="steps from one sample to the next", examples=[10])
    average: tuple[str, ...] = Field(
        (), description="homogeneous directions: x, y, z", examples=[["x", "y"]]
    )
    start: int = Field(0, ge=0, description="first step that is sampled", examples=[50000])
    write: int | None = Field(
        None, gt=0, description="steps between files; none: only at the end", examples=[100000]
    )

    files: ClassVar[tuple[str, ...]] = (
        "statistics_<axes>_<step>.h5",
        "statistics_<axes>_<step>.csv",
    )

    @field_validator("average")
    @classmethod
    def _each_once(cls, value):
        if not set(value) <= set(AXES) or len(set(value)) < len(value):
            raise ValueError(f"found {list(value)}; allowed: some of x, y, z, each once")
        return value

    def left(self, dimensions: int) -> str:
        """The directions that are not averaged, like "y"; "all" where none is left."""
        return "".join(axis for axis in AXES[:dimensions] if axis not in self.average) or "all"

    def problems(self, case) -> list[str]:
        """A direction that is not there, two outputs of one name, files between samples."""
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
        others = [each for each in case.outputs if isinstance(each, RunningStatistics)]
        same = [each for each in others if each.left(case.dimensions) == self.left(case.dimensions)]
        if len(same) > 1:
            found.append("average: two statistics of the same directions; remove one")
        return found

    def samples(self, last: int) -> int:
        """How many samples a run of `last` steps takes."""
        return max(0, last // self.every - (self.start - 1) // self.every)

    def how_often(self, last: int) -> str:
        """How many samples are taken, not how many files are written."""
        return f"{counted(self.samples(last), 'sample')}, every {self.every}"

    def warnings(self, case) -> list:
        """No sample at all, or only one."""
        steps, samples = case.run.steps, self.samples(case.run.steps)
        if samples > 1 or not steps:
            return []
        found = f"found start = {self.start}, every = {self.every}, and the run has " \
                f"{counted(steps, 'step')}"  # fmt: skip
        if not samples:
            sentence = f"{found}: no sample is taken, no file is written; lower start and every"
            return [Finding(SERIOUS, "start", sentence)]
        return [Finding(WARNING, "every", f"{found}: one sample is taken; lower start and every")]

    def disk_bytes(self, case, times: int) -> int:
        """The profiles."""
        D = case.dimensions
        cells = [n for axis, n in zip(AXES, case.domain.size, strict=False) if axis in self.left(D)]
        files = max(1, times * self.every // self.write) if self.write else 1
        return files * 8 * numbers(D)[0] * int(np.prod(cells, dtype=np.int64))

    def device_bytes(self, case, planes: int) -> int:
        """The sums."""
        at = places(*case.shape[1:], *self.along(case))
        return bytes_needed(case.dimensions, planes, prod(at))

    def kept_bytes(self, case) -> int:
        """The sums and shifts of all planes."""
        planes, rows, nx = case.shape
        return (
            8 * planes * prod(places(rows, nx, *self.along(case))) * sum(numbers(case.dimensions))
        )

    def along(self, case) -> tuple[bool, bool]:
        """Whether x and the rows of a plane are averaged; in 2D a plane has but one row."""
        return "x" in self.average, case.dimensions == 2 or "y" in self.average

    def open(self, context: Context) -> "StatisticsWriter":
        """With the sums of the checkpoint from which the run goes on."""
        return StatisticsWriter(self, context)


class StatisticsWriter:
    """Samples, writes profiles, and gives checkpoints its sums (see Context.kept)."""

    def __init__(self, output: RunningStatistics, context: Context):
        self.output, self.context, self.comm = output, context, context.comm
        self.D, self.case = context.case.dimensions, context.case
        self.left = output.left(self.D)
        self.slowest = AXES[self.D - 1]
        self.sums = context.solver.statistics(*output.along(context.case))
        self.label, self.values = f"statistics.{self.left}", self.sums.values
        self.first = None
        self.writer = best_writer(context.comm, context.directory)
        if context.checkpoint:
            together(self.comm, self._restore)
        context.kept.append(self)

    @property
    def attributes(self) -> dict:
        """What a checkpoint keeps beside the sums; `first` is the step of the first sample."""
        return {"samples": self.sums.samples, "first": -1 if self.first is None else self.first}

    def read(self, begin: int, end: int) -> np.ndarray:
        """The sums of local planes for a checkpoint, (end - begin, values)."""
        return self.sums.read(begin, end)

    def _restore(self):
        slab = self.context.slab
        with opened(self.context.checkpoint) as file:
            if self.label not in file:
                self._report_no_sums()
                return
            group = file[self.label]
            state = [data for _, data in read_planes(group["sums"], slab)]
            samples, first = int(group.attrs["samples"]), int(group.attrs["first"])
        if samples:
            self.sums.write(np.concatenate(state), samples)
            self.first = first

    def _report_no_sums(self):
        first = self.context.first_step
        if self.comm.rank == 0 and first and first >= self.output.start:
            terminal.say(
                f"warning: {self.context.checkpoint} holds no sums for {self.label}: its samples "
                f"begin after step {first}, not at start = {self.output.start}"
            )

    def write(self, step: int):
        """Sample if it is due, write if that is; called on all ranks."""
        output = self.output
        if step % output.every == 0 and step >= output.start:
            together(self.comm, self.sums.sample)
            self.first = step if self.first is None else self.first
        due = step == self.context.last_step or (output.write and step % output.write == 0)
        if due and self.sums.samples:
            self._write_files(step)

    def _write_files(self, step: int):
        path = self.context.directory / f"statistics_{self.left}_{step:09d}.h5"
        whole = self._whole() if self.slowest in self.output.average else None
        sample = self._profile(0, 1) if whole is None else whole

        def describe(file):
            self._describe(file, step, sample)

        with plane_file(path, self.comm, self.context.slabs, describe, self.writer) as file:
            for name in sample:
                if whole is None:
                    file.write(name, lambda begin, end, name=name: self._profile(begin, end)[name])
                else:
                    file.put(name, whole[name])
            file.commit()
        if len(self.left) == 1 or self.left == "all":
            table = self._gathered() if whole is None else whole
            on_root(self.comm, self._write_table, path.with_suffix(".csv"), table)

    def _profile(self, begin: int, end: int) -> dict[str, np.ndarray]:
        """Fields of local planes, only the directions left in their shapes, the slowest first."""
        fields = self.sums.moments(begin, end).fields()
        return {name: self._squeezed(data, 0) for name, data in fields.items()}

    def _whole(self) -> dict[str, np.ndarray]:
        """Fields averaged over all planes, merged plane after plane and rank after rank."""
        found = None
        for slab in self.context.slabs:
            if slab.rank == self.comm.rank:
                for plane in range(slab.planes):
                    found = merged(self.sums.moments(plane, plane + 1), 0, found)
            found = self.comm.bcast(found, root=slab.rank)
        return {name: self._squeezed(data, 1) for name, data in found.fields().items()}

    def _squeezed(self, data: np.ndarray, gone: int) -> np.ndarray:
        """Without the averaged directions and, in 2D, without the row; `gone` axes already are."""
        axes = "zyx" if self.D == 3 else "y-x"
        kept = [n for axis, n in zip(axes[gone:], data.shape, strict=False) if axis in self.left]
        return data.reshape((*kept, *data.shape[3 - gone :]))

    def _gathered(self):
        parts = self.comm.gather(self._profile(0, self.context.slab.planes))
        if parts is None:
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _describe(self, file, step: int, sample: dict):
        """Datasets, coordinates of cell centres, attributes."""
        sizes = dict(zip(AXES, self.case.domain.size, strict=False))
        shape = [sizes[axis] for axis in reversed(AXES) if axis in self.left]
        for name, data in sample.items():
            trailing = data.shape[len(shape) :]
            dataset(file, name, (*shape, *trailing), np.float64)
        for axis in self.left if self.left != "all" else ():
            file[axis] = np.arange(sizes[axis]) + 0.5
        file.attrs["average"] = list(self.output.average)
        file.attrs["directions"] = [axis for axis in reversed(AXES) if axis in self.left]
        file.attrs["reynolds_stress"] = self.pairs
        file.attrs["samples"] = self.sums.samples
        file.attrs["first_step"], file.attrs["step"] = self.first, step
        file.attrs["units"] = "lattice: cells, steps"
        file.attrs["case"], file.attrs["version"] = self.case.toml, __version__

    @property
    def pairs(self) -> list[str]:
        """Names of the components of a stress."""
        axes = AXES[: self.D]
        return [a + b for k, a in enumerate(axes) for b in axes[k:]]

    def _write_table(self, path, fields: dict):
        """The profile as text."""
        axes = AXES[: self.D]
        header = ["rho", *(f"u_{a} (cells/step)" for a in axes)]
        header += [f"<u_{a}' u_{b}'> (cells^2/step^2)" for a, b in self.pairs]
        count = 1 if self.left == "all" else self.case.domain.size[AXES.index(self.left)]
        columns = [fields[name].reshape(count, -1) for name in fields]
        if self.left != "all":
            header.insert(0, f"{self.left} (cells)")
            columns.insert(0, (np.arange(count) + 0.5)[:, None])
        with whole(path, newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(header)
            table.writerows([map(repr, map(float, row)) for row in np.concatenate(columns, axis=1)])

    def close(self):
        """Nothing is open between two samples."""
