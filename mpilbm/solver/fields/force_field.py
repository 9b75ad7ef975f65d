"""A force that is given for each cell, as an array of the device."""

from collections.abc import Iterator

import numpy as np

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.codegen.program import FORCE
from mpilbm.core.formulas.values import FieldValue
from mpilbm.layouts import AnyGrid
from mpilbm.parallel.slabs import Slab
from mpilbm.solids.build import Geometry
from mpilbm.solver.timed_values import TimedArray

PART_CELLS = 2**20  # whose force the host evaluates together


class ForceField:
    """The force in the cells of a slab and of its ghost planes.

    After t steps the array holds the force at time t; in a step it is replaced after the boundary
    lists, which use the force at t, and before the collision, which uses the force at t + 1. A
    force that does not depend on time is copied once.

    arguments  the array and the numbers of its memory, by the name of the kernel argument
    timed      whether it changes with time
    """

    def __init__(
        self, case: Case, slab: Slab, geometry: Geometry, grid: AnyGrid, device: Device, type: str
    ):
        self._case, self._slab, self._geometry = case, slab, geometry
        self._grid, self._type = grid.beside(FORCE, case.dimensions), type
        self._values = [value.field for value in case.force_on(0)]
        self.timed = any(value is not None and value.timed for value in self._values)
        self._array: Array = device.upload(self._at(0))
        self._copies = TimedArray(device, device.stream("bulk"), self._array, self._at)
        numbers = self._grid.arguments().items()
        self.arguments = {name: number for name, number in numbers if name.startswith(FORCE)}
        self.arguments[FORCE] = self._array

    @classmethod
    def of(
        cls, case: Case, slab: Slab, geometry: Geometry, grid: AnyGrid, device: Device, type: str
    ) -> "ForceField | None":
        """The field of a case; None if its force has no array. Raises CaseError."""
        by_cell = any(value.field for value in case.force_on(0))
        return cls(case, slab, geometry, grid, device, type) if by_cell else None

    def update(self, t: int) -> None:
        """Enqueue the force at time t; before step 0 that at t = 0."""
        if self.timed:
            self._copies.update(max(t, 0))

    def _at(self, t: float) -> np.ndarray:
        """The array at time t."""
        found = np.zeros(self._grid.count, self._type)
        for local, count in self._parts():
            plane = self._slab.global_plane(local)
            if plane is None:
                continue
            numbers = self._planes(plane, plane + count, t)
            for k in range(count):
                for place, values in self._grid.planes_of(numbers[:, k], local + k, self._geometry):
                    found[place : place + values.size] = values
        return found

    def _parts(self) -> Iterator[tuple[int, int]]:
        """(first local plane, number of planes) of the ghost planes and the slab's own ones."""
        ghost, planes = self._grid.ghost, self._slab.planes
        for local in (*range(-ghost, 0), *range(planes, planes + ghost)):
            yield local, 1
        for begin, end in self._slab.blocks(PART_CELLS):
            yield begin, end - begin

    def _planes(self, begin: int, end: int, t: float) -> np.ndarray:
        """The force in global planes begin … end - 1, (D, n, rows, nx); 0 for other components."""
        found = np.zeros((len(self._values), end - begin, *self._slab.shape[1:]))
        read: dict[int, np.ndarray] = {}  # the numbers of a field, which components share
        for k, value in enumerate(self._values):
            if isinstance(value, FieldValue):
                key = id(value.field)
                if key not in read:
                    read[key] = value.field.planes(begin, end, t)
                found[k] = read[key][..., value.component]
        return found
