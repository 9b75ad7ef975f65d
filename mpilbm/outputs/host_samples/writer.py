"""Adds samples of rho and u to numbers of the host while the time steps continue."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.outputs import Context
from mpilbm.outputs.averages.forms import Image, Target, put, store
from mpilbm.outputs.averages.profile_files import Head
from mpilbm.outputs.core.restart import opened, read_planes
from mpilbm.outputs.host_samples.plane_sums import Fields, PlaneSums, with_planes
from mpilbm.parallel.agree import together
from mpilbm.physics.lattices import AXES
from mpilbm.storage.partial_file import Describe
from mpilbm.storage.places import dataset
from mpilbm.storage.planes import PlaneFile

if TYPE_CHECKING:
    import h5py

FIELDS = ("rho", "u")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a sampled output writes, and when.

    stem          the names of its files without step and suffix
    label         the name of its group in checkpoints
    sums          the numbers of a plane
    over_planes   whether planes are averaged
    samples_at    whether a step is sampled
    writes_at     whether a file is written at a step, besides the last one
    describe      adds coordinates, units and attributes to a file; arguments: file, step
    head          the description of a profile; arguments: step, steps of the first sample, samples
    image, plain  the VTKHDF file that is written, and whether plain HDF5 is written
    """

    stem: str
    label: str
    sums: PlaneSums
    over_planes: bool
    samples_at: Callable[[int], bool]
    writes_at: Callable[[int], bool]
    describe: Callable[["h5py.File", int], None]
    head: Callable[[int, int, int], Head]
    image: Image | None = None
    plain: bool = True


