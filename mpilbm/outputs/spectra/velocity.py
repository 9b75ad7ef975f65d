"""The transform of the velocity of a run: in which boxes it exists, its memory, its first part."""

from typing import TYPE_CHECKING

import numpy as np

from mpilbm.backends import memory
from mpilbm.errors import CaseError
from mpilbm.outputs.spectra.distributed import COLUMNS
from mpilbm.outputs.spectra.shells import Shells, Waves
from mpilbm.parallel.agree import together
from mpilbm.parallel.ranks import local_rank
from mpilbm.storage.planes import BLOCK_BYTES, blocks
from mpilbm.units import in_words

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.outputs import Context


def box_problems(case: "Case") -> list[str]:
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


def host_bytes(case: "Case", planes: int, transfer: bool = False) -> int:
    """Bytes of the host during a transform: waves, and a block of columns or of planes.

    An upper bound, checked with tracemalloc; `transfer`: see transfer.with_transfer.
    """
    D, (all_planes, rows, nx) = case.dimensions, case.shape
    columns = rows * (nx // 2 + 1)
    arrays = 2 * D if transfer else D
    waves = 16 * arrays * planes * columns
    in_columns = 16 * 4 * arrays * all_planes * min(COLUMNS, columns)
    plane = 8 * rows * nx * 2 * arrays
    in_planes = 3 * min(planes * plane, max(BLOCK_BYTES, plane))
    return waves + max(in_columns, in_planes)


def require_host(context: "Context", transfer: bool = False) -> None:
    """CaseError unless the memory of the host suffices; collective."""
    case, ranks = context.case, local_rank(context.comm)[1]

    def check() -> None:
        needed, (free, _) = host_bytes(case, context.slab.planes, transfer), memory.least()
        if needed > free // ranks:
            raise CaseError(
                f"the Fourier transform of the velocity needs {in_words(needed)} of main memory "
                f"per rank, but {in_words(free // ranks)} are free; use more machines, or remove "
                "the output", "output", case.path,
            )  # fmt: skip

    together(context.comm, check)


def velocity_waves(context: "Context", shells: Shells) -> list[Waves]:
    """The transforms along x and y of each component of u in the planes of this rank.

    Waits for the device; collective.
    """
    solver, planes, D = context.solver, context.slab.planes, context.case.dimensions
    solver.prepare(("u",))
    waves = [np.empty((planes, shells.columns), np.complex128) for _ in range(D)]
    _, rows, nx = context.case.shape
    for begin, end in blocks(planes, 8 * D * rows * nx):
        u = solver.fields(("u",), begin, end)["u"]
        for axis in range(D):
            waves[axis][begin:end] = shells.in_planes(u[..., axis].astype(np.float64))
    return waves
