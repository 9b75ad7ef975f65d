"""Fields and sums of a simulation as arrays, single files, and arguments of a Python program."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.given_objects import require_path, shown_type
from mpilbm.core.errors import UsageError
from mpilbm.outputs import Context
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.images import SOLID, at_nodes
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.parallel import MessagePassing, on_root
from mpilbm.parallel.slabs import Slab
from mpilbm.physics import sloped
from mpilbm.storage import obstacle
from mpilbm.storage.planes import PlaneFiles, blocks


def require_case_and_comm(case: object, comm: object) -> None:
    """UsageError for a case that is not checked yet, and for no communicator."""
    if not isinstance(case, Case):
        raise UsageError(
            f"Simulation: found {shown_type(case)} as case; give the result of mpilbm.load_case(…)"
        )
    if comm is not None and not hasattr(comm, "allgather"):
        raise UsageError(
            f"Simulation: found {shown_type(comm)} as comm; give a communicator of mpi4py, or name "
            "the other arguments, as in directory="
        )


def require_count(name: str, found: int | None, least: int) -> None:
    """UsageError unless a number of steps is a whole number."""
    if found is None:
        return
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or found < least:
        raise UsageError(f"run: {name} = {found!r}; allowed: whole numbers >= {least}")


def require_names(call: str, names: object) -> None:
    """UsageError unless an argument is a text or a sequence of texts."""
    each = [names] if isinstance(names, str) else names
    if not isinstance(each, list | tuple) or not all(isinstance(name, str) for name in each):
        raise UsageError(f'{call}: found {shown_type(names)} as fields; give names: ["rho", "u"]')


def require_flag(call: str, name: str, found: object) -> None:
    """UsageError unless an argument is True or False."""
    if not isinstance(found, bool):
        raise UsageError(f"{call}: {name} = {found!r}; allowed: True or False")


def require_function(call: object) -> None:
    """UsageError unless the argument `call` of a run is a function or None."""
    if call is not None and not callable(call):
        raise UsageError(
            f"run: found {shown_type(call)} as call; give a function of the simulation"
        )


def field_name(context: Context, name: str, fluid: str | None, call: str) -> str:
    """The name of a field in snapshots; UsageError if this flow has no such field."""
    known = (*context.solver.field_names, SOLID)
    wanted = name if fluid is None else f"{name}_{fluid}"
    if wanted in known:
        return wanted
    near = get_close_matches(str(wanted), known, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    what = f"'{name}'" if fluid is None else f"'{name}' of the fluid '{fluid}'"
    raise UsageError(
        f"{call}: {what} is not a field of this flow; allowed: {', '.join(known)}{hint}"
    )


def local(context: Context, name: str) -> np.ndarray:
    """A field of the planes of this rank, (planes, ny, nx) or in 2D (planes, nx), components last.

    Collective for fields that need the velocity of neighbour cells.
    """
    found = np.empty((context.slab.planes, *_plane(context, name)), _dtype(context, name))
    for begin, end, data in _computed(context, name):
        found[begin:end] = data
    return found


def gathered(context: Context, name: str) -> np.ndarray | None:
    """A field of the whole box on rank 0, None on the other ranks. Collective."""
    comm = cast(MessagePassing, context.comm)
    if comm.rank > 0:
        for _, _, data in _computed(context, name):
            comm.Send(np.ascontiguousarray(data), dest=0)
        return None
    found = np.empty((context.slab.shape[0], *_plane(context, name)), _dtype(context, name))
    for begin, end, data in _computed(context, name):
        found[begin:end] = data
    for slab in context.slabs[1:]:
        for begin, end in _blocks(context, name, slab):
            comm.Recv(found[slab.begin + begin : slab.begin + end], source=slab.rank)
    return found


def _computed(context: Context, name: str) -> Iterator[tuple[int, int, np.ndarray]]:
    solver = context.solver
    if name != SOLID:
        solver.prepare((name,))
    for begin, end in _blocks(context, name, context.slab):
        if name == SOLID:
            data = _solid(context, begin, end)
        else:
            data = at_nodes(context, name, solver.fields((name,), begin, end), begin, end)
        yield begin, end, data[:, 0] if context.case.dimensions == 2 else data


def _solid(context: Context, begin: int, end: int) -> np.ndarray:
    """True in solid cells of local planes, and in those whose centre is in a moving body."""
    planes, solid = np.arange(begin, end), at_nodes(context, SOLID, {}, begin, end)
    rows, x = (np.arange(n) for n in solid.shape[1:])
    return context.placed_bodies.added(solid, context.slab.begin + planes, rows, x)


def _blocks(context: Context, name: str, slab: Slab) -> list[tuple[int, int]]:
    size = prod(_plane(context, name)) * np.dtype(_dtype(context, name)).itemsize
    return blocks(slab.planes, size)


def _dtype(context: Context, name: str) -> str:
    return "bool" if name == SOLID else context.case.precision.compute


def _plane(context: Context, name: str) -> tuple[int, ...]:
    """The shape of a field in a plane of the box: all nodes, also of a staggered lattice."""
    components = () if name == SOLID else context.solver.components(name)
    return (*context.case.domain.size[-2::-1], *components)


def on_device(context: Context, name: str) -> Any:
    """A new array with a field of the stored cells of this slab in the memory of the device.

    Collective for fields that need the velocity of neighbour cells.
    """
    solver, planes = context.solver, context.slab.planes
    if solver.device.opaque:
        kind = solver.device.kind
        raise UsageError(f"device_field: {kind} has no arrays for NumPy functions; use field()")
    if name == SOLID:
        every_node = bool(solver.moving)  # lattices that do not store all of them refuse these
        solid = _solid(context, 0, planes) if every_node else solver.solid(0, planes)
        array = solver.device.upload(solid)
        return array.reshape(_stored(context, name))
    diagnostics = solver.diagnostics
    diagnostics.prepare((name,))
    arrays = diagnostics.arrays((name,), planes)
    diagnostics.enqueue(arrays, 0, planes)
    solver.device.synchronize()
    array = arrays[name]
    if name == "rho" and solver.grid.over == "nodes":  # whose kernels skip solid cells
        array[solver.device.upload(solver.solid(0, planes))] = 1
    return array.reshape(_stored(context, name))


def _stored(context: Context, name: str) -> tuple[int, ...]:
    """The shape of a field in the stored cells of this slab."""
    rows, nx = context.slab.shape[1:]
    cells = (nx,) if context.case.dimensions == 2 else (rows, nx)
    components = () if name == SOLID else context.solver.components(name)
    return (context.slab.planes, *cells, *components)


def flow_sums(context: Context) -> dict[str, float]:
    """Sums over the fluid cells by their names in `monitor.csv`; collective."""
    found = context.comm.bcast(context.totals.start(context.solver.steps)())
    names = sloped.columns(context.solver.sum_names)
    return {name: found[name] for name in names if name != "nonfinite"}


def body_forces(context: Context) -> dict[str, np.ndarray]:
    """The force (D,) on each body by its label; collective, UsageError if no body is weighed."""
    case = context.case
    if context.solver.exchanged is None:
        raise UsageError(
            'forces: the case weighs no body; add [[output]] with name = "body_forces"'
        )
    totals = np.array(context.comm.bcast(context.forces.around()[-1]()))  # a user may change them
    labels = [case.bodies[number].label for number in case.needs.weighed]
    return dict(zip(labels, totals[:, : case.dimensions], strict=True))


def save(context: Context, path: Path | str, fields: Sequence[str], overwrite: bool) -> None:
    """Write fields as a snapshot, and wait; collective. UsageError for unknown fields."""
    require_path("save", path)
    require_names("save", fields)
    output = Snapshot(every=1, fields=(fields,) if isinstance(fields, str) else tuple(fields))
    # An output of the case may have the same label: the names of its files are not used here.
    alone = context.case.model_copy(update={"outputs": ()})
    if problems := output.problems(alone):
        raise UsageError([f"save: {problem}" for problem in problems])
    folder, name = _place(context, Path(path), "save", overwrite)
    output.open(context).write_file(folder, name, context.solver.steps)


def checkpoint(context: Context, path: Path | str, overwrite: bool) -> None:
    """Write the complete state, and read it back; collective. NonFiniteError."""
    require_path("checkpoint", path)
    folder, name = _place(context, Path(path), "checkpoint", overwrite)
    context.totals.check(context.solver.steps)
    Checkpoint(every=1).open(context).write_file(folder, name, context.solver.steps)


def _place(context: Context, path: Path, call: str, overwrite: bool) -> tuple[PlaneFiles, str]:
    """The folder of a file, and its name.

    UsageError on all ranks if there is no folder, or another file that must not be replaced.
    """
    require_flag(call, "overwrite", overwrite)
    if problem := on_root(context.comm, _problem, path, overwrite):
        raise UsageError(f"{call} '{path}': {problem}")
    return PlaneFiles(path.parent, context.comm, context.slabs), path.name


def _problem(path: Path, overwrite: bool) -> str:
    fix = "give the path of a file in a folder"
    if path.is_dir():
        return f"is a folder; add a file name; {fix}"
    if not path.parent.is_dir():
        return f"its folder does not exist; {fix}"
    return obstacle(path, overwrite, "give overwrite=True")
