"""Fields of a part of the box, cut and added on the device, so that only these are copied.

For devices with a memory of their own, for which functions of NumPy exist. A CPU cuts and adds in
the threads that write the file.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from math import prod

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.outputs import Context
from mpilbm.outputs.images import Fields, SingleCells, WholePlanes, is_sparse, numbers_of
from mpilbm.outputs.images.part import FLUID, OPEN, Group, Part, counted_cells, slices
from mpilbm.parallel import together
from mpilbm.solids.moving_cells import PlacedBodies
from mpilbm.solver.fields.diagnostics import Diagnostics, components
from mpilbm.solver.fields.staging import Copies, Sizes, Staging

SCRATCH_BYTES = 64 << 20  # of the fields of whole planes that are computed at a time


def scratch_planes(case: Case, names: Sequence[str], planes: int) -> int:
    """How many planes are computed at a time."""
    plane = _plane_values(case, names) * np.dtype(case.precision.compute).itemsize
    return min(max(1, SCRATCH_BYTES // plane), max(1, planes))


def _plane_values(case: Case, names: Sequence[str]) -> int:
    cells = case.shape[1] * case.shape[2]
    made = Diagnostics.made_for(names)
    return cells * sum(prod(components(name, case.lattice.D)) for name in made)


def scratch_bytes(case: Case, part: Part, names: Sequence[str], planes: int) -> int:
    """Bytes of device memory for a rank with `planes` planes, besides the blocks of copies."""
    count = scratch_planes(case, names, planes)
    size = count * _plane_values(case, names) * np.dtype(case.precision.compute).itemsize
    if part.stride == (1, 1, 1):
        return size
    mask = part.rows.count * part.x.count * prod(part.stride[1:]) if case.bodies else 0
    sums = Staging.bytes_of(sum_sizes(case, part, names)) if part.stride[0] > 1 else 0
    return size + count * sums + min(planes, part.planes.count * part.stride[0]) * mask


def sum_sizes(case: Case, part: Part, names: Sequence[str]) -> Sizes:
    """The sums of a plane of blocks, by name."""
    blocks, D = part.rows.count * part.x.count, case.lattice.D
    return {name: (blocks * prod(components(name, D)), "f8") for name in names}


def reduces(case: Case, part: Part) -> bool:
    """Whether a device with its own memory cuts or adds; a staggered lattice is filled in first."""
    return part.shape != case.shape and not case.lattice.staggered


def values_of(context: Context, part: Part, names: Sequence[str]) -> WholePlanes | SingleCells:
    """The way to compute the fields of a part that costs less."""
    if is_sparse(context.case, part):
        return SingleCells(context, part, names)
    device = context.solver.device
    if reduces(context.case, part) and not (device.unified or device.opaque):
        return DevicePart(context, part, names)
    return WholePlanes(context, part, names)


class PartSource:
    """A Source of planes of the part, or of the sums over blocks of it.

    `group` planes are added to one, beginning at the local plane `first`; 1: each plane is one.
    The order of all sums is that of part.py: the bits are those of NumPy on the host.
    """

    def __init__(self, owner: "DevicePart", group: int, first: int):
        self.owner, self.group, self.first = owner, group, first

    def sizes(self, planes: int) -> Sizes:
        """The values of so many planes by name, and their type."""
        owner = self.owner
        sizes = sum_sizes(owner.context.case, owner.part, owner.names)
        kind = "f8" if owner.means else owner.diagnostics.dtype
        return {name: (planes * count, kind) for name, (count, _) in sizes.items()}

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """Enqueue computing the planes from `begin` to `end`, and cutting or adding them."""
        owner, step = self.owner, self.owner.scratch_planes
        first, after = (self.first + self.group * k for k in (begin, end))
        found = {name: owner.blocks_of(name, array) for name, array in arrays.items()}
        for k in range(first, after, step):
            count = min(step, after - k)
            owner.diagnostics.enqueue(owner.scratch(count), k, k + count)
            for name, into in found.items():
                self._reduce(name, into, k, count, k - first)

    def _reduce(self, name: str, into: Array, begin: int, count: int, passed: int) -> None:
        """Enqueue cutting or adding a field of `count` planes, `passed` after those of `into`."""
        owner = self.owner
        cells = owner.cells(name, count)
        fluid = owner.fluid(begin, begin + count) if owner.means else None
        direct = into[passed : passed + count] if self.group == 1 else owner.sums(name, count)
        add = np.maximum if name in numbers_of(owner.context.case) else np.add

        def work() -> None:
            if not owner.means:
                direct[...] = cells
                return
            if fluid is not None:
                np.multiply(cells, fluid.reshape(*fluid.shape, *(1,) * (cells.ndim - 3)), out=cells)
            for number, part in enumerate(slices(cells, owner.part.stride[1:])):
                if number == 0:
                    direct[...] = part
                else:
                    add(direct, part, out=direct)
            for k in range(count if self.group > 1 else 0):
                block, place = divmod(passed + k, self.group)
                total = into[block]
                if place == 0:
                    total[...] = direct[k]
                else:
                    add(total, direct[k], out=total)

        owner.device.submit(work, owner.diagnostics.context.bulk)

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """The blocks (end - begin, rows, x) and components."""
        return {name: self.owner.blocks_of(name, array) for name, array in flat.items()}


class DevicePart(WholePlanes):
    """As WholePlanes, with fields that the device cuts, or adds over blocks."""

    def __init__(self, context: Context, part: Part, names: Sequence[str]):
        super().__init__(context, part, names)
        self.diagnostics, self.device = context.solver.diagnostics, context.solver.device
        self.begin, self.end = part.own_planes(context.slab)
        self.means, self._ready = part.stride != (1, 1, 1), False
        planes = max(1, self.end - self.begin)
        self.scratch_planes = scratch_planes(context.case, self.names, planes)

    def prepare(self) -> None:
        """Compute what `start` needs; the first time also allocate memory. Collective."""
        if not self._ready:
            together(self.context.comm, self._allocate)
            self._ready = True
        super().prepare()

    def _allocate(self) -> None:
        needed = scratch_bytes(self.context.case, self.part, self.names, self.end - self.begin)
        self.device.require(needed, "the parts of the box that are written")
        assert self._scratch is not None
        if self.part.stride[0] > 1:
            assert self._sums is not None
        if self.means:
            _ = self._fluid

    @cached_property
    def _scratch(self) -> dict[str, Array]:
        return self.diagnostics.arrays(self.names, self.scratch_planes)

    @cached_property
    def _sums(self) -> dict[str, Array]:
        sizes = sum_sizes(self.context.case, self.part, self.names)
        return {
            name: self.device.allocate(self.scratch_planes * count, kind)
            for name, (count, kind) in sizes.items()
        }

    @cached_property
    def _fluid(self) -> Array | None:
        """True in fluid cells of the part on this rank; None if all are fluid."""
        solid = self.solid(self.begin, self.end)
        return self.device.upload(~solid).reshape(solid.shape) if solid.any() else None

    def scratch(self, planes: int) -> dict[str, Array]:
        """Arrays for the fields of so many whole planes."""
        values = self.diagnostics.values
        return {name: array[: planes * values(name)] for name, array in self._scratch.items()}

    def cells(self, name: str, planes: int) -> Array:
        """The cells of the part in the first planes of the scratch memory, (planes, rows, nx)."""
        diagnostics = self.diagnostics
        shape = planes, diagnostics.rows, diagnostics.nx, *diagnostics.components(name)
        return self.scratch(planes)[name].reshape(shape)[self.cut]

    def sums(self, name: str, planes: int) -> Array:
        """Scratch memory for the sums of a field over blocks in planes."""
        return self.blocks_of(name, self._sums[name])[:planes]

    def blocks_of(self, name: str, flat: Array) -> Array:
        """An array as planes of blocks, (n, rows, x) and components."""
        _, rows, x = self.part.shape
        return flat.reshape(-1, rows, x, *self.diagnostics.components(name))

    def fluid(self, begin: int, end: int) -> Array | None:
        """True in fluid cells of local planes of the part; None if there are no solids."""
        return None if self._fluid is None else self._fluid[begin - self.begin : end - self.begin]

    def _whole(self, begin: int, end: int) -> int:
        """The planes from `begin` that are whole blocks; 0 if no block begins there."""
        stride = self.part.planes.stride
        passed = self.part.passed(self.context.slab, begin)
        return 0 if passed % stride else (end - begin) // stride * stride

    def _of(self, begin: int, end: int) -> tuple[Copies, int]:
        """Copies of local planes, or of whole blocks, and the planes that are added to one."""
        whole = end > begin and self._whole(begin, end) == end - begin
        group = self.part.planes.stride if whole else 1
        return Copies(self.context.copies.staging, PartSource(self, group, begin)), group

    def blocks(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Ranges of local planes for `start`: whole blocks, then single planes."""
        middle, found = begin + self._whole(begin, end), []
        for first, after in ((begin, middle), (middle, end)):
            copies, group = self._of(first, after)
            found += [
                (first + group * a, first + group * b)
                for a, b in copies.blocks((after - first) // group)
            ]
        return found

    def start(self, begin: int, end: int) -> AbstractContextManager[Fields]:
        """Enqueue the fields of local planes, or the sums of whole blocks."""
        copies, group = self._of(begin, end)
        return copies.start(0, (end - begin) // group)

    def values(self, arrays: Fields, begin: int, end: int) -> Fields:
        """The fields of the part in these planes, (n, rows, nx) and their components."""
        if self.diagnostics.context.grid.over == "nodes":  # whose kernels skip solid cells
            solid = self.solid(begin, end)
            for name in arrays.keys() & {"rho", "u"}:
                arrays[name][solid] = float(name == "rho")
        return arrays

    def groups(self, arrays: Fields, begin: int, end: int, placed: PlacedBodies) -> list[Group]:
        """The sums over blocks of these planes, with the moving bodies as `placed`."""
        _, group = self._of(begin, end)
        first, stride = self.part.passed(self.context.slab, begin), self.part.stride[1:]
        counts = {FLUID: ~self.solid(begin, end), OPEN: self.open_cells(begin, end, placed)}
        found = []
        for k in range((end - begin) // group):
            planes = slice(k * group, (k + 1) * group)
            sums = {
                name: counted_cells(cells[planes], stride)
                for name, cells in counts.items()
                if cells is not None
            }
            sums |= {name: arrays[name][k].copy() for name in self.names}
            found.append(Group(first + k * group, group, sums))
        return found
