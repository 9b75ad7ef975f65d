"""Continues from a checkpoint, with any number of ranks, layout and backend.

Populations are converted to moments, or moments to populations, if the case may use both layouts.

The digest of the whole file is verified before HDF5 opens it; each rank reads a part. Damage is
thus found while a checkpoint is chosen, and `--restart auto` takes the newest intact one.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import nan
from os.path import exists, isdir  # False for a name that is too long
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.checks import problems_with
from mpilbm.case.typed_keys import with_present_names
from mpilbm.core.errors import CaseError, CommandError
from mpilbm.core.files.file_digest import DamagedFileError, NoDigestError, verify
from mpilbm.core.files.hdf5 import open_file
from mpilbm.core.registry import make, names
from mpilbm.layouts import Layout
from mpilbm.outputs.checkpoint import (
    ENTRIES,
    FORMAT,
    FREE_BODIES,
    SOLID,
    checksums,
    group_name,
)
from mpilbm.parallel import Communicator, on_root, together
from mpilbm.parallel.slabs import Slab
from mpilbm.solver.solver import Solver
from mpilbm.storage.directory import existing, step_in_name
from mpilbm.storage.planes import blocks

if TYPE_CHECKING:
    import h5py

Say = Callable[[str], None]  # prints a line for the user, from rank 0

# Tables that may change without a warning.
FREE = ("title", "run", "output", "layout", "backend", "halo")
FIX = "; restart from another one"
SAME_CASE = "restart with the case that wrote it, or start from step 0"
UNCONVERTED = f"{SAME_CASE}; values in 16 bits are not converted to those of another layout"
OTHER_SIZE = (
    f"{SAME_CASE}, with initial.file = a snapshot of that run, which is resampled, and "
    "initial.scale for its velocity"
)


OTHER_BODIES = "give the bodies that move freely their earlier labels, or start from step 0"


class DamagedError(CaseError):
    """A checkpoint that is damaged, cannot be read, or has another format."""


def candidates(restart: str | Path, directory: Path) -> list[Path]:
    """The checkpoints to try, newest first: the given file, or for "auto" those of the folder.

    Raises CommandError if the given file does not exist, with the checkpoints of the folder that
    its path names, or else of the output folder `directory`. For "auto" the list may be empty.
    """
    if str(restart) == "auto":
        return [path for _, path in reversed(existing(directory))]
    if not exists(restart) or isdir(restart):
        raise CommandError(f"--restart {restart}: {_missing(Path(restart), directory)}")
    return [Path(restart)]


def _missing(path: Path, directory: Path) -> str:
    """The problem of a checkpoint that does not exist, with those that do."""
    is_folder = bool(path.parts) and isdir(path)
    folder = path if is_folder else path.parent if len(path.parts) > 1 else directory
    if not isdir(folder):
        return f"there is no folder {folder}; give the path of a checkpoint, or --restart auto"
    found = existing(folder)
    problem = "is a folder, not a file" if is_folder else "there is no such file"
    kept = ", ".join(path.name for _, path in found) or "none"
    fix = f"name one of them, such as --restart {found[-1][1]}" if found else "name another file"
    return (
        f"{problem}; checkpoints in {folder}: {kept}; {fix}, or use --restart auto for the last "
        f"one in {directory}"
    )


def load(
    paths: Sequence[Path], case: Case, slab: Slab, solver: Solver, comm: Communicator, say: Say
) -> tuple[int, Path]:
    """Load the first intact checkpoint of `paths` into the solver; returns its step and path.

    With several paths damaged files are skipped, each with a warning by `say(text)`. Raises
    CaseError if none is intact, or if the intact one belongs to another case. Collective.
    """
    for place, path in enumerate(paths):
        try:
            return _load(path, case, slab, solver, comm, say), path
        except DamagedError as error:
            if len(paths) == 1:
                raise
            more = "trying the previous one" if place + 1 < len(paths) else "there is no older one"
            say(f"warning: {str(error).removesuffix(FIX)}; {more}")
    raise CaseError(
        f"none of the {len(paths)} checkpoints is intact; start from step 0 with --overwrite"
    )


def _load(path: Path, case: Case, slab: Slab, solver: Solver, comm: Communicator, say: Say) -> int:
    together(comm, require_intact, path, slab)
    step, changed = on_root(comm, _check_head, path, case, solver)
    together(comm, _read_own, path, slab, solver, step)
    for line in changed:
        say(f"warning: {path}: since this checkpoint {line}")
    solver.resume(step)
    counts = comm.allgather([state.cells.size for state in solver.entry_states])
    together(comm, _read_entries, path, solver, np.array(counts, np.int64), comm.rank)
    return step


def require_intact(path: Path, slab: Slab) -> None:
    """Verify this rank's part of the file; DamagedError with the reason if it is damaged."""
    try:
        verify(path, slab.begin, slab.end, slab.shape[0])
    except NoDigestError:
        raise DamagedError(
            "has no digest at its end: it is cut short, or was written by a version of mpilbm "
            f"without digests; only that version can continue from it{FIX}",
            path=path,
        ) from None
    except DamagedFileError as error:
        raise DamagedError(f"is damaged: {error}{FIX}", path=path) from None
    except OSError as error:
        raise DamagedError(f"cannot be read: {error.strerror}{FIX}", path=path) from None


