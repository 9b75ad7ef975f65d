"""Samples the flow, writes means of all samples, and adds its sums to checkpoints."""

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpilbm.outputs import Context, PlaneCopies
from mpilbm.outputs.averages.forms import Target, put, store
from mpilbm.outputs.averages.profile_files import Head
from mpilbm.outputs.core.restart import opened, read_planes
from mpilbm.parallel.agree import on_root, together
from mpilbm.storage.partial_file import Describe
from mpilbm.storage.planes import PlaneFile

Fields = dict[str, np.ndarray]


class Sums(Protocol):
    """Sums over samples of the planes of this rank, on the device or on the host."""

    @property
    def samples(self) -> int:
        """How many samples are added."""

    @property
    def values(self) -> int:
        """How many numbers a plane has."""

    def sample(self) -> None:
        """Enqueue the addition of the current flow; collective."""

    def settle(self) -> None:
        """Wait until all samples are added; raises the error of a thread."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """The numbers of local planes for a checkpoint, float64 (end - begin, values)."""

    def write(self, state: np.ndarray, samples: int) -> None:
        """The inverse of `read`, of all planes."""

    def copies(self) -> PlaneCopies:
        """Copies of these numbers, named "sums", on their way to a checkpoint; collective."""

    def over_planes(self, before: Any) -> Any:
        """`before` (None: nothing) merged with the planes of this rank, one after another."""

    def results(self, merged: Any) -> Fields:
        """The fields of merged planes."""

    def of_planes(self) -> Fields | None:
        """The fields of local planes (planes, …); None if they need `means`."""

    def means(self) -> PlaneCopies:
        """Copies of the fields, which the device computes, on their way to files; collective."""

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""


class SampleFile(NamedTuple):
    """A kind of file: its suffix, what creates its datasets, and how these are made of fields."""

    suffix: str
    describe: Describe
    targets: dict[str, Target]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is written, and when.

    stem          the names of its files without step and suffix
    label         the name of its group in checkpoints
    definition    what its sums are: those of another definition are not continued
    begin         the first step that may be sampled
    over_planes   whether planes are averaged
    samples_at    whether a step is sampled
    writes_at     whether files are written at a step, besides the last one
    head          the description of a profile; arguments: step, steps of the first sample, samples
    files         the kinds of files
    table         writes the fields of all planes as a table, on rank 0; None: no table
    """

    stem: str
    label: str
    definition: dict[str, Any]
    begin: int
    over_planes: bool
    samples_at: Callable[[int], bool]
    writes_at: Callable[[int], bool]
    head: Callable[[int, int, int], Head]
    files: Callable[[Head], Sequence[SampleFile]]
    table: Callable[[Path, Head, Fields], None] | None = None


