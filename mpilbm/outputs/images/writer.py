"""Writes fields of a part of the box, a file for each step, while the time steps continue."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.core.units import field_unit
from mpilbm.outputs import Context
from mpilbm.outputs.images import COMPONENTS, SOLID, Fields, numbers_of
from mpilbm.outputs.images.device_part import values_of
from mpilbm.outputs.images.part import Collector, Group, Part, Sums, means_of
from mpilbm.outputs.images.vtkhdf import (
    Kinds,
    SeriesFile,
    describe_image,
    file_shape,
    place,
)
from mpilbm.parallel import on_root, together
from mpilbm.solids.moving_cells import PlacedBodies
from mpilbm.storage.compressed import CompressedFile, CompressedParts, Shapes
from mpilbm.storage.partial_file import Describe
from mpilbm.storage.planes import OwnFile, PlaneFile, PlaneFiles

if TYPE_CHECKING:
    import h5py

Store = Callable[[str, int, np.ndarray], None]  # (field, first block of this rank, values)
Add = Callable[[AbstractContextManager[Any], Callable[[Any], None]], None]  # as Job.add


@dataclass(frozen=True, kw_only=True)
class Style:
    """How fields are written: their names, the type of their numbers, and when."""

    fields: tuple[str, ...]
    kind: str | None
    compress: bool
    background: bool


class ImageWriter:
    """One file for each step; in two dimensions nz = 1.

    If the case has bodies, a field `solid` is added, which is 1 in their cells.
    """

    def __init__(self, context: Context, part: Part, stem: str, style: Style):
        self.context, self.case, self.part = context, context.case, part
        self.stem, self.style, self.fields = stem, style, list(style.fields)
        self.names = self.fields + [SOLID] * bool(self.case.bodies)
        self.values = values_of(context, self.part, self.fields)
        self.slabs = self.part.slabs(context.slabs)
        self.slab = self.slabs[context.comm.rank]
        self.means = self.part.stride != (1, 1, 1)
        self.files = PlaneFiles(context.directory, context.comm, self.slabs)
        self.series: SeriesFile | None = None

    def write(self, step: int) -> None:
        """Write the fields of this step; collective."""
        if self.series is None:
            self.series = on_root(self.context.comm, self._open_series)
        self.values.prepare()
        name = f"{self.stem}_{step:09d}.vtkhdf"
        if self.files.in_threads:
            create = partial(self._create_own, name, partial(self._describe, step))
            self._write_in_threads(create, partial(self._publish, step))
        else:
            self.write_file(self.files, name, step)
            on_root(self.context.comm, self.series.add, step)

    def _open_series(self) -> SeriesFile:
        context = self.context
        return SeriesFile(context.directory, self.stem, self.case.units, context.first_step)

    def _publish(self, step: int, file: OwnFile) -> None:
        """Rename a file and add it to the series; on rank 0, in any thread."""
        file.publish()
        assert self.series is not None
        self.series.add(step)

    def write_file(self, files: PlaneFiles, name: str, step: int) -> None:
        """Write the fields of this step to a file of that name, and wait; collective."""
        self.values.prepare()
        files = PlaneFiles(files.directory, files.comm, self.slabs)
        with self._created(files, name, partial(self._describe, step)) as file:
            at_once = self.means or self.values.at_once
            found = self._all() if at_once else None
            for each in self.names:
                file.write(place(each), partial(self._block, each, found))
            file.commit()

    def _created(self, files: PlaneFiles, name: str, describe: Describe) -> PlaneFile:
        if not self.style.compress:
            return files.create(name, describe)
        path = files.directory / name
        return CompressedFile(path, files.comm, self.slabs, describe, self._shapes())

    def _create_own(self, name: str, describe: Describe) -> OwnFile:
        """A file that threads write."""
        files = self.files
        if not self.style.compress:
            return files.create_own(name, describe)
        path = files.directory / name
        return CompressedParts(path, files.comm, self.slabs, describe, self._shapes())

    def _shapes(self) -> Shapes:
        """The shape and type of each dataset."""
        shape = file_shape(self.case, self.part)
        return {
            place(each): ((*shape, *components), np.dtype(kind))
            for each, (components, kind) in self._kinds().items()
        }

    def _describe(self, step: int, file: "h5py.File") -> None:
        describe_image(file, self.case, step, self._kinds(), self.part, self.style.compress)

    def _kinds(self) -> Kinds:
        """The components and the type of each field in the file."""
        case, found = self.case, Kinds()
        for name in self.names:
            curl_2d = name == "vorticity" and case.dimensions == 2  # along z only
            scalar = COMPONENTS.get(name, 1) == 1 or curl_2d
            kind = "uint8" if name == SOLID else self.style.kind or case.precision.compute
            found[name] = () if scalar else (COMPONENTS[name],), kind
        return found

    # ------------------------------------------------------------------------------- in threads

    def _write_in_threads(
        self, create: Callable[[], OwnFile], publish: Callable[[OwnFile], None]
    ) -> None:
        """Threads write the planes of this rank, while the time steps continue."""
        job = self.context.background.begin(create, publish)
        self._start(job.add, lambda name, block, data: job.file.store(place(name), block, data))
        job.end([job.file.flush])
        if not self.style.background:
            self.context.background.settle(0)

    def _start(self, add: Add, store: Store) -> None:
        """Pass the values of all blocks of this rank to `add`, to store them; collective."""
        begin, end = self.part.own_planes(self.context.slab)
        take = partial(self._copy, store, self.context.placed_bodies)
        if self.means:
            collector = self._collector(store)
            for group in self._from_others():
                add(nullcontext(group), collector.give)
            begin += self._given_away
            take = partial(self._sum, collector, self.context.placed_bodies)
        for first, after in self.values.blocks(begin, end):
            add(self.values.start(first, after), partial(take, first, after))

    def _copy(
        self, store: Store, placed: PlacedBodies, begin: int, end: int, arrays: Fields
    ) -> None:
        """Store the fields of local planes, with the bodies as they were at this step."""
        values = self.values.values(arrays, begin, end)
        block = self.part.passed(self.context.slab, begin) - self.slab.begin
        for name in self.fields:
            store(name, block, self._shaped(name, values[name]))
        if SOLID in self.names:
            store(SOLID, block, self._solid(begin, end, placed))

    # ---------------------------------------------------------------------------- means of blocks

    def _sum(
        self, collector: Collector, placed: PlacedBodies, begin: int, end: int, arrays: Fields
    ) -> None:
        """Give the sums over local planes to the collector, with the bodies as at this step."""
        for group in self.values.groups(arrays, begin, end, placed):
            collector.give(group)

    def _collector(self, store: Store) -> Collector:
        def complete(block: int, planes: list[Sums]) -> None:
            numbers = numbers_of(self.case)
            found, solid = means_of(planes, lambda name: float(name == "rho"), numbers)
            for name in self.fields:
                kind = self.case.precision.compute
                data = found[name].astype(kind)[None]
                store(name, block - self.slab.begin, self._shaped(name, data))
            if SOLID in self.names:
                store(SOLID, block - self.slab.begin, solid[None].astype(np.uint8))

        return Collector(self.part.planes.stride, complete)

    @property
    def _given_away(self) -> int:
        """Local planes in a block whose first plane another rank has."""
        begin, end = self.part.own_planes(self.context.slab)
        passed = self.part.passed(self.context.slab, begin)
        return min(-passed % self.part.planes.stride, end - begin)

    def _from_others(self) -> list[Group]:
        """Sums of planes on other ranks that belong to blocks of this rank; collective.

        The ranks wait for these planes only if a block has planes of several ranks.
        """
        comm, stride = self.context.comm, self.part.planes.stride
        planes = self.part.planes
        inside = [s.begin for s in self.context.slabs if planes.begin < s.begin < planes.end]
        if all((begin - planes.begin) % stride == 0 for begin in inside):
            return []
        begin, _ = self.part.own_planes(self.context.slab)
        found = together(comm, self._sums_now, begin, begin + self._given_away)
        mine = range(self.slab.begin * stride, self.slab.end * stride)
        return [each for part in comm.allgather(found) for each in part if each.plane in mine]

    def _sums_now(self, begin: int, end: int) -> list[Group]:
        found = []
        for first, after in self.values.blocks(begin, end):
            with self.values.start(first, after) as arrays:
                found += self.values.groups(arrays, first, after, self.context.placed_bodies)
        return found

    # -------------------------------------------------------------------------------- all at once

    def _all(self) -> Fields:
        """All values of this rank; collective."""
        rows, x = self.part.rows.count, self.part.x.count
        found = {
            name: np.empty((self.slab.planes, rows, x, *components), kind)
            for name, (components, kind) in self._kinds().items()
        }

        def store(name: str, block: int, data: np.ndarray) -> None:
            found[name][block : block + len(data)] = data

        def add(piece: AbstractContextManager[Any], take: Callable[[Any], None]) -> None:
            with piece as values:
                take(values)

        self._start(add, store)
        return found

    def _block(self, name: str, found: Fields | None, begin: int, end: int) -> np.ndarray:
        """A field of blocks of this rank for the file, after `prepare`."""
        if found is not None:
            return found[name][begin:end]
        first = self.part.planes.begin + self.slab.begin - self.context.slab.begin
        first, after = first + begin, first + end
        if name == SOLID:
            return self._solid(first, after, self.context.placed_bodies)
        arrays = self.context.solver.fields((name,), first, after)
        return self._shaped(name, self.values.field(name, arrays, first, after))

    def _solid(self, begin: int, end: int, placed: PlacedBodies) -> np.ndarray:
        """1 in solid cells of local planes, and in those whose centre is in a moving body."""
        return self.values.covered(begin, end, placed).astype(np.uint8)

    def _shaped(self, name: str, data: np.ndarray) -> np.ndarray:
        """Blocks (n, rows, nx) of a scalar or (n, rows, nx, 3) of a vector for the file, in SI."""
        unit, _ = field_unit(self.case.units, name)
        data = data if unit == 1 else data * data.dtype.type(unit)
        if data.ndim == 4 and data.shape[3] == 2:
            data = np.pad(data, ((0, 0), (0, 0), (0, 0), (0, 1)))
        return data if self.style.kind is None else data.astype(self.style.kind)

    def close(self) -> None:
        """Nothing to do: `Context.background` closes files that are still being written."""