def _check_head(path: Path, case: Case, solver: Solver) -> tuple[int, list[str]]:
    """Step of a checkpoint, changes of the case; CaseError if it belongs to another case."""
    groups = solver.state_groups
    with opened(path) as file:
        head = dict(file.attrs)
        if head.get("format") != FORMAT:
            raise DamagedError(
                "is not a checkpoint of this version of mpilbm: found format "
                f"{head.get('format')}, allowed: {FORMAT}{FIX}",
                path=path,
            )
        _check_step(path, int(head["step"]))
        labels = [name for name in file if "." not in name]
        kept = {n: list(file[n].attrs["names"]) for n in file if n.startswith(ENTRIES)}
        wanted = {ENTRIES + state.label: list(state.names) for state in solver.entry_states}
        _compare(path, "lattice", head["lattice"], case.lattice.name)
        _compare(path, "size", head["size"].tolist(), list(case.domain.size), OTHER_SIZE)
        _compare(path, "fluids", labels, sorted(group_name(g.label) for g in groups))
        _compare(path, "precision.storage", head["storage"], case.precision.storage)
        _compare(path, "precision.offset", bool(head["offset"]), case.precision.offset)
        _compare(path, "state of boundaries", kept, wanted)
        free = solver.moving.free if solver.moving else None
        bodies = free.labels if free else []
        known = _labels(file, bodies)
        _compare(path, "free bodies", sorted(known), sorted(bodies), OTHER_BODIES)
        lines = changes(head["case"], case.toml)
        for group in groups:
            stored = file[group_name(group.label)]["f"].shape[1]
            given = _layout_of(case, stored)
            if given is None:
                fix = UNCONVERTED if case.precision.storage == "float16" else SAME_CASE
                _compare(path, "values in a cell", stored, group.components, fix)
            elif given.populations != case.layout.populations:
                lines.append(_conversion_line(case, given))
        # files of earlier versions have no tails
        _compare(path, "tails of 16-bit values", head.get("tails", ""), case.formats.tail_text)
        return int(head["step"]), lines


def _labels(file: Any, given: Sequence[str]) -> list[str]:
    """The labels of the free bodies in a checkpoint.

    Files of earlier versions have none: then those of the case, in its order, which are `given`.
    """
    if FREE_BODIES not in file:
        return []
    states = file[FREE_BODIES]
    count = len(states)
    unnamed = [*given[:count], *(f"body {k}" for k in range(len(given), count))]
    return list(states.attrs.get("labels", unnamed))


def _conversion_line(case: Case, given: Layout) -> str:
    """The warning about a conversion from the layout `given`, and by what the flows differ."""
    layouts, ways = (given, case.layout), ("moments", "populations")
    old, new = (ways[each.populations] for each in layouts)
    differ = [f"{each.name} {text}" for each in layouts for text in each.deviations(case)]
    line = f"the layout has changed: {old} are converted to {new} and rounded"
    return "; ".join([line, *differ])


def _layout_of(case: Case, stored: int) -> Layout | None:
    """A layout with so many stored values that the case may use, that of the case if it has them.

    None if there is no such layout, or if its values cannot be converted: 16 bits have other units.
    """
    layouts = [case.layout]
    if case.single_fluid and case.precision.storage != "float16":
        layouts += [make("layouts", name) for name in names("layouts")]
    for layout in layouts:
        same = len(layout.slots(case.lattice)) == stored and not layout.automatic
        if same and (layout is case.layout or not problems_with(case, layout=layout)):
            return layout
    return None


def _check_step(path: Path, step: int) -> None:
    """DamagedError if the file was renamed to the name of another step."""
    if step_in_name(path) not in (None, step):
        raise DamagedError(
            f"holds step {step}, but its name says {step_in_name(path)}; rename it to "
            f"checkpoint_{step:09d}.h5{FIX}",
            path=path,
        )


