"""Solid cells and the links beside them: shapes, surfaces, volumes and packings of spheres.

A body is a shape (`shapes/`), of which `surfaces/` and `volumes/` read files of triangles and of
voxels, or a mask. `solid_cells.py` computes its cells. `owners.py` and `missing_links.py` find
which boundary supplies the populations that the cells beside it lack. `build.py` does both for a
slab. To add a shape, write one file in `shapes/`.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
