"""Bytes that a slab takes on its device, known before anything is allocated."""

import numpy as np

from mpilbm.layouts.grid import velocity_grid

# cell int64, missing uint32, value int32, start int64
ENTRY_BYTES = 24


def bytes_needed(case, slab, entries: int = 0, links: int = 0) -> dict[str, int]:
    """Bytes of a slab's arrays by what they hold: populations, velocity (for sums), flags, lists.

    `entries` and `links` count what the boundary lists of the slab hold.
    """
    planes, (rows, nx) = slab.planes, slab.shape[1:]
    storage, compute = (
        np.dtype(kind).itemsize for kind in (case.precision.storage, case.precision.compute)
    )
    grid = case.layout.grid(case.lattice, planes, rows, nx)
    velocity = velocity_grid(case.lattice, case.layout.ghost, planes, rows, nx)
    return {
        "populations": case.layout.buffers * grid.count * storage,
        "velocity": velocity.count * compute,
        "flags": planes * rows * nx,
        "boundary lists": entries * ENTRY_BYTES + links * storage,
    }


def require(device, case, slab, lists=()) -> None:
    """CaseError unless the arrays of a slab with these lists of entries fit the device."""
    entries = sum(each.cells.size for each in lists)
    bits = sum(np.unpackbits(each.missing.view(np.uint8)).sum(dtype=np.int64) for each in lists)
    needed = sum(bytes_needed(case, slab, entries, int(bits)).values())
    device.require(needed, "the fields of a slab")
