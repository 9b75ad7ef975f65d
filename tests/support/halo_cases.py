"""Slabs with known values in each plane, and the result that a halo exchange must give."""

import numpy as np

from mpilbm.core.registry import make
from mpilbm.halo import Plan, Transfer
from mpilbm.parallel.slabs import split

SHAPE = (13, 5, 4)  # planes, rows, nx
CELLS = SHAPE[1] * SHAPE[2]
# (slots of a plane, format, slots that go up, slots that go down)
ARRAYS = (
    (5, np.float32, slice(3, 5), slice(0, 2)),
    (1, np.float64, slice(0, 1), slice(0, 1)),
    (3, np.float32, slice(2, 3), slice(0, 0)),  # goes up only
)


def slabs(ranks, periodic, planes=SHAPE[0]):
    return split((planes, *SHAPE[1:]), ranks, periodic)


def plan_of(slab):
    """A plan that copies slots of the planes next to a face into the neighbour's ghost plane."""
    sends, receives = [], []
    for number, (slots, _, up, down) in enumerate(ARRAYS):

        def piece(neighbour, plane, part, number=number, slots=slots):
            start = ((plane + 1) * slots + part.start) * CELLS
            return Transfer(neighbour, number, start, (part.stop - part.start) * CELLS)

        sends += [piece(+1, slab.planes - 1, up), piece(-1, 0, down)]
        receives += [piece(-1, -1, up), piece(+1, slab.planes, down)]
    return Plan(tuple(sends), tuple(receives))


def plane_values(plane, number, step):
    slots, dtype, _, _ = ARRAYS[number]
    random = np.random.default_rng([plane, number, step])
    return random.random((slots, CELLS)).astype(dtype)


def filled(slab, step):
    """Arrays (planes, slots, cells) with the values of the owned planes; ghost planes are -1."""
    arrays = []
    for number, (slots, dtype, _, _) in enumerate(ARRAYS):
        array = np.full((slab.planes + 2, slots, CELLS), -1, dtype)
        for local in range(slab.planes):
            array[local + 1] = plane_values(slab.begin + local, number, step)
        arrays.append(array)
    return arrays


def expected(slab, step):
    """The arrays of `filled` after an exchange."""
    arrays = filled(slab, step)
    for number, (_, _, up, down) in enumerate(ARRAYS):
        for local, part in ((-1, up), (slab.planes, down)):
            plane = slab.global_plane(local)
            if plane is not None:
                arrays[number][local + 1][part] = plane_values(plane, number, step)[part]
    return arrays


def device():
    return make("backends", "cpu").open()


class SlabExchange:
    """A slab, its device and its exchange; the exchange is reused with new values each step."""

    def __init__(self, slab, device, exchanger):
        self.slab, self.exchanger = slab, exchanger
        self.arrays = [device.upload(array) for array in filled(slab, 0)]
        self.exchange = exchanger.prepare(plan_of(slab), self.arrays)

    def fill(self, step):
        for array, values in zip(self.arrays, filled(self.slab, step), strict=True):
            array[:] = values.reshape(-1)

    def check(self, step):
        for array, values in zip(self.arrays, expected(self.slab, step), strict=True):
            np.testing.assert_array_equal(array.reshape(values.shape), values)
