"""The complete state of a run, from which it can continue on any number of ranks.

    /                 attributes: format, version, step, lattice, size, storage, offset, case
    /solid.crc32      uint32 (planes,): checksum of the solid cells of each plane
    /<fluid>/f        outgoing populations of each cell, (planes, Q, rows, nx), in lattice order, or
                      the moments; in the widest format of the storage. Attributes of a scalar with
                  bounds: low, high
    /<output>/sums    float64 (planes, values): the sums of an output, with its attributes
    /boundary.<list>  the values that boundaries keep; attributes: the names of the values
        cells         int64 (entries,): (plane * rows + row) * nx + x
        values        (entries, names)
    /free.bodies      float64 (bodies, values): the states of the bodies that move freely, see
                      physics/rigid_body.py; only with such bodies. Attribute: labels, the body of
                      each row; files of earlier versions have none

`<fluid>` is the label of the fluid, "fluid" if there is only one. A label contains no dot and every
other name contains one, so that they cannot collide. In 2D rows = 1, planes = ny. The file ends
with a digest of all its bytes, see file_digest.py.
"""

import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from mpilbm import __version__
from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.outputs import Context, Kept, Output, PlaneCopies, number_of_cells
from mpilbm.parallel import on_root
from mpilbm.solver.fields.sources import SlabCopies
from mpilbm.storage.background import Job
from mpilbm.storage.directory import existing
from mpilbm.storage.partial_file import dataset
from mpilbm.storage.planes import Block, OwnFile, PlaneFile, PlaneFiles

if TYPE_CHECKING:
    import h5py

Small = dict[str, np.ndarray | None]  # datasets that rank 0 writes at once; None on other ranks
FORMAT = 2  # 1 had no digest
ENTRIES = "boundary."
SOLID = "solid.crc32"
FREE_BODIES = "free.bodies"


@register("outputs", "checkpoint")
class Checkpoint(Output):
    """The complete state as `checkpoint_<step>.h5` for a restart; the newest `keep` are kept.

    Each file is read back before it gets its name, and before older ones are removed. With
    `background` the time steps continue while the file is written and read back. This requires one
    rank, one node, or a parallel file system, where each rank writes its own planes. The copies of
    the state take at most a quarter of the free memory of the device and of the node; if this is
    too little, the steps wait for a part of the file.
    """

    keep: int = Field(2, gt=0, description="how many checkpoints stay on the disk")
    background: bool = Field(
        True, description="continue the time steps while the file is written, if possible"
    )
    read_back: Literal["cache", "disk"] = Field(
        "cache", description="verify the page cache of the operating system, or the disk (slower)"
    )

    files: ClassVar[tuple[str, ...]] = ("checkpoint_<step>.h5",)
    free: ClassVar[tuple[str, ...]] = ("keep", "background", "read_back")
    several: ClassVar[bool] = False

    def contents(self, case: Case) -> dict[tuple[str, ...], dict[str, Any]]:
        """Nothing that a restart compares, because it keeps all checkpoints."""
        return {}

    @property
    def at_start(self) -> bool:
        """Never: the case describes the initial state."""
        return False

    def disk_bytes(self, case: Case, times: int) -> int:
        """The checkpoints that are kept, and the new one before the oldest is removed."""
        formats = case.formats
        values = number_of_cells(case) * len(formats.names) * len(case.fluids)
        size = values * np.dtype(formats.widest).itemsize
        return min(times, self.keep + 1) * (size + sum(o.kept_bytes(case) for o in case.outputs))

    def stages(self, case: Case) -> bool:
        """Threads write copies of the state."""
        return True

    def open(self, context: Context) -> "CheckpointWriter":
        """Writes nothing before the first step that is due."""
        return CheckpointWriter(self, context)


