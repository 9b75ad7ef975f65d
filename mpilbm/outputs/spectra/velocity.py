"""The transform of the velocity of a run: in which boxes it exists, its memory, its first part."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

import numpy as np

from mpilbm.backends import memory
from mpilbm.case.case import Case
from mpilbm.core.errors import CaseError
from mpilbm.core.units import in_words
from mpilbm.outputs import Context
from mpilbm.outputs.spectra import COLUMNS, Shells, Waves
from mpilbm.parallel import together
from mpilbm.parallel.ranks import local_rank
from mpilbm.storage.background import THREADS
from mpilbm.storage.planes import BLOCK_BYTES, blocks


def box_problems(case: Case) -> list[str]:
    """Boxes in which the flow is not a sum of waves at all nodes."""
    found, domain = [], case.domain
    if not all(domain.periodic):
        found.append(
            f"requires a box that is periodic in all directions, found "
            f"domain.periodic = {str(list(domain.periodic)).lower()}"
        )
    if case.bodies:
        found.append("requires a box without bodies; remove the output or the bodies")
    if case.lattice.staggered:
        found.append(
            "requires a lattice that stores all nodes: interpolated ones would weaken short "
            "waves; choose D3Q19 or D3Q27"
        )
    if min(domain.size) < 2:
        found.append(f"requires at least 2 cells along each axis, found {list(domain.size)}")
    return found


def host_bytes(case: Case, planes: int, transfer: bool = False) -> int:
    """Bytes of the host during a transform: waves, and a block of columns or of planes.

    An upper bound, checked with tracemalloc; `transfer`: see with_transfer.
    """
    D, (all_planes, rows, nx) = case.dimensions, case.shape
    columns = rows * (nx // 2 + 1)
    arrays = 2 * D if transfer else D
    waves = 16 * arrays * planes * columns
    in_columns = 16 * 4 * arrays * all_planes * min(COLUMNS, columns)
    product = 8 * rows * nx * 2 * arrays  # of a plane, for the transfer
    component = 8 * rows * nx * min(planes, THREADS[1])  # of a plane in each thread
    in_planes = 3 * max(min(planes * product, BLOCK_BYTES), product, component)
    return waves + max(in_columns, in_planes)


class VelocityWaves:
    """The transforms along x and y of each component of u, computed while the steps continue.

    ```
    bulk stream  | steps | copy of u | steps …
    threads              | along x and y |
    all ranks                            | from the next sample on: along z, shells |
    ```

    The waves of one step exist at a time: `start` completes the samples before it.
    """

    def __init__(self, context: Context, transfer: bool = False):
        """CaseError unless there is a velocity, and memory on the host; collective."""
        self.context, self.shells = context, Shells(context.case.shape)
        if "u" not in context.solver.field_names:
            raise CaseError("this flow has no velocity 'u'", "output.name", context.case.path)
        require_host(context, transfer)
        self._threads = ThreadPoolExecutor(context.background.threads, "mpilbm-waves")
        self._work: list[Future] = []
        self._waves: list[Waves] | None = None

    def start(self) -> None:
        """Enqueue copies of u at this step, and their transforms in threads; collective."""
        context, planes = self.context, self.context.slab.planes
        if self._waves is not None:
            context.samples.settle()
        context.solver.prepare(("u",))
        copies = context.copies.fields(("u",))
        shape = planes, self.shells.columns
        self._waves = [np.empty(shape, np.complex128) for _ in range(context.case.dimensions)]
        for begin, end in copies.blocks(planes):
            piece = copies.start(begin, end)
            work = self._threads.submit(self._transform, piece, self._waves, begin, end)
            self._work.append(work)

    def _transform(
        self, piece: AbstractContextManager, waves: list[Waves], begin: int, end: int
    ) -> None:
        """Transform some planes, a few at a time, in a thread."""
        _, rows, nx = self.context.case.shape
        with piece as fields:
            for first, last in blocks(end - begin, 8 * rows * nx * THREADS[1]):
                u = fields["u"][first:last].reshape(last - first, rows, nx, -1)
                for axis, each in enumerate(waves):
                    values = u[..., axis].astype(np.float64)
                    each[begin + first : begin + last] = self.shells.in_planes(values)

    def take(self) -> list[Waves]:
        """The waves (planes, columns) of each component, once for each `start`; collective."""
        waves, self._waves = self._waves, None
        assert waves is not None, "follows start"
        together(self.context.comm, self._finish)
        return waves

    def _finish(self) -> None:
        work, self._work = self._work, []
        for each in work:
            each.result()

    def close(self) -> None:
        """End the threads; waits for no work."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def require_host(context: Context, transfer: bool = False) -> None:
    """CaseError unless the memory of the host suffices; collective."""
    case, ranks = context.case, local_rank(context.comm)[1]

    def check() -> None:
        needed, (free, _) = host_bytes(case, context.slab.planes, transfer), memory.least()
        if needed > free // ranks:
            need = f"{in_words(needed)} of main memory per rank"
            problem = f"needs {need}, but {in_words(free // ranks)} are free"
            text = f"the Fourier transform of the velocity {problem}; use more machines, or remove "
            raise CaseError(f"{text}the output", "output", case.path)

    together(context.comm, check)
