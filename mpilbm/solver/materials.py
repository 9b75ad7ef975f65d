"""The materials of the cells of a slab, in which scalars are conducted."""

import numpy as np

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.codegen.scalar_numbers import MATERIAL, material_grid, table, table_name
from mpilbm.layouts import AnyGrid
from mpilbm.layouts.grid import Grid
from mpilbm.solids.build import Geometry


def material_tables(
    case: Case, geometry: Geometry, grid: AnyGrid, device: Device, compute: str
) -> dict[str, Array | int]:
    """The arguments of kernels that read materials: the number of each cell, a table per scalar.

    Empty if no body conducts a scalar. Ghost planes hold 0: kernels read the material of the cell
    that they update.
    """
    if not case.conductors or not isinstance(grid, Grid):
        return {}
    memory = material_grid(grid)
    numbers = np.zeros(1 + len(case.bodies), np.uint8)
    for k, body in enumerate(case.conductors):
        numbers[1 + body] = 1 + k
    cells = np.zeros(memory.count, np.uint8)
    for local, solid in enumerate(geometry.solid):
        for place, values in memory.planes_of(numbers[solid][None], local):
            cells[place : place + values.size] = values
    found: dict[str, Array | int] = dict(memory.arguments())
    found[MATERIAL] = device.upload(cells)
    for k in range(len(case.scalars)):
        rows = np.array(table(case.scalars[k], case.conductors), compute)
        found[table_name(f"_of_{k + 1}")] = device.upload(rows.ravel())
    return found
