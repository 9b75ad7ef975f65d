"""Going on from a checkpoint, on whatever ranks, layout and backend the run has now."""

import tomllib
from contextlib import contextmanager
from os.path import isfile
from pathlib import Path

import numpy as np

from mpilbm.errors import CaseError, CommandError
from mpilbm.outputs.agree import on_root, together
from mpilbm.outputs.checkpoint import (
    ENTRIES,
    FORMAT,
    ChecksumError,
    checksums,
    existing,
    group_name,
    read_entries,
    read_planes,
)

# Tables that may change without a word.
FREE = ("title", "run", "output", "layout", "backend", "halo")
MEND = "; restart from another one"


class DamagedError(CaseError):
    """A checkpoint that is cut short or whose checksums are wrong."""


def candidates(restart: str | Path, directory) -> list[Path]:
    """The checkpoints to try, newest first: the given file, or for "auto" those of the run.

    An empty list means that "auto" found none.
    """
    if str(restart) == "auto":
        return [path for _, path in reversed(existing(directory))]
    if not isfile(restart):
        kept = ", ".join(path.name for _, path in existing(directory)) or "none"
        raise CommandError(
            f"--restart {restart}: there is no such file; checkpoints in {directory}: {kept}; name "
            "one of them, or take the last with --restart auto"
        )
    return [Path(restart)]


def load(paths: list[Path], case, slab, solver, comm, say) -> tuple[int, Path]:
    """Put the first whole checkpoint of `paths` into the solver; returns its step and path.

    Each rank reads its own planes and holds them against their checksums. With several paths
    damaged ones are skipped, which `say(text)` tells. CaseError if none is whole, or if it is of
    another case.
    """
    for place, path in enumerate(paths):
        try:
            return _load(path, case, slab, solver, comm, say), path
        except DamagedError as error:
            if len(paths) == 1:
                raise
            more = "trying the one before" if place + 1 < len(paths) else "there is no older one"
            say(f"warning: {str(error).removesuffix(MEND)}; {more}")
    raise CaseError(f"none of the {len(paths)} checkpoints is whole; start anew with --overwrite")


def _load(path, case, slab, solver, comm, say) -> int:
    step, changed = on_root(comm, _check_head, path, case, solver)
    together(comm, _read_own, path, slab, solver, step)
    for line in changed:
        say(f"warning: {path}: since this checkpoint {line}")
    solver.resume(step)
    together(comm, _read_entries, path, slab, solver)
    return step


def _check_head(path, case, solver) -> tuple[int, list[str]]:
    """Step of a checkpoint, changes of the case; CaseError if it belongs to another case."""
    groups = solver.state_groups
    with opened(path) as file:
        head = dict(file.attrs)
        if head.get("format") != FORMAT:
            raise CaseError("is no checkpoint of this version of mpilbm; restart from a "
                            "checkpoint_<step>.h5 that it wrote", path=path)  # fmt: skip
        labels = [name for name in file if name != "solid_crc32" and "." not in name]
        kept = {n: list(file[n].attrs["names"]) for n in file if n.startswith(ENTRIES)}
        wanted = {ENTRIES + state.label: list(state.names) for state in solver.entry_states}
        _compare(path, "lattice", head["lattice"], case.lattice.name)
        _compare(path, "size", head["size"].tolist(), list(case.domain.size))
        _compare(path, "fluids", labels, sorted(group_name(g.label) for g in groups))
        _compare(path, "precision.storage", head["storage"], case.precision.storage)
        _compare(path, "precision.offset", bool(head["offset"]), case.precision.offset)
        _compare(path, "state of boundaries", kept, wanted)
        for group in groups:
            stored = file[group_name(group.label)]["f"].shape[1]
            _compare(path, "values in a cell", stored, group.components)
        return int(head["step"]), changes(head["case"], case.toml)


def _compare(path, what, stored, wanted):
    if stored != wanted:
        raise CaseError(
            f"this checkpoint has {what} = {stored}, the case {wanted}; a restart cannot change "
            "it: restart with the case that wrote it, or start anew",
            path=path,
        )


def _read_own(path, slab, solver, step):
    """Fill the solver's planes from the file."""
    with opened(path) as file:
        solid = file["solid_crc32"][slab.begin : slab.end]
        for plane in range(slab.planes):
            if checksums(solver.solid(plane, plane + 1))[0] != solid[plane]:
                raise CaseError(
                    f"the bodies are not those of this checkpoint (first seen in plane "
                    f"{slab.begin + plane}); a restart cannot change them: start anew",
                    path=path,
                )
        for group in solver.state_groups:
            for begin, _, data in read_planes(file[group_name(group.label)], slab.begin, slab.end):
                solver.write_state(group.label, begin - slab.begin, data, step)


def _read_entries(path, slab, solver):
    """Fill what boundaries keep; CaseError if they do not act on the same cells."""
    plane = slab.shape[1] * slab.shape[2]
    with opened(path) as file:
        for state in solver.entry_states:
            cells, values = read_entries(file[ENTRIES + state.label])
            own = slice(*np.searchsorted(cells, (slab.begin * plane, slab.end * plane)))
            if not np.array_equal(cells[own], state.cells):
                raise CaseError(
                    f"the boundaries '{state.label}' do not act on the cells of this checkpoint; a "
                    "restart cannot move them: start anew",
                    path=path,
                )
            state.write(values[own])


@contextmanager
def opened(path):
    """An HDF5 file open for reading; what cannot be read in it is DamagedError."""
    import h5py

    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            yield file
    except (OSError, KeyError, ValueError, RuntimeError, ChecksumError) as error:
        if isinstance(error, RuntimeError) and type(error) is not RuntimeError:
            raise  # a device's; h5py has no class of its own
        raise DamagedError(f"is damaged ({error}){MEND}", path=path) from error


def changes(before: str, now: str) -> list[str]:
    """What of two cases as TOML differs, except what a restart may change anyway."""
    old, new = _flat(tomllib.loads(before)), _flat(tomllib.loads(now))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if key.split(".")[0] not in FREE and old.get(key) != new.get(key):
            lines.append(f"{key} has changed from {old.get(key)} to {new.get(key)}")
    return lines


def _flat(table, lead="") -> dict:
    """Nested tables and lists of tables as one table of dotted keys."""
    flat = {}
    pairs = enumerate(table) if isinstance(table, list) else table.items()
    for key, value in pairs:
        nested = isinstance(value, dict) or (
            isinstance(value, list) and value and isinstance(value[0], dict)
        )
        flat |= _flat(value, f"{lead}{key}.") if nested else {f"{lead}{key}": value}
    return flat
