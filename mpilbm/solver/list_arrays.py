"""The device arrays that the kernel of one boundary list reads, beside those of all lists."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.formulas.values import CellValue
from mpilbm.layouts.cells import PackedCells
from mpilbm.layouts.nodes import NodeGrid
from mpilbm.physics.boundary_capabilities import Behind
from mpilbm.solids import Floats, Ints
from mpilbm.solids.build import Geometry
from mpilbm.solids.entry_list import EntryList, Writes
from mpilbm.solids.link_set import LinkSet
from mpilbm.solids.moving_walls import WallMotion
from mpilbm.solids.staging import MirroredLinks
from mpilbm.solids.wall_distance import LinkData, MirrorSource
from mpilbm.solver.populations import Populations
from mpilbm.solver.timed_values import TimedArray

Arrays = dict[str, Any]  # arrays and numbers that kernels take, by name
INWARD = ("", "_in1", "_in2")  # suffixes of arrays of the listed cells, and of cells inwards
HALF_WAY = 0.5  # the distance to a half-way wall, in links


@dataclass(frozen=True)
class NearCells:
    """The cells whose velocities a list reads, and the array of these velocities."""

    kernel: str
    cells: Any
    velocities: Any
    count: int


class ListArrays:
    """Uploads the arrays of boundary lists.

    timed   (array, its time minus that of the step), of arrays that follow the time
    nears   cells of lists that read velocities away from the wall
    """

    def __init__(self, fluid: Populations, geometry: Geometry, mirrored: MirroredLinks):
        self._fluid, self._geometry, self._mirrored = fluid, geometry, mirrored
        self._stream = fluid.context.bulk
        self._motions: Any = None  # the array of `motions`, once a list takes it
        self.timed: list[tuple[TimedArray, float]] = []
        self.nears: list[NearCells] = []

    def of(self, name: str, entries: EntryList) -> Arrays:
        """The arrays of one list, those that its kernels take."""
        fluid, upload = self._fluid, self._fluid.device.upload
        kernel = fluid.program.kernels[f"{name}{entries.writes.value}_0"]
        wanted = {a.name for a in kernel.arguments}
        arrays: Arrays = {"values": upload(entries.given.rows.astype(fluid.program.compute))}
        size = fluid.case.domain.size
        given = [value for boundary in entries.boundaries for value in boundary.given()]
        if any(value.timed for value in given):
            ahead = 0.5 if entries.boundary.wall_at == "half" else 1
            self._follow(arrays["values"], lambda t: entries.rows(size, t), ahead, given)
        if entries.writes is Writes.MEASURED and "start" in wanted:
            arrays["start"] = upload(entries.links.starts())
        if "link" in wanted and entries.per_link:
            arrays["link"] = upload(encoded_links(entries.per_link).astype(fluid.program.compute))
        if "member" in wanted:
            frames = [self._frame(owner.body) for owner in entries.owners]
            arrays |= {"member": upload(entries.member), "frames": upload(np.ravel(frames))}
        if "blocked" in wanted:
            meeting = LinkSet.collect(len(entries.blocked), {0: entries.meeting})
            arrays["blocked"] = upload((entries.blocked | meeting).bits)  # no link has bit 0
        if "motions" in wanted and entries.motion:
            arrays |= self._moving(entries.motion)
        for end, there in zip(INWARD, entries.looked_at, strict=False):
            if f"slipped{end}" in wanted:
                arrays[f"slipped{end}"] = upload(self._mirrored.rows_of(there, entries.boundary))
        if data := entries.per_link:
            if entries.boundary.capabilities.behind is Behind.VELOCITY:
                arrays |= self._near(name, entries, data.behind[0])
            for k, there in enumerate(data.behind, 1):
                if f"cells_behind{k}" in wanted:
                    arrays[f"cells_behind{k}"] = self.packed_cells(there)
            arrays |= self._mirror_sources(data.mirror) if data.mirror else {}
        if entries.samples is not None:
            arrays["surface"] = upload(entries.samples.rows.astype(fluid.program.compute))
            width = fluid.lattice.D + 1  # velocity and inertia
            arrays["near"] = self._velocities(name, entries.samples.cells, width)
        if entries.layer is not None:
            arrays["layer"] = upload(entries.layer.rows.astype(fluid.program.compute))
        for end, inward in zip(INWARD[1:], entries.inward, strict=False):
            if f"cells{end}" in wanted:
                arrays[f"cells{end}"] = self.packed_cells(inward.cells)
                arrays[f"blocked{end}"] = upload(inward.blocked.bits)
        return arrays

    def _frame(self, body: int | None) -> Sequence[Sequence[float]]:
        case = self._fluid.case
        return ((0.0, 0.0),) * case.dimensions if body is None else case.frames[body]

    def _packed(self, cells: Ints) -> PackedCells:
        return self._fluid.grid.packed(cells, self._geometry)

    def packed_cells(self, cells: Ints) -> Any:
        """The array of packed cells."""
        return self._fluid.device.upload(self._packed(cells).words)

    def _moving(self, motion: WallMotion) -> Arrays:
        """The array `motions`, which all lists share, and the rows of one list in it."""
        fluid, moving, upload = self._fluid, motion.table, self._fluid.device.upload
        if self._motions is None:
            collision = fluid.case.fluids[fluid.number].collision  # only the walls of fluids move
            of = collision, fluid.lattice, fluid.case.domain.size
            self._motions = upload(moving.motions(*of, 0).astype(fluid.program.compute))
            if moving.timed:
                self._follow(
                    self._motions, lambda t: moving.motions(*of, t), 0.5, moving.velocities
                )
        rows = {f"moved{end}": upload(rows) for end, rows in zip(INWARD, motion.rows, strict=False)}
        return {"motions": self._motions, **rows}

    def _mirror_sources(self, mirror: MirrorSource) -> Arrays:
        """The places of the mirrored populations in the array `f`, for steps of each parity."""
        fluid, grid = self._fluid, self._fluid.grid
        assert isinstance(grid, NodeGrid)  # the only one whose kernels take these arrays
        packed = self._packed(mirror.cells)
        following: Any = fluid.context.tables["node_next"]

        def part(begin: int, end: int) -> NDArray[np.int32]:
            return fluid.device.download(following[begin:end])

        found = {}
        for parity in range(fluid.layout.parities):
            there = np.zeros(mirror.cells.size + 1, np.int64)  # one more, as of `link`
            for j in np.unique(mirror.direction):
                place = fluid.layout.f_out(fluid.lattice, j, parity)
                mine = np.flatnonzero(mirror.direction == j)
                there[mine] = grid.places_of(packed[mine], *place, part)
            found[f"from_{parity}"] = fluid.device.upload(there)
        return found

    def _near(self, name: str, entries: EntryList, next_cells: Ints) -> Arrays:
        """Set up the cells behind the links of a list that cross its walls; returns its arrays."""
        fluid, walls = self._fluid, entries.own_walls
        cells = next_cells[walls.contains(*entries.links.unpack())]
        near = self._velocities(name, cells, self._fluid.lattice.D)
        return {"near": near, "near_start": fluid.device.upload(walls.starts())}

    def _velocities(self, name: str, cells: Ints, width: int) -> Any:
        """Set up the cells whose velocities a list reads; returns the array, `width` of each."""
        fluid = self._fluid
        size = (cells.size + 1) * width
        near = fluid.device.allocate(size, fluid.program.compute)
        self.nears.append(NearCells(f"{name}_near", self.packed_cells(cells), near, cells.size))
        return near

    def _follow(
        self,
        array: Any,
        values: Callable[[float], Floats],
        ahead: float,
        given: Iterable[CellValue],
    ) -> None:
        """Update an array to values(t), which follow from `given`, with t = step + ahead."""
        if array.size:  # a list with values for each cell may have none here
            settles = max(value.settles for value in given)
            each = TimedArray(self._fluid.device, self._stream, array, values, settles)
            self.timed.append((each, ahead))


def encoded_links(data: LinkData) -> Floats:
    """The value of each link in the form that kernels read (`cell.link`), float64 (links + 1,).

    A distance is negative where the interpolation is linear; mirrored axes are the sum of 2^axis.
    The additional value is never used, but read: a direction that is not listed has the place of
    the next link.
    """
    if data.mirrored_axes is not None:
        axes = np.exp2(np.arange(data.mirrored_axes.shape[1]))
        found: Floats = data.mirrored_axes.astype(float) @ axes
    elif data.along_normal is not None:
        found = data.along_normal
    elif data.distance is None:
        raise ValueError("the boundary declares per_link, but its links have no value")
    elif data.linear is not None:
        found = np.where(data.linear, -data.distance, data.distance)
    else:
        found = data.distance
    return np.append(found, HALF_WAY)
