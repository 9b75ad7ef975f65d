"""The complete state of a run, from which it can continue on any number of ranks.

    /                 attributes: format, version, step, lattice, size, storage, offset, case
    /solid.crc32      uint32 (planes,): checksum of the solid cells of each plane
    /<fluid>/f        outgoing populations of each cell, (planes, Q, rows, nx), in lattice order, or
                      the moments; in the widest format of the storage
    /<output>/sums    float64 (planes, values): the sums of an output, with its attributes
    /boundary.<list>  the values that boundaries keep; attributes: the names of the values
        cells         int64 (entries,): (plane * rows + row) * nx + x
        values        (entries, names)

`<fluid>` is the label of the fluid, "fluid" if there is only one. A label contains no dot and every
other name contains one, so that they cannot collide. In 2D rows = 1, planes = ny. The file ends
with a digest of all its bytes, see file_digest.py.
"""

import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from mpilbm import __version__
from mpilbm.outputs import Context, Kept, Output, number_of_cells
from mpilbm.parallel.agree import on_root
from mpilbm.registry import register
from mpilbm.storage.checkpoint_names import existing
from mpilbm.storage.places import dataset
from mpilbm.storage.planes import Block, PlaneFile

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case

FORMAT = 2  # 1 had no digest
ENTRIES = "boundary."
SOLID = "solid.crc32"


@register("outputs", "checkpoint")
class Checkpoint(Output):
    """The complete state as `checkpoint_<step>.h5` for a restart; the newest `keep` are kept."""

    keep: int = Field(2, gt=0, description="how many checkpoints stay on the disk")

    at_start: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ("checkpoint_<step>.h5",)
    several: ClassVar[bool] = False

    def disk_bytes(self, case: "Case", times: int) -> int:
        """The checkpoints that are kept, and the new one before the oldest is removed."""
        formats = case.formats
        values = number_of_cells(case) * len(formats.names) * len(case.fluids)
        size = values * np.dtype(formats.widest).itemsize
        return min(times, self.keep + 1) * (size + sum(o.kept_bytes(case) for o in case.outputs))

    def open(self, context: Context) -> "CheckpointWriter":
        """Writes nothing before the first step that is due."""
        return CheckpointWriter(self, context)


class CheckpointWriter:
    """One file for each step; `step` and `path` are those of the last one, None before it."""

    def __init__(self, output: Checkpoint, context: Context):
        self.output, self.context = output, context
        self.step: int | None = None
        self.path: Path | None = None

    def write(self, step: int) -> None:
        """Write a file, read it back, and then remove the oldest; collective.

        Raises NonFiniteError for a state with values that are not finite.
        """
        if step == self.step:
            return
        context = self.context
        context.totals.check(step)
        entries = self._entries()

        def describe(file: "h5py.File") -> None:
            describe_state(file, context.case, context.solver.state_groups, step, context.kept)
            describe_entries(file, context.solver.entry_states, entries)

        with context.files.create(f"checkpoint_{step:09d}.h5", describe) as file:
            self._write_state(file)
            for output in context.kept:
                file.write(f"{output.label}/sums", output.read)
            for name, datasets in entries.items():
                for key, values in datasets.items():
                    file.put(f"{name}/{key}", values)
            file.read_back()
            on_root(context.comm, self._sync_rows)
            file.commit()
        on_root(context.comm, self._remove_old, step)
        self.step, self.path = step, file.path

    def _write_state(self, file: PlaneFile) -> None:
        """Write the checksums of solid cells, and the populations of all fluids."""
        solver = self.context.solver
        parts = self.context.comm.gather(plane_checksums(self.context.slab.planes, solver.solid))
        file.put(SOLID, None if parts is None else np.concatenate(parts))
        for group in solver.state_groups:
            file.write(f"{group_name(group.label)}/f", partial(solver.read_state, group.label))

    def _entries(self) -> dict[str, dict[str, np.ndarray | None]]:
        """Cells and values that boundaries keep, by group; arrays on rank 0, None elsewhere."""
        found: dict[str, dict[str, np.ndarray | None]] = {}
        for state in self.context.solver.entry_states:
            parts = self.context.comm.gather((state.cells, state.read()))
            datasets: dict[str, np.ndarray | None] = {"cells": None, "values": None}
            if parts is not None:
                cells, values = (np.concatenate(part) for part in zip(*parts, strict=True))
                datasets = {"cells": cells, "values": values}
            found[f"{ENTRIES}{state.label}"] = datasets
        return found

    def _sync_rows(self) -> None:
        """Sync the rows of CSV files before the checkpoint, in case the power fails."""
        for rows in self.context.rows:
            rows.sync()

    def _remove_old(self, step: int) -> None:
        """Remove all but the newest `keep` of the checkpoints up to this step."""
        found = existing(self.context.directory)
        older = [path for number, path in found if number <= step and path.is_file()]
        for path in older[: -self.output.keep]:
            path.unlink()

    def close(self) -> None:
        """Nothing is open between two checkpoints."""


def describe_state(
    file: "h5py.File", case: "Case", groups: Sequence[Any], step: int, kept: Sequence[Kept] = ()
) -> None:
    """Create the groups, datasets and attributes of a checkpoint.

    `groups`: label, components and dtype of each fluid, see Solver.state_groups.
    """
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


def describe_entries(
    file: "h5py.File", states: Sequence[Any], entries: dict[str, dict[str, Any]]
) -> None:
    """Create the groups of the values that boundaries keep; see Solver.entry_states."""
    for state, (name, datasets) in zip(states, entries.items(), strict=True):
        place = file.create_group(name)
        place.attrs["names"] = list(state.names)
        for key, values in datasets.items():
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