def _compare(path: Path, what: str, stored: Any, wanted: Any, fix: str = SAME_CASE) -> None:
    if stored != wanted:
        raise CaseError(
            f"this checkpoint has {what} = {stored}, the case {wanted}; a restart cannot change "
            f"it: {fix}",
            path=path,
        )


def _read_own(path: Path, slab: Slab, solver: Solver, step: int) -> None:
    """Read the planes of this rank into the solver; CaseError if the bodies have changed."""
    with opened(path) as file:
        solid = file[SOLID][slab.begin : slab.end]
        for plane in range(slab.planes):
            if checksums(solver.solid(plane, plane + 1))[0] != solid[plane]:
                raise CaseError(
                    f"the bodies are not those of this checkpoint (first seen in plane "
                    f"{slab.begin + plane}); a restart cannot change them: start from step 0",
                    path=path,
                )
        for group in solver.state_groups:
            dataset = file[f"{group_name(group.label)}/f"]
            convert = _conversion(solver.case, dataset.shape[1])
            for begin, data in read_planes(dataset, slab):
                data = convert(data)
                solver.write_state(group.label, begin - slab.begin, data, step)
        if solver.moving and (free := solver.moving.free):
            labels, states = _labels(file, free.labels), file[FREE_BODIES][:]
            free.restore(step, np.stack([states[labels.index(each)] for each in free.labels]))
        for label in solver.case.labels:
            kept = file[label].attrs  # files of earlier versions have no bounds
            solver.initial.ranges[label] = float(kept.get("low", nan)), float(kept.get("high", nan))


def _conversion(case: Case, stored: int) -> Callable[[np.ndarray], np.ndarray]:
    """The function that turns a stored state into one in the layout of the case."""
    given = _layout_of(case, stored)
    if given is None or given.populations == case.layout.populations:
        return lambda state: state
    from mpilbm.codegen.model import converter  # imports SymPy

    return converter(case, given, case.layout)


def _read_entries(path: Path, solver: Solver, counts: np.ndarray, rank: int) -> None:
    """Read this rank's values that boundaries keep; CaseError if they do not act on the same cells.

    counts: the number of entries of each rank and state, (ranks, states); those of a rank follow
    those of the ranks below it.
    """
    with opened(path) as file:
        for k, state in enumerate(solver.entry_states):
            group, first = file[ENTRIES + state.label], int(counts[:rank, k].sum())
            own = slice(first, first + state.cells.size)
            same = len(group["cells"]) == counts[:, k].sum()
            if not (same and np.array_equal(group["cells"][own], state.cells)):
                raise CaseError(
                    f"the boundaries '{state.label}' do not act on the cells of this checkpoint; a "
                    "restart cannot move them: start from step 0",
                    path=path,
                )
            state.write(group["values"][own])


@contextmanager
def opened(path: Path | str) -> "Iterator[h5py.File]":
    """An HDF5 file open for reading; DamagedError if something in it cannot be read."""
    try:
        with open_file(path) as file:
            yield file
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and type(error) is not RuntimeError:
            raise  # an error of a device; h5py has no class of its own
        raise DamagedError(f"is damaged ({error}){FIX}", path=path) from error


def read_planes(dataset: "h5py.Dataset", slab: Slab) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (begin, data) of the slab's planes of a dataset, in bounded memory.

    `begin` is the number of the first plane in the box.
    """
    plane_bytes = dataset.size // dataset.shape[0] * dataset.dtype.itemsize
    for first, last in blocks(slab.planes, plane_bytes):
        begin = slab.begin + first
        yield begin, dataset[begin : slab.begin + last]


def changes(before: str, now: str) -> list[str]:
    """The differences of two cases, given as TOML, outside of the tables in FREE."""
    old = _flat(with_present_names(tomllib.loads(before))[0])
    new = _flat(tomllib.loads(now))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if key.split(".")[0] not in FREE and old.get(key) != new.get(key):
            lines.append(f"{key} has changed from {old.get(key)} to {new.get(key)}")
    return lines


def _flat(table: dict | list, lead: str = "") -> dict[str, Any]:
    """Nested tables and lists of tables as one table of dotted keys."""
    flat: dict[str, Any] = {}
    pairs = enumerate(table) if isinstance(table, list) else table.items()
    for key, value in pairs:
        nested = isinstance(value, dict) or (
            isinstance(value, list) and value and isinstance(value[0], dict)
        )
        flat |= _flat(value, f"{lead}{key}.") if nested else {f"{lead}{key}": value}
    return flat
