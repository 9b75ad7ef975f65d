"""The sums of the output `statistics` during a run, and the profiles computed from them."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.outputs import Context
from mpilbm.outputs.averages.forms import FORMS, Target, put, store
from mpilbm.outputs.averages.profile_files import Head, write_table
from mpilbm.outputs.core.restart import opened, read_planes
from mpilbm.parallel.agree import on_root, together
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.flow_statistics import Moments
from mpilbm.solver.fields.staging import Copies
from mpilbm.storage.planes import OwnFile, PlaneFile
from mpilbm.system import terminal

Fields = dict[str, np.ndarray]  # rho, u and reynolds_stress


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The directions that are averaged, and the steps of samples and files.

    average, axes   directions that are averaged and, like "y", those that are not
    along           whether x and the rows of a plane are averaged
    every, start    steps between samples, and the first step that may be one
    write           steps between files; None: only at the end
    format          the kinds of files, see forms.FORMS
    """

    average: tuple[str, ...]
    axes: str
    along: tuple[bool, bool]
    every: int
    start: int
    write: int | None
    format: str

    @property
    def label(self) -> str:
        """The axes in names of files; "all" if all directions are averaged."""
        return self.axes or "all"


class StatisticsWriter:
    """Samples, writes profiles, and adds its sums to checkpoints (see outputs.Kept)."""

    def __init__(self, sampling: Sampling, context: Context):
        self.sampling, self.context, self.comm = sampling, context, context.comm
        self.D, self.axes = context.case.dimensions, sampling.axes
        self.over_planes = AXES[self.D - 1] in sampling.average  # whether planes are averaged
        self.sums = context.solver.statistics(*sampling.along)
        self.label, self.values = f"statistics.{sampling.label}", self.sums.values
        self.first: int | None = None  # step of the first sample
        self._ready = False
        if context.checkpoint:
            together(self.comm, self._restore, context.checkpoint)
        context.kept.append(self)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes in a checkpoint, next to the sums; `first`: step of the first sample."""
        first = {} if self.first is None else {"first": self.first}
        return {"samples": self.sums.samples, **first}

    def read(self, begin: int, end: int) -> np.ndarray:
        """The sums of local planes for a checkpoint, (end - begin, values)."""
        return self.sums.read(begin, end)

    def copies(self) -> Copies:
        """Copies of these sums; collective at first use."""
        return self.context.copies.sums(self.sums)

    def _restore(self, checkpoint: Path) -> None:
        with opened(checkpoint) as file:
            if self.label not in file:
                self._report_no_sums()
                return
            group = file[self.label]
            state = [data for _, data in read_planes(group["sums"], self.context.slab)]
            if samples := int(group.attrs["samples"]):
                self.sums.write(np.concatenate(state), samples)
                self.first = int(group.attrs["first"])

    def _report_no_sums(self) -> None:
        first = self.context.first_step
        if self.comm.rank == 0 and first and first >= self.sampling.start:
            terminal.print_line(
                f"warning: {self.context.checkpoint} holds no sums for {self.label}: its samples "
                f"begin after step {first}, not at start = {self.sampling.start}"
            )

    def write(self, step: int) -> None:
        """Sample the flow and write files, each if it is due at this step; collective."""
        of = self.sampling
        if step % of.every == 0 and step >= of.start:
            self._sample()
            self.first = step if self.first is None else self.first
        due = step == self.context.last_step or (of.write and step % of.write == 0)
        if due and self.first is not None:
            self._write_files(step, self.first)

    def _sample(self) -> None:
        """Enqueue a sample; the first one of a run allocates memory, which may fail on one rank."""
        if self._ready:
            self.sums.sample()
        else:
            together(self.comm, self.sums.sample)
            self._ready = True

    def _write_files(self, step: int, first: int) -> None:
        context, name = self.context, f"statistics_{self.sampling.label}_{step:09d}"
        head = Head(
            case=context.case, axes=self.axes, average=self.sampling.average, step=step,
            first=first, samples=self.sums.samples,
        )  # fmt: skip
        fields = self._fields()
        for form in FORMS[self.sampling.format]:
            targets, place = form.targets(head), f"{name}.{form.suffix}"
            create = partial(form.describe, head=head)
            if context.files.in_threads:
                make = partial(context.files.create_own, place, create)
                self._write_in_threads(make, targets, fields)
            else:
                with context.files.create(place, create) as file:
                    self._write_and_wait(file, targets, fields)
        if len(self.axes) <= 1:
            assert fields is not None, "sums of cells have at least two axes"
            table = fields if self.over_planes else self._gathered(fields)
            on_root(self.comm, write_table, context.directory / f"{name}.csv", head, table)

    def _write_in_threads(
        self, create: "partial[OwnFile]", targets: dict[str, Target], fields: Fields | None
    ) -> None:
        """Threads write the planes of this rank, while the time steps continue."""
        context = self.context
        means = context.copies.means(self.sums) if fields is None else None
        job = context.background.begin(create)
        if means:
            for begin, end in means.blocks(context.slab.planes):
                job.add(means.start(begin, end), partial(store, job.file, targets, begin))
        elif not self.over_planes:
            job.add(nullcontext(fields), partial(store, job.file, targets, 0))
        elif self.comm.rank == 0:
            job.add(nullcontext(fields), partial(put, job.file, targets))
        job.end([job.file.flush])

    def _write_and_wait(
        self, file: PlaneFile, targets: dict[str, Target], fields: Fields | None
    ) -> None:
        for path, (name, made) in targets.items():
            if fields is None:
                file.write(path, partial(self._means, name, made))
            elif self.over_planes:
                file.put(path, made(fields[name]).reshape(file.places[path].shape))
            else:
                file.write(path, partial(planes_of, made(fields[name])))
        file.commit()

    def _means(
        self, name: str, made: Callable[[np.ndarray], np.ndarray], begin: int, end: int
    ) -> np.ndarray:
        """A dataset of local planes, made from a field of sums of cells."""
        found, means = [], self.context.copies.means(self.sums)
        for first, last in means.blocks(end - begin):
            with means.start(begin + first, begin + last) as fields:
                found.append(made(fields[name]).copy())
        return np.concatenate(found)

    def _fields(self) -> Fields | None:
        """The fields, (planes, …), or averaged over planes; None if the device computes them."""
        if self.over_planes:
            return self._averaged()
        if self.sums.places.of_cells:
            return None
        return self.sums.moments(0, self.context.slab.planes).fields()

    def _averaged(self) -> Fields:
        """Fields averaged over all planes, merged plane by plane and rank by rank."""
        found: Moments | None = None
        for slab in self.context.slabs:
            found = together(self.comm, self._merged, slab.rank, found)
            found = self.comm.bcast(found, root=slab.rank)
        assert found is not None, "each box has a slab"
        return found.fields()

    def _merged(self, rank: int, before: Moments | None) -> Moments | None:
        """`before` and the planes of this rank, if it is `rank`."""
        return self.sums.over_planes(before) if rank == self.comm.rank else before

    def _gathered(self, fields: Fields) -> Fields | None:
        """The fields of all slabs, on rank 0."""
        parts = self.comm.gather(fields)
        if parts is None:
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def close(self) -> None:
        """Nothing is open between two samples."""


def planes_of(data: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Some planes of an array."""
    return data[begin:end]
