"""The complete state of a run, from which it can continue on any number of ranks.

    /                 attributes: format, version, step, lattice, size, storage, offset, case
    /solid.crc32      uint32 (planes,): checksum of the solid cells of each plane
    /<fluid>/f        outgoing populations of each cell, (planes, Q, rows, nx), in lattice order
    /<output>/sums    float64 (planes, values): the sums of an output, with its attributes
    /boundary.<list>  the values that boundaries keep; attributes: the names of the values
        cells         int64 (entries,): (plane * rows + row) * nx + x
        values        (entries, names)

`<fluid>` is the label of the fluid, "fluid" if there is only one. A label has no dot and every
other name has one, so that they cannot collide. In 2D rows = 1, planes = ny. The file ends with a
digest of all its bytes, see file_digest.py.
"""

import zlib
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from mpilbm import __version__
from mpilbm.outputs import Context, Output, number_of_cells
from mpilbm.parallel.agree import on_root
from mpilbm.registry import register
from mpilbm.storage.checkpoint_names import existing
from mpilbm.storage.file_system import best_writer
from mpilbm.storage.places import dataset
from mpilbm.storage.planes import plane_file

FORMAT = 2  # 1 had no digest
ENTRIES = "boundary."
SOLID = "solid.crc32"


@register("outputs", "checkpoint")
class Checkpoint(Output):
    """The whole state as `checkpoint_<step>.h5`, to restart from; the newest `keep` are kept."""

    keep: int = Field(2, gt=0, description="how many checkpoints stay on the disk")

    at_start: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ("checkpoint_<step>.h5",)
    several: ClassVar[bool] = False

    def disk_bytes(self, case, times: int) -> int:
        """Those that are kept, and the new one before an older one goes."""
        stored = len(case.layout.slots(case.lattice))
        values = number_of_cells(case) * stored * len(case.fluids)
        size = values * np.dtype(case.precision.storage).itemsize
        return min(times, self.keep + 1) * (size + sum(o.kept_bytes(case) for o in case.outputs))

    def open(self, context: Context) -> "CheckpointWriter":
        """Nothing is written before the first step that is due."""
        return CheckpointWriter(self, context)


class CheckpointWriter:
    """One file a step; `path` is where the last one lies."""

    def __init__(self, output: Checkpoint, context: Context):
        self.output, self.context = output, context
        self.writer = best_writer(context.comm, context.directory)
        self.step, self.path = None, None

    def write(self, step: int):
        """Write, read back, and only then remove what is too old; never a state with nan."""
        if step == self.step:
            return
        context = self.context
        context.totals.at(step)
        entries = self._entries()
        path = context.directory / f"checkpoint_{step:09d}.h5"

        def describe(file):
            describe_state(file, context.case, context.solver.state_groups, step, context.kept)
            describe_entries(file, context.solver.entry_states, entries)

        with plane_file(path, context.comm, context.slabs, describe, self.writer) as file:
            self._write_solid(file)
            for group in context.solver.state_groups:
                read = partial(context.solver.read_state, group.label)
                file.write(f"{group_name(group.label)}/f", read)
            for output in context.kept:
                file.write(f"{output.label}/sums", output.read)
            for name, datasets in entries.items():
                for key, values in datasets.items():
                    file.put(f"{name}/{key}", values)
            file.read_back()
            on_root(context.comm, self._sync_rows)
            file.commit()
        on_root(context.comm, self._remove_old, step)
        self.step, self.path = step, path

    def _write_solid(self, file):
        sums = plane_checksums(self.context.slab.planes, self.context.solver.solid)
        parts = self.context.comm.gather(sums)
        file.put(SOLID, None if parts is None else np.concatenate(parts))

    def _entries(self) -> dict[str, dict]:
        """The cells and values that boundaries keep, on rank 0; by group."""
        solver, found = self.context.solver, {}
        for state in solver.entry_states:
            parts = self.context.comm.gather((state.cells, state.read()))
            datasets = dict.fromkeys(("cells", "values"))
            if parts is not None:
                cells, values = (np.concatenate(part) for part in zip(*parts, strict=True))
                datasets = {"cells": cells, "values": values}
            found[f"{ENTRIES}{state.label}"] = datasets
        return found

    def _sync_rows(self):
        """Have the rows on the disk before the checkpoint, also if the power fails."""
        for rows in self.context.rows:
            rows.sync()

    def _remove_old(self, step):
        """Remove all but the newest `keep` of those up to this step."""
        found = existing(self.context.directory)
        older = [path for number, path in found if number <= step and path.is_file()]
        for path in older[: -self.output.keep]:
            path.unlink()

    def close(self):
        """Nothing is open between two checkpoints."""


def describe_state(file, case, groups, step: int, kept=()):
    """Make the groups, datasets and attributes of a checkpoint."""
    planes, rows, nx = case.shape
    file.attrs["format"] = FORMAT
    file.attrs["version"] = __version__
    file.attrs["step"] = step
    file.attrs["lattice"] = case.lattice.name
    file.attrs["size"] = np.array(case.domain.size)
    file.attrs["storage"] = case.precision.storage
    file.attrs["offset"] = case.precision.offset
    file.attrs["case"] = case.toml
    dataset(file, SOLID, (planes,), np.uint32)
    for group in groups:
        place = file.create_group(group_name(group.label))
        dataset(place, "f", (planes, group.components, rows, nx), group.dtype)
    for output in kept:
        place = file.create_group(output.label)
        place.attrs.update(output.attributes)
        dataset(place, "sums", (planes, output.values), np.float64)


def describe_entries(file, states, entries):
    """Make the groups of what boundaries keep."""
    for state, (name, datasets) in zip(states, entries.items(), strict=True):
        place = file.create_group(name)
        place.attrs["names"] = list(state.names)
        for key, values in datasets.items():
            dataset(place, key, values.shape, values.dtype)


def group_name(label: str) -> str:
    """The group of a fluid in the file."""
    return label or "fluid"


def checksums(data) -> list[int]:
    """crc32 of the bytes of each plane of (planes, …)."""
    return [zlib.crc32(np.ascontiguousarray(plane).reshape(-1).view(np.uint8)) for plane in data]


def plane_checksums(planes: int, block) -> np.ndarray:
    """Checksums of `block(begin, end)` over all local planes, a few planes at a time."""
    sums = np.zeros(planes, np.uint32)
    for begin in range(0, planes, 16):
        end = min(begin + 16, planes)
        sums[begin:end] = checksums(block(begin, end))
    return sums
