"""The complete state of a run, to go on from on any number of ranks.

    /                 attributes: format, version, step, lattice, size, storage, offset, case
    /solid_crc32      uint32 (planes,): checksum of the solid cells of each plane
    /<fluid>/f        what left each cell, (planes, Q, rows, nx), in the lattice's order
    /<fluid>/crc32    uint32 (planes,): checksum of the bytes of each plane of f
    /<output>/sums    float64 (planes, values): what an output has summed up, with its attributes
    /<output>/crc32   likewise
    /boundary.<list>  what boundaries keep of their cells; attributes: the names of the values
        cells         int64 (entries,): (plane * rows + row) * nx + x
        values        (entries, names), and crc32 uint32 (2,): checksums of cells and values

`<fluid>` is the fluid's label, "fluid" where there is but one; `<output>` holds a dot. In 2D
rows = 1, planes = ny.
"""

import re
import zlib
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from mpilbm import __version__
from mpilbm.errors import FileSystemError
from mpilbm.outputs import Context, Output, number_of_cells
from mpilbm.outputs.agree import on_root, together
from mpilbm.outputs.file_system import best_writer
from mpilbm.outputs.planes import blocks, dataset, plane_file
from mpilbm.registry import register

FORMAT = 1
PATTERN = "checkpoint_*.h5"
ENTRIES = "boundary."


class ChecksumError(Exception):
    """A plane that does not read as it was written."""


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
                self._write_group(file, f"{group_name(group.label)}/f", read)
            for output in context.kept:
                self._write_group(file, f"{output.label}/sums", output.read)
            for name, datasets in entries.items():
                for key, values in datasets.items():
                    file.put(f"{name}/{key}", values)
            together(context.comm, self._read_back, file)
            on_root(context.comm, self._sync_rows)
            file.commit()
        on_root(context.comm, self._remove_old, step)
        self.step, self.path = step, path

    def _write_solid(self, file):
        sums = plane_checksums(self.context.slab.planes, self.context.solver.solid)
        file.put("solid_crc32", self._gather(sums))

    def _write_group(self, file, name, read):
        sums = np.zeros(self.context.slab.planes, np.uint32)

        def block(begin, end):
            data = read(begin, end)
            sums[begin:end] = checksums(data)
            return data

        file.write(name, block)
        file.put(f"{name.partition('/')[0]}/crc32", self._gather(sums))

    def _entries(self) -> dict[str, dict]:
        """Cells, values and their checksums of what boundaries keep, on rank 0; by group."""
        solver, found = self.context.solver, {}
        for state in solver.entry_states:
            parts = self.context.comm.gather((state.cells, state.read()))
            datasets = dict.fromkeys(("cells", "values", "crc32"))
            if parts is not None:
                cells, values = (np.concatenate(part) for part in zip(*parts, strict=True))
                sums = np.array(checksums((cells, values)), np.uint32)
                datasets = {"cells": cells, "values": values, "crc32": sums}
            found[f"{ENTRIES}{state.label}"] = datasets
        return found

    def _gather(self, sums):
        parts = self.context.comm.gather(sums)
        return None if parts is None else np.concatenate(parts)

    def _read_back(self, file):
        begin, end = file.own_planes()
        names = [group_name(group.label) for group in self.context.solver.state_groups]
        names += [output.label for output in self.context.kept]
        try:
            verify(file.partial, names, begin, end)
        except ChecksumError as error:
            raise FileSystemError(
                f"{file.path}: what was written reads back wrong ({error}); earlier checkpoints "
                "are kept; check the disk, or write to another with --output"
            ) from None

    def _sync_rows(self):
        """A run that goes on from here finds the rows of before, though the power fail."""
        for rows in self.context.rows:
            rows.sync()

    def _remove_old(self, step):
        """Remove all but the newest `keep` of those up to this step."""
        older = [path for number, path in existing(self.context.directory) if number <= step]
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
    dataset(file, "solid_crc32", (planes,), np.uint32)
    for group in groups:
        place = file.create_group(group_name(group.label))
        dataset(place, "f", (planes, group.components, rows, nx), group.dtype)
        dataset(place, "crc32", (planes,), np.uint32)
    for output in kept:
        place = file.create_group(output.label)
        place.attrs.update(output.attributes)
        dataset(place, "sums", (planes, output.values), np.float64)
        dataset(place, "crc32", (planes,), np.uint32)


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


def existing(directory) -> list[tuple[int, Path]]:
    """(step, path) of the checkpoints in a directory, the newest last."""
    found = []
    for path in Path(directory).glob(PATTERN):
        match = re.fullmatch(r"checkpoint_(\d{9,})\.h5", path.name)
        if match:
            found.append((int(match[1]), path))
    return sorted(found)


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


def verify(path, names, begin: int, end: int):
    """Read global planes of all fluids; ChecksumError names the first whose checksum is wrong."""
    import h5py

    with h5py.File(path, "r", locking="best-effort") as file:
        for name in names:
            for _ in read_planes(file[name], begin, end):
                pass
        for name in file:
            if name.startswith(ENTRIES):
                read_entries(file[name])


def read_planes(group, begin: int, end: int):
    """Yield (begin, end, data) over global planes of a fluid or output, in bounded memory.

    Raises ChecksumError saying which plane does not have its checksum.
    """
    f, expected = group["sums" if "sums" in group else "f"], group["crc32"]
    plane_bytes = f.size // f.shape[0] * f.dtype.itemsize
    for first, last in blocks(end - begin, plane_bytes):
        here = slice(begin + first, begin + last)
        data = f[here]
        wrong = np.flatnonzero(np.array(checksums(data), np.uint32) != expected[here])
        if len(wrong):
            plane = begin + first + wrong[0]
            raise ChecksumError(f"plane {plane} of {group.name[1:]} has a wrong checksum")
        yield begin + first, begin + last, data


def read_entries(group) -> tuple[np.ndarray, np.ndarray]:
    """Cells and values of what boundaries keep; ChecksumError if they are not what was written."""
    cells, values = group["cells"][()], group["values"][()]
    if checksums((cells, values)) != group["crc32"][()].tolist():
        raise ChecksumError(f"{group.name[1:]} has a wrong checksum")
    return cells, values
