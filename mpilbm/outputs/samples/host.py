"""Samples of rho and u that threads of the host add while the time steps continue."""

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from math import prod
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mpilbm.backends import memory
from mpilbm.case.case import Case
from mpilbm.core.units import DENSITY, VELOCITY
from mpilbm.outputs import Context, PlaneCopies
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.samples import Averaged, Directions, FileSteps, Head, SampleFile, plain
from mpilbm.outputs.samples.writer import Fields, HostPlanes, SampleWriter
from mpilbm.parallel import together
from mpilbm.parallel.ranks import local_rank

if TYPE_CHECKING:
    import h5py

SAMPLED = ("rho", "u")  # the fields that the host gets


class PlaneSums(Protocol):
    """The numbers of a plane, float64 (values,), 0 before the first sample.

    A plane is always evaluated alone and by the same operations, and samples and planes are added
    in their order: so the results do not depend on the ranks in a single bit.
    """

    @property
    def values(self) -> int:
        """How many numbers a plane has."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The datasets of `results`, and their shapes for one plane."""

    def add(self, sums: np.ndarray, plane: np.ndarray, solid: np.ndarray | None) -> None:
        """Add a sample (1 + D, rows, nx) of rho - 1 and u; `solid` (rows, nx), None without it."""

    def merge(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The numbers of two planes together."""

    def results(self, sums: np.ndarray) -> Fields:
        """The datasets for one plane, or for planes together."""


class HostSums:
    """Adds samples of rho and u to numbers of the host while the time steps continue.

    ```
    bulk stream   | steps | copy 1 | steps | copy 2 | steps …
    threads                        | add 1 |        | add 2 | …
    ```

    Each thread adds the copies of the same planes in their order. If threads are slower than the
    steps, the steps wait when the memory of `Context.copies` is full. What reads the numbers
    follows `settle`.
    """

    def __init__(self, context: Context, sums: PlaneSums):
        self.context, self.sums, self.values = context, sums, sums.values
        self.samples = 0
        self.state = np.zeros((context.slab.planes, self.values))
        threads = context.background.threads
        self._threads = [ThreadPoolExecutor(1, "mpilbm-samples") for _ in range(threads)]
        self._work: list[Future] = []

    def sample(self) -> None:
        """Enqueue copies of the planes of this rank, and their addition in threads; collective."""
        context = self.context
        context.solver.prepare(SAMPLED)
        copies = context.copies.fields(SAMPLED)
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
                self.sums.add(self.state[k], plane, solid if solid.any() else None)

    def settle(self) -> None:
        """Wait until all samples are added; raises the error of a thread."""
        work, self._work = self._work, []
        for each in work:
            each.result()

    def read(self, begin: int, end: int) -> np.ndarray:
        """A copy of the numbers of local planes."""
        return self.state[begin:end].copy()

    def write(self, state: np.ndarray, samples: int) -> None:
        """Continue with these numbers."""
        self.state, self.samples = state, samples

    def copies(self) -> PlaneCopies:
        """The numbers as they are now."""
        return HostPlanes({"sums": self.state.copy()})

    def over_planes(self, before: np.ndarray | None) -> np.ndarray:
        """The numbers of the planes, merged one after another."""
        found = before
        for sums in self.state:
            found = sums.copy() if found is None else self.sums.merge(found, sums)
        assert found is not None, "each slab has planes"
        return found

    def results(self, merged: np.ndarray) -> Fields:
        """The datasets of the numbers of planes together."""
        return self.sums.results(merged)

    def of_planes(self) -> PlaneCopies:
        """The datasets of each plane."""
        return HostPlanes(with_planes(self.sums.results, self.state))

    def close(self) -> None:
        """Discard samples that are not added yet; waits for nothing."""
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)


def with_planes(results: Callable[[np.ndarray], Fields], state: np.ndarray) -> Fields:
    """The datasets of planes (planes, …) from their numbers (planes, values)."""
    found: Fields = {}
    for plane, sums in enumerate(state):
        for name, data in results(sums).items():
            if name not in found:
                found[name] = np.empty((len(state), *data.shape))
            found[name][plane] = data
    return found


class HostSampled(Averaged, Scheduled):
    """Samples of rho and u that the host adds at multiples of `every` from `begin` to `end`.

    A file is also written at the last step of the run.
    """

    average: Directions = ()
    write: FileSteps = None

    @abstractmethod
    def sums(self, case: Case) -> PlaneSums:
        """The numbers of a plane."""

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

    def part_of_names(self, case: Case) -> str:
        """The label, or the number of this output."""
        return self.label_in(case)

    def disk_bytes(self, case: Case, times: int) -> int:
        """The datasets of all files."""
        planes = 1 if self.over_planes(case) else case.shape[0]
        return self.file_count(times) * 8 * planes * sum(map(prod, self.sums(case).shapes.values()))

    def kept_bytes(self, case: Case) -> int:
        """The numbers of all planes."""
        return 8 * case.shape[0] * self.sums(case).values

    def host_bytes(self, case: Case, planes: int) -> int:
        """The numbers of its planes, and their copy for a checkpoint or the arrays of a file."""
        sums = self.sums(case)
        of_file = sum(map(prod, sums.shapes.values())) * (not self.over_planes(case))
        return 8 * planes * (sums.values + max(sums.values, of_file))

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernel of rho and u."""
        return ("fields",)

    def stages(self, case: Case) -> bool:
        """The host gets copies of rho and u."""
        return True

    def open(self, context: Context) -> SampleWriter:
        """Continues with the numbers of the checkpoint, if the run starts from one."""
        case = context.case
        needed, sharing = self.host_bytes(case, context.slab.planes), local_rank(context.comm)[1]
        what = f"the output '{self.name}'"
        together(context.comm, memory.require, needed, sharing, what, case.path)
        return SampleWriter(self, HostSums(context, self.sums(case)), context)

    def kinds(self, head: Head) -> list[SampleFile]:
        """Plain HDF5 with the datasets of `sums`."""
        planes = () if self.over_planes(head.case) else (head.case.shape[0],)
        shapes = {name: (*planes, *each) for name, each in self.sums(head.case).shapes.items()}
        return [plain(head, shapes, unit_of, lambda file: self.describe(head.case, file))]

    def describe(self, case: Case, file: "h5py.File") -> None:
        """Add datasets and attributes besides those of all profiles to a file; by default none."""


def unit_of(case: Case, name: str) -> tuple[float, str]:
    """The SI value of the lattice unit of a dataset, and its SI unit; (1, "") without one."""
    units = case.units
    if units is None or name.endswith(("skewness", "flatness")):
        return 1.0, ""
    rho = "rho" in name.split("_")
    unit = units.unit(DENSITY if rho else VELOCITY)
    if name.startswith(("spectrum", "correlation")) or name.endswith("variance"):
        return unit**2, "kg^2/m^6" if rho else "m^2/s^2"
    return unit, "kg/m^3" if rho else "m/s"