class HostSamples:
    """Samples, writes files, and adds its numbers to checkpoints (see outputs.Kept).

    ```
    bulk stream   | steps | copy 1 | steps | copy 2 | steps …
    threads                        | add 1 |        | add 2 | …
    ```

    Each thread adds the copies of the same planes in their order. If threads are slower than the
    steps, the steps wait when the memory of `Context.copies` is full.
    """

    def __init__(self, plan: Plan, context: Context):
        self.plan, self.context, self.comm = plan, context, context.comm
        self.label, self.values = plan.label, plan.sums.values
        self.samples = 0
        self.first: int | None = None  # step of the first sample
        self.state = np.zeros((context.slab.planes, self.values))
        threads = context.background.threads
        self._threads = [ThreadPoolExecutor(1, "mpilbm-samples") for _ in range(threads)]
        self._work: list[Future] = []
        if context.checkpoint:
            together(self.comm, self._restore, context.checkpoint)
        context.kept.append(self)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes in a checkpoint; `first`: step of the first sample."""
        first = {} if self.first is None else {"first": self.first}
        return {"samples": self.samples, **first}

    def read(self, begin: int, end: int) -> np.ndarray:
        """The numbers of local planes, with all samples."""
        self._settle()
        return self.state[begin:end].copy()

    def copies(self) -> "KeptPlanes":
        """These numbers for a checkpoint; collective."""
        together(self.comm, self._settle)
        return KeptPlanes(self.state)

    def _restore(self, checkpoint: Path) -> None:
        with opened(checkpoint) as file:
            if self.label not in file:
                self._report_no_sums()
                return
            group = file[self.label]
            found = [data for _, data in read_planes(group["sums"], self.context.slab)]
            state = np.concatenate(found)
            if state.shape != self.state.shape:
                self._report_no_sums()
            elif samples := int(group.attrs["samples"]):
                self.state, self.samples = state, samples
                self.first = int(group.attrs["first"])

    def _report_no_sums(self) -> None:
        if self.comm.rank == 0:
            self.context.say(
                f"warning: {self.context.checkpoint} holds no sums for this {self.label}: its "
                f"samples begin after step {self.context.first_step}"
            )

    def write(self, step: int) -> None:
        """Sample the flow and write a file, each if it is due at this step; collective."""
        if self.plan.samples_at(step):
            self._sample()
            self.first = step if self.first is None else self.first
        due = step == self.context.last_step or self.plan.writes_at(step)
        if due and self.first is not None:
            self._write_file(step)

    def _sample(self) -> None:
        """Enqueue copies of the planes of this rank, and their addition in threads."""
        context = self.context
        context.solver.prepare(FIELDS)
        copies = context.copies.fields(FIELDS)
        for k, (begin, end) in enumerate(copies.blocks(context.slab.planes)):
            thread = self._threads[k % len(self._threads)]  # the same one in each sample
            piece = copies.start(begin, end)
            self._work.append(thread.submit(self._add, piece, begin, end))
        self.samples += 1
        self._work = [each for each in self._work if not each.done() or each.exception()]

    def _add(self, piece: AbstractContextManager, begin: int, end: int) -> None:
        """Add some planes of a sample, in a thread."""
        with piece as fields:
            for k in range(begin, end):
                rho, u = fields["rho"][k - begin], fields["u"][k - begin]
                plane = np.empty((1 + u.shape[-1], *rho.shape))
                plane[0], plane[1:] = rho, np.moveaxis(u, -1, 0)
                plane[0] -= 1  # so that the fluctuations of rho keep their digits
                (solid,) = self.context.solver.solid(k, k + 1)
                self.plan.sums.add(self.state[k], plane, solid if solid.any() else None)

    def _settle(self) -> None:
        """Wait until all samples are added; raises the error of a thread."""
        work, self._work = self._work, []
        for each in work:
            each.result()

    def _write_file(self, step: int) -> None:
        together(self.comm, self._settle)
        context, plan = self.context, self.plan
        fields = self._merged() if plan.over_planes else with_planes(plan.sums.results, self.state)
        for suffix, describe, targets in self._forms(step):
            name = f"{plan.stem}_{step:09d}.{suffix}"
            if context.files.in_threads:
                job = context.background.begin(partial(context.files.create_own, name, describe))
                if not plan.over_planes:
                    job.add(nullcontext(fields), partial(store, job.file, targets, 0))
                elif self.comm.rank == 0:
                    job.add(nullcontext(fields), partial(put, job.file, targets))
                job.end([job.file.flush])
            else:
                with context.files.create(name, describe) as file:
                    write_and_wait(file, targets, fields, plan.over_planes)

    def _forms(self, step: int) -> Iterator[tuple[str, Describe, dict[str, Target]]]:
        """The suffix, description and datasets of each kind of file."""
        plan = self.plan
        if plan.plain:
            targets = {name: Target(name, np.asarray) for name in plan.sums.shapes}
            yield "h5", partial(self._describe, step), targets
        if plan.image:
            assert self.first is not None, "files follow samples"
            head = plan.head(step, self.first, self.samples)
            yield "vtkhdf", partial(plan.image.describe, head=head), plan.image.targets(head)

    def _merged(self) -> Fields:
        """The datasets of all planes together, merged plane by plane and rank by rank."""
        found: np.ndarray | None = None
        for slab in self.context.slabs:
            if slab.rank == self.comm.rank:
                for sums in self.state:
                    found = sums.copy() if found is None else self.plan.sums.merge(found, sums)
            found = self.comm.bcast(found, root=slab.rank)
        assert found is not None, "each box has a slab"
        return self.plan.sums.results(found)

    def _describe(self, step: int, file: "h5py.File") -> None:
        planes = () if self.plan.over_planes else (self.context.slab.shape[0],)
        for name, shape in self.plan.sums.shapes.items():
            dataset(file, name, (*planes, *shape), np.float64)
        file.attrs["samples"], file.attrs["step"] = self.samples, step
        file.attrs["first_step"] = self.first
        self.plan.describe(file, step)

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)


class KeptPlanes:
    """Numbers of planes on the host, for a checkpoint, as they are now."""

    def __init__(self, state: np.ndarray):
        self._state = state.copy()

    def blocks(self, planes: int) -> list[tuple[int, int]]:
        """Ranges (begin, end) of planes that are written at a time."""
        return [(0, planes)]

    @contextmanager
    def start(self, begin: int, end: int) -> Iterator[Fields]:
        """These planes, "sums"."""
        yield {"sums": self._state[begin:end]}


def write_and_wait(
    file: PlaneFile, targets: dict[str, Target], fields: Fields, over_planes: bool
) -> None:
    """Write all datasets together with the other ranks; collective."""
    for path, (name, made) in targets.items():
        if over_planes:
            file.put(path, made(fields[name]).reshape(file.places[path].shape))
        else:
            file.write(path, partial(_planes_of, made(fields[name])))
    file.commit()


def _planes_of(data: np.ndarray, begin: int, end: int) -> np.ndarray:
    return data[begin:end]


def homogeneous(D: int, average: tuple[str, ...]) -> tuple[tuple[bool, bool], bool]:
    """Whether the rows of a plane and x are averaged, and whether planes are."""
    return (D == 2 or "y" in average, "x" in average), AXES[D - 1] in average
