"""The sums of the output `statistics` during a run, and the profiles computed from them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.outputs import Context
from mpilbm.outputs.profile_files import Head, describe, write_table
from mpilbm.outputs.restart import opened, read_planes
from mpilbm.parallel.agree import on_root, together
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.flow_statistics import Moments, merged
from mpilbm.system import terminal

if TYPE_CHECKING:
    import h5py


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The directions that are averaged, and the steps of samples and files.

    average, axes   directions that are averaged and, like "y", those that are not
    along           whether x and the rows of a plane are averaged
    every, start    steps between samples, and the first step that may be one
    write           steps between files; None: only at the end
    """

    average: tuple[str, ...]
    axes: str
    along: tuple[bool, bool]
    every: int
    start: int
    write: int | None

    @property
    def label(self) -> str:
        """The axes in names of files; "all" if all directions are averaged."""
        return self.axes or "all"


class StatisticsWriter:
    """Samples, writes profiles, and adds its sums to checkpoints (see outputs.Kept)."""

    def __init__(self, sampling: Sampling, context: Context):
        self.sampling, self.context, self.comm = sampling, context, context.comm
        self.D, self.axes = context.case.dimensions, sampling.axes
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
        case, name = self.context.case, f"statistics_{self.sampling.label}_{step:09d}"
        head = Head(
            case=case, axes=self.axes, average=self.sampling.average, step=step, first=first,
            samples=self.sums.samples,
        )  # fmt: skip
        # planes of the box are planes of the profile, unless they are averaged
        averaged = self._averaged() if AXES[self.D - 1] in self.sampling.average else None
        sample = self._profile(0, 1) if averaged is None else averaged

        def create(file: "h5py.File") -> None:
            describe(file, head, sample)

        with self.context.files.create(f"{name}.h5", create) as file:
            for field in sample:
                if averaged is None:
                    file.write(field, partial(self._field, field))
                else:
                    file.put(field, averaged[field])
            file.commit()
        if len(self.axes) <= 1:
            table = self._gathered() if averaged is None else averaged
            on_root(self.comm, write_table, self.context.directory / f"{name}.csv", head, table)

    def _profile(self, begin: int, end: int) -> dict[str, np.ndarray]:
        """Fields of local planes, (planes, …): only the directions that are not averaged."""
        fields = self.sums.moments(begin, end).fields()
        return {name: self._reshaped(data, 0) for name, data in fields.items()}

    def _field(self, name: str, begin: int, end: int) -> np.ndarray:
        return self._profile(begin, end)[name]

    def _averaged(self) -> dict[str, np.ndarray]:
        """Fields averaged over all planes, merged plane by plane and rank by rank."""
        found: Moments | None = None
        for slab in self.context.slabs:
            if slab.rank == self.comm.rank:
                for plane in range(slab.planes):
                    found = merged(self.sums.moments(plane, plane + 1), 0, found)
            found = self.comm.bcast(found, root=slab.rank)
        assert found is not None, "each box has a slab"
        return {name: self._reshaped(data, 1) for name, data in found.fields().items()}

    def _reshaped(self, data: np.ndarray, removed: int) -> np.ndarray:
        """The data without the axes that are averaged and, in 2D, without the row.

        `data` lacks the first `removed` axes of (z, y, x), in 2D of (y, row, x).
        """
        axes = ("zyx" if self.D == 3 else "y-x")[removed:]
        kept = [n for axis, n in zip(axes, data.shape, strict=False) if axis in self.axes]
        return data.reshape((*kept, *data.shape[len(axes) :]))

    def _gathered(self) -> dict[str, np.ndarray] | None:
        """The profile of all slabs, on rank 0."""
        parts = self.comm.gather(self._profile(0, self.context.slab.planes))
        if parts is None:
            return None
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def close(self) -> None:
        """Nothing is open between two samples."""