class CheckpointWriter:
    """One file for each step.

    step, path   those of the last file, None before it
    seconds      from the beginning of a file until it had its name, on rank 0; None before that
    """

    def __init__(self, output: Checkpoint, context: Context):
        self.output, self.context = output, context
        self.step: int | None = None
        self.path: Path | None = None
        self.seconds: float | None = None
        self._job: Job | None = None

    def write(self, step: int) -> None:
        """Write a file, read it back, and then remove the oldest; collective.

        If threads do it, the file has its name after `Background.finish` at the latest. Raises
        NonFiniteError for a state with values that are not finite.
        """
        if step == self.step:
            return
        context, begun = self.context, time.monotonic()
        context.background.finish(self._job)  # the disk has room for one more than are kept
        context.samples.settle()  # their rows are synced with the checkpoint
        context.totals.check(step)
        files, name = context.files, f"checkpoint_{step:09d}.h5"
        named = partial(self._named, step, begun)
        if files.in_threads:
            copies, small = context.copies, self._small()
            make = partial(files.create_own, name, partial(self._describe, step, small))
            job = context.background.begin(make, partial(self._publish, named))
            self._write_in_threads(job, copies, small)
            self.path, self._job = job.file.path, job
        else:
            self.path = self.write_file(files, name, step)
            on_root(context.comm, named)
        self.step = step
        if not self.output.background:
            context.background.finish(self._job)

    def write_file(self, files: PlaneFiles, name: str, step: int) -> Path:
        """Write a file of that name, and read it back; collective. Returns its path."""
        small = self._small()
        with files.create(name, partial(self._describe, step, small)) as file:
            self._write_and_wait(file, small)
        return file.path

    def _small(self) -> Small:
        """The datasets that rank 0 writes at once; collective."""
        moving, bodies = self.context.solver.moving, {}
        if moving and moving.free:
            bodies = {FREE_BODIES: moving.free.states(self.context.solver.steps)}
        return {SOLID: self._solid_sums, **self._entries(), **bodies}

    def _describe(self, step: int, small: Small, file: "h5py.File") -> None:
        context = self.context
        describe_state(file, context.case, context.solver.state_groups, step, context.kept)
        describe_entries(file, context.solver.entry_states, small)
        bodies, moving = small.get(FREE_BODIES), context.solver.moving
        if bodies is not None and moving and moving.free:
            states = dataset(file, FREE_BODIES, bodies.shape, bodies.dtype)
            states.attrs["labels"] = moving.free.labels

    def _write_in_threads(self, job: Job, of_slab: SlabCopies, small: Small) -> None:
        """Threads write the planes of this rank, and read them back; rank 0 the small arrays."""
        groups, kept = self.context.solver.state_groups, self.context.kept
        sources: dict[str, PlaneCopies] = {
            f"{group_name(group.label)}/f": of_slab.state(group.label) for group in groups
        }
        sources |= {f"{output.label}/sums": output.copies() for output in kept}
        for name, copies in sources.items():
            for begin, end in copies.blocks(self.context.slab.planes):
                job.add(copies.start(begin, end), partial(self._store, job.file, name, begin))
        for key, values in small.items() if self.context.comm.rank == 0 else ():
            job.add(nullcontext(values), partial(job.file.file.put, key))
        checks = job.file.checks(sources) if self._from_disk else []
        job.end([partial(job.file.flush, self._from_disk)], checks)

    def _store(self, file: OwnFile, name: str, begin: int, values: dict[str, np.ndarray]) -> None:
        """Write local planes, and read them back from the page cache if that is wanted."""
        data = values[name.rpartition("/")[2]]
        file.store(name, begin, data)
        if not self._from_disk:
            file.check(name, begin, begin + len(data))

    def _write_and_wait(self, file: PlaneFile, small: Small) -> None:
        """Write all arrays together with the other ranks, and read them back; collective."""
        solver = self.context.solver
        for group in solver.state_groups:
            file.write(f"{group_name(group.label)}/f", partial(solver.read_state, group.label))
        for output in self.context.kept:
            file.write(f"{output.label}/sums", output.read)
        for key, values in small.items():
            file.put(key, values)
        file.read_back(self._from_disk)
        on_root(self.context.comm, self._sync_rows)
        file.commit()

    @property
    def _from_disk(self) -> bool:
        return self.output.read_back == "disk"

    def _publish(self, named: Callable[[], None], file: OwnFile) -> None:
        """Name a file that all ranks have written and read back; on rank 0, in a thread."""
        file.publish(verify=True, before=self._sync_rows)
        named()

    def _named(self, step: int, begun: float) -> None:
        """Remove older files, when that of this step has its name; on rank 0."""
        self._remove_old(step)
        self.seconds = time.monotonic() - begun

    @cached_property
    def _solid_sums(self) -> np.ndarray | None:
        """The checksums of solid cells of all planes, on rank 0; collective at first use."""
        planes, solid = self.context.slab.planes, self.context.solver.solid
        parts = self.context.comm.gather(plane_checksums(planes, solid))
        return None if parts is None else np.concatenate(parts)

    def _entries(self) -> Small:
        """Cells and values that boundaries keep, by dataset; on rank 0, None elsewhere."""
        found: Small = {}
        for state in self.context.solver.entry_states:
            parts = self.context.comm.gather((state.cells, state.read()))
            cells = values = None
            if parts is not None:
                cells, values = (np.concatenate(part) for part in zip(*parts, strict=True))
            name = f"{ENTRIES}{state.label}"
            found |= {f"{name}/cells": cells, f"{name}/values": values}
        return found

    def _sync_rows(self) -> None:
        """Sync rows and pictures before the checkpoint, in case the power or the process fails."""
        for rows in self.context.rows:
            rows.sync()

    def _remove_old(self, step: int) -> None:
        """Remove all but the newest `keep` of the checkpoints up to this step."""
        found = existing(self.context.directory)
        older = [path for number, path in found if number <= step and path.is_file()]
        for path in older[: -self.output.keep]:
            path.unlink()

    def close(self) -> None:
        """Release the last file, which refers to this writer; no file is open."""
        self._job = None


