"""The shares of cells that bodies fill, as a step uses them."""

import numpy as np

from mpilbm.codegen.program import SHARE
from mpilbm.layouts.grid import byte_grid
from support.slabs import Cluster


def shares(cluster: Cluster, name: str = SHARE) -> np.ndarray:
    """The array of a share or of body numbers, (planes, rows, nx)."""
    found = []
    for s in cluster.solvers:
        grid, array = byte_grid(SHARE, s.grid), s.device.download(s.context.tables[name])
        _, rows, nx = s.slab.shape
        for k in range(s.slab.planes):
            start = (k + grid.ghost) * grid.plane_stride
            own = array[start : start + rows * grid.row_stride].reshape(rows, grid.row_stride)
            found.append(own[:, :nx])
    return np.stack(found)
