"""Samples the flow, writes means of all samples, and adds its sums to checkpoints."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mpilbm.outputs import Context, PlaneCopies
from mpilbm.outputs.core.restart import opened, read_planes
from mpilbm.outputs.samples import Averaged, Head, SampleFile, Targets, write_table
from mpilbm.parallel import on_root, together
from mpilbm.solver.fields.flow_statistics import Moments
from mpilbm.storage.planes import OwnFile

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

    def of_planes(self) -> PlaneCopies:
        """The fields of local planes on their way to files; collective."""

    def settle(self) -> None:
        """Wait until all samples are added; raises the error of a thread."""

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""


class HostPlanes:
    """Arrays of all local planes on the host, as PlaneCopies."""

    def __init__(self, arrays: Fields):
        self._arrays = arrays

    def blocks(self, planes: int) -> list[tuple[int, int]]:
        """Ranges (begin, end) of planes that are written at a time."""
        return [(0, planes)]

    @contextmanager
    def start(self, begin: int, end: int) -> Iterator[Fields]:
        """The values of these planes by name."""
        yield {name: array[begin:end] for name, array in self._arrays.items()}


class DeviceSums:
    """Sums of rho, u, scalars and their products, which the device computes.

    `along`: whether the rows of a plane, and x, are averaged.
    """

    def __init__(self, context: Context, along: tuple[bool, bool]):
        rows, x = along
        self.context, self.statistics = context, context.solver.statistics(x, rows)
        self.values, self._ready = self.statistics.values, False

    @property
    def samples(self) -> int:
        """How many samples are added."""
        return self.statistics.samples

    def sample(self) -> None:
        """Enqueue a sample; the first one of a run allocates memory, which may fail on one rank."""
        if self._ready:
            self.statistics.sample()
        else:
            together(self.context.comm, self.statistics.sample)
            self._ready = True

    def read(self, begin: int, end: int) -> np.ndarray:
        """The sums and shifts of local planes; waits for the device."""
        return self.statistics.read(begin, end)

    def write(self, state: np.ndarray, samples: int) -> None:
        """Continue with these sums and shifts."""
        self.statistics.write(state, samples)

    def copies(self) -> PlaneCopies:
        """Copies of the sums and shifts."""
        return self.context.copies.sums(self.statistics)

    def over_planes(self, before: Moments | None) -> Moments:
        """The moments of the planes, added one after another."""
        return self.statistics.over_planes(before)

    def results(self, merged: Moments) -> Fields:
        """The fields of `Sampled.fields`."""
        return merged.fields(self.context.case.labels)

    def of_planes(self) -> PlaneCopies:
        """Means and products; the device computes those of cells, the host those of lines."""
        if self.statistics.places.of_cells:
            return self.context.copies.means(self.statistics)
        return HostPlanes(self.results(self.statistics.moments(0, self.context.slab.planes)))

    def settle(self) -> None:
        """Nothing to wait for: reading the sums waits for the device."""

    def close(self) -> None:
        """Nothing is open between two samples."""


class SampleWriter:
    """Samples, writes files, and adds its sums to checkpoints (see outputs.Kept).

    Files are written at the last step and at multiples of `write`, from the first sample on.
    Checkpoints contain what the sums are, so that those of another definition are not continued.
    """

    def __init__(self, output: Averaged, sums: Sums, context: Context):
        self.output, self.sums, self.context = output, sums, context
        self.case, self.comm, self.values = context.case, context.comm, sums.values
        part = output.part_of_names(self.case)
        self.stem, self.label = f"{output.name}_{part}", f"{output.name}.{part}"
        self.over_planes = output.over_planes(self.case)
        self.definition = json.dumps(output.definition(self.case), sort_keys=True)
        self.first: int | None = None  # step of the first sample
        if context.checkpoint:
            together(self.comm, self._restore, context.checkpoint)
        context.kept.append(self)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes in a checkpoint, next to the sums; `first`: step of the first sample."""
        first = {} if self.first is None else {"first": self.first}
        return {"samples": self.sums.samples, "definition": self.definition, **first}

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
            if not same or group.attrs.get("definition", self.definition) != self.definition:
                self._report_no_sums()
            elif samples := int(group.attrs["samples"]):
                planes = [data for _, data in read_planes(group["sums"], self.context.slab)]
                self.sums.write(np.concatenate(planes), samples)
                self.first = int(group.attrs["first"])

    def _report_no_sums(self) -> None:
        first, begin = self.context.first_step, self.output.begin or 0
        if self.comm.rank == 0 and first and first >= begin:
            self.context.say(
                f"warning: {self.context.checkpoint} holds no sums for {self.label}: its samples "
                f"begin after step {first}, not at step {begin}"
            )

    def write(self, step: int) -> None:
        """Sample the flow and write files, each if it is due at this step; collective."""
        if self.output.sampled(step):
            self.sums.sample()
            self.first = step if self.first is None else self.first
        every = self.output.write
        due = step == self.context.last_step or (every is not None and step % every == 0)
        if due and self.first is not None:
            self._write_files(step, self.first)

    def _write_files(self, step: int, first: int) -> None:
        together(self.comm, self.sums.settle)
        name, files = f"{self.stem}_{step:09d}", self.context.files
        head = Head(
            case=self.case,
            axes=self.output.axes(self.case.dimensions),
            average=self.output.average,
            step=step,
            first=first,
            samples=self.sums.samples,
        )
        merged = self._merged() if self.over_planes else None
        planes = None if self.over_planes else self.sums.of_planes()
        for kind in self.output.kinds(head):
            if files.in_threads:
                self._write_in_threads(name, kind, merged, planes)
                continue
            with files.create(f"{name}.{kind.suffix}", kind.describe) as file:
                for path, (field, made) in kind.targets.items():
                    if planes is not None:
                        file.write(path, partial(_values, planes, field, made))
                    elif merged is not None:
                        file.put(path, made(merged[field]).reshape(file.places[path].shape))
                file.commit()
        if self.output.has_table(self.case):
            table = merged if planes is None else self._gathered(planes)
            on_root(self.comm, write_table, self.context.directory / f"{name}.csv", head, table)

    def _write_in_threads(
        self, name: str, kind: SampleFile, merged: Fields | None, planes: PlaneCopies | None
    ) -> None:
        """Threads write the planes of this rank, while the time steps continue."""
        context, file_name = self.context, f"{name}.{kind.suffix}"
        create = partial(context.files.create_own, file_name, kind.describe)
        job = context.background.begin(create)
        if planes is not None:
            for begin, end in planes.blocks(context.slab.planes):
                piece = planes.start(begin, end)
                job.add(piece, partial(_store, job.file, kind.targets, begin))
        elif self.comm.rank == 0:
            job.add(nullcontext(merged), partial(_put, job.file, kind.targets))
        job.end([job.file.flush])

    def _merged(self) -> Fields:
        """The fields of all planes together, merged plane by plane and rank by rank."""
        found: Any = None
        for slab in self.context.slabs:
            own = self.sums.over_planes if slab.rank == self.comm.rank else _unchanged
            found = together(self.comm, own, found)
            found = self.comm.bcast(found, root=slab.rank)
        return self.sums.results(found)

    def _gathered(self, planes: PlaneCopies) -> Fields | None:
        """The fields of all slabs, on rank 0; they have few places in a plane."""
        with planes.start(0, self.context.slab.planes) as fields:
            parts = self.comm.gather(fields)
        if parts is None:
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""
        self.sums.close()


def _unchanged(value: Any) -> Any:
    return value


def _values(planes: PlaneCopies, field: str, made: Any, begin: int, end: int) -> np.ndarray:
    """A dataset of local planes, made from a field."""
    found = []
    for first, last in planes.blocks(end - begin):
        with planes.start(begin + first, begin + last) as fields:
            found.append(made(fields[field]).copy())
    return np.concatenate(found)


def _store(file: OwnFile, targets: Targets, begin: int, fields: Fields) -> None:
    """Write fields of local planes; in any thread."""
    for path, (field, made) in targets.items():
        file.store(path, begin, np.ascontiguousarray(made(fields[field])))


def _put(file: OwnFile, targets: Targets, fields: Fields) -> None:
    """Write fields that have no planes, on rank 0; in any thread."""
    for path, (field, made) in targets.items():
        file.file.put(path, made(fields[field]).reshape(file.places[path].shape))