class SampleWriter:
    """Samples, writes files, and adds its sums to checkpoints (see outputs.Kept)."""

    def __init__(self, plan: Plan, sums: Sums, context: Context):
        self.plan, self.sums, self.context, self.comm = plan, sums, context, context.comm
        self.label, self.values = plan.label, sums.values
        self.first: int | None = None  # step of the first sample
        if context.checkpoint:
            together(self.comm, self._restore, context.checkpoint)
        context.kept.append(self)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes in a checkpoint, next to the sums; `first`: step of the first sample."""
        first = {} if self.first is None else {"first": self.first}
        return {"samples": self.sums.samples, "definition": self._definition, **first}

    @property
    def _definition(self) -> str:
        return json.dumps(self.plan.definition, sort_keys=True)

    def read(self, begin: int, end: int) -> np.ndarray:
        """The sums of local planes for a checkpoint, (end - begin, values), with all samples."""
        self.sums.settle()
        return self.sums.read(begin, end)

    def copies(self) -> PlaneCopies:
        """Copies of these sums; collective."""
        together(self.comm, self.sums.settle)
        return self.sums.copies()

    def _restore(self, checkpoint: Path) -> None:
        with opened(checkpoint) as file:
            group = file.get(self.label)
            same = group is not None and group["sums"].shape[1:] == (self.values,)
            # files of earlier versions have no definition
            if not same or group.attrs.get("definition", self._definition) != self._definition:
                self._report_no_sums()
            elif samples := int(group.attrs["samples"]):
                planes = [data for _, data in read_planes(group["sums"], self.context.slab)]
                self.sums.write(np.concatenate(planes), samples)
                self.first = int(group.attrs["first"])

    def _report_no_sums(self) -> None:
        first, begin = self.context.first_step, self.plan.begin
        if self.comm.rank == 0 and first and first >= begin:
            self.context.say(
                f"warning: {self.context.checkpoint} holds no sums for {self.label}: its samples "
                f"begin after step {first}, not at step {begin}"
            )

    def write(self, step: int) -> None:
        """Sample the flow and write files, each if it is due at this step; collective."""
        if self.plan.samples_at(step):
            self.sums.sample()
            self.first = step if self.first is None else self.first
        due = step == self.context.last_step or self.plan.writes_at(step)
        if due and self.first is not None:
            self._write_files(step, self.first)

    def _write_files(self, step: int, first: int) -> None:
        together(self.comm, self.sums.settle)
        plan, files, name = self.plan, self.context.files, f"{self.plan.stem}_{step:09d}"
        head = plan.head(step, first, self.sums.samples)
        fields = self._merged() if plan.over_planes else self.sums.of_planes()
        for suffix, describe, targets in plan.files(head):
            place = f"{name}.{suffix}"
            if files.in_threads:
                self._write_in_threads(place, describe, targets, fields)
            else:
                with files.create(place, describe) as file:
                    self._write_and_wait(file, targets, fields)
        if plan.table:
            assert fields is not None, "a table has few places in a plane"
            table = fields if plan.over_planes else self._gathered(fields)
            on_root(self.comm, plan.table, self.context.directory / f"{name}.csv", head, table)

    def _write_in_threads(
        self, name: str, describe: Describe, targets: dict[str, Target], fields: Fields | None
    ) -> None:
        """Threads write the planes of this rank, while the time steps continue."""
        context = self.context
        means = self.sums.means() if fields is None else None
        job = context.background.begin(partial(context.files.create_own, name, describe))
        if means:
            for begin, end in means.blocks(context.slab.planes):
                job.add(means.start(begin, end), partial(store, job.file, targets, begin))
        elif not self.plan.over_planes:
            job.add(nullcontext(fields), partial(store, job.file, targets, 0))
        elif self.comm.rank == 0:
            job.add(nullcontext(fields), partial(put, job.file, targets))
        job.end([job.file.flush])

    def _write_and_wait(
        self, file: PlaneFile, targets: dict[str, Target], fields: Fields | None
    ) -> None:
        """Write all datasets together with the other ranks; collective."""
        for path, (name, made) in targets.items():
            if fields is None:
                file.write(path, partial(self._means, name, made))
            elif self.plan.over_planes:
                file.put(path, made(fields[name]).reshape(file.places[path].shape))
            else:
                file.write(path, partial(_planes_of, made(fields[name])))
        file.commit()

    def _means(
        self, name: str, made: Callable[[np.ndarray], np.ndarray], begin: int, end: int
    ) -> np.ndarray:
        """A dataset of local planes, made from a field that the device computes."""
        found, means = [], self.sums.means()
        for first, last in means.blocks(end - begin):
            with means.start(begin + first, begin + last) as fields:
                found.append(made(fields[name]).copy())
        return np.concatenate(found)

    def _merged(self) -> Fields:
        """The fields of all planes together, merged plane by plane and rank by rank."""
        found: Any = None
        for slab in self.context.slabs:
            own = self.sums.over_planes if slab.rank == self.comm.rank else _unchanged
            found = together(self.comm, own, found)
            found = self.comm.bcast(found, root=slab.rank)
        return self.sums.results(found)

    def _gathered(self, fields: Fields) -> Fields | None:
        """The fields of all slabs, on rank 0."""
        parts = self.comm.gather(fields)
        if parts is None:
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""
        self.sums.close()


def _unchanged(value: Any) -> Any:
    return value


def _planes_of(data: np.ndarray, begin: int, end: int) -> np.ndarray:
    return data[begin:end]
