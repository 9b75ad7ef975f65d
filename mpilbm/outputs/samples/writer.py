"""Samples the flow, writes means of all samples, and adds its sums to checkpoints."""

import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.outputs import Context, PlaneCopies
from mpilbm.outputs.core.restart import opened, read_planes
from mpilbm.outputs.samples.output import Averaged
from mpilbm.outputs.samples.profiles import Head, SampleFile, Targets, write_table
from mpilbm.outputs.samples.sums import Fields, Sums
from mpilbm.parallel.agree import on_root, together
from mpilbm.storage.planes import OwnFile


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