def describe_state(
    file: "h5py.File", case: Case, groups: Sequence[Any], step: int, kept: Sequence[Kept] = ()
) -> None:
    """Create the groups, datasets and attributes of a checkpoint.

    `groups`: label, components, dtype and attributes of each fluid, see Solver.state_groups.
    """
    planes, rows, nx = case.shape
    file.attrs["format"] = FORMAT
    file.attrs["version"] = __version__
    file.attrs["step"] = step
    file.attrs["lattice"] = case.lattice.name
    file.attrs["size"] = np.array(case.domain.size)
    file.attrs["storage"] = case.precision.storage
    file.attrs["offset"] = case.precision.offset
    file.attrs["tails"] = case.formats.tail_text
    file.attrs["case"] = case.toml
    dataset(file, SOLID, (planes,), np.uint32)
    for group in groups:
        place = file.create_group(group_name(group.label))
        place.attrs.update(group.attributes)
        dataset(place, "f", (planes, group.components, rows, nx), group.dtype)
    for output in kept:
        place = file.create_group(output.label)
        place.attrs.update(output.attributes)
        dataset(place, "sums", (planes, output.values), np.float64)


def describe_entries(file: "h5py.File", states: Sequence[Any], small: Small) -> None:
    """Create the groups of the values that boundaries keep; see Solver.entry_states."""
    for state in states:
        place = file.create_group(f"{ENTRIES}{state.label}")
        place.attrs["names"] = list(state.names)
        for key in ("cells", "values"):
            values = small[f"{ENTRIES}{state.label}/{key}"]
            assert values is not None, "rank 0 has them"
            dataset(place, key, values.shape, values.dtype)


def group_name(label: str) -> str:
    """The group of a fluid in the file."""
    return label or "fluid"


def checksums(data: np.ndarray) -> list[int]:
    """crc32 of the bytes of each plane of (planes, …)."""
    flat = (np.ascontiguousarray(plane).reshape(-1) for plane in data)
    return [zlib.crc32(plane.view(np.uint8).data) for plane in flat]


def plane_checksums(planes: int, block: Block) -> np.ndarray:
    """Checksums of `block(begin, end)` over all local planes, a few planes at a time."""
    sums = np.zeros(planes, np.uint32)
    for begin in range(0, planes, 16):
        end = min(begin + 16, planes)
        sums[begin:end] = checksums(block(begin, end))
    return sums
