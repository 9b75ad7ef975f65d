"""The set-up of a simulation: device, geometry, kernels and the solver of this rank's slab."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mpilbm import backends, codegen
from mpilbm.backends import Backend, Device
from mpilbm.case.case import Case
from mpilbm.case.velocity_bounds import require_forces
from mpilbm.codegen.program import POINTS
from mpilbm.layouts import Layout
from mpilbm.parallel import Communicator, on_root, together
from mpilbm.parallel.ranks import local_rank
from mpilbm.parallel.slabs import Slab
from mpilbm.run.preflight import expected_speed, layout_choice
from mpilbm.run.progress import Say
from mpilbm.run.steady import CHECK_EVERY
from mpilbm.solids import Ints, build, diagnose, geometry_findings, plane_costs
from mpilbm.solids.masks import require_masks
from mpilbm.solver import memory_plan
from mpilbm.solver.solver import Solver

Look = Callable[[Case, list[diagnose.Diagnosis] | None], None]


def build_solver(
    case: Case,
    comm: Communicator,
    say: Say,
    look: Look | None = None,
    restarts: bool = False,
) -> tuple[Solver, dict[str, Any]]:
    """The solver of this rank's slab, and facts for the summary; collective.

    `say` gets lines for the user. `look(case, parts)` is called on all ranks with the diagnoses of
    all slabs, None on all ranks but rank 0. `restarts`: whether a state is going to be imported.
    Raises CaseError if the case does not fit the device or its geometry is invalid.
    """
    with say.during("opening the device"):
        backend, device, place, warnings = open_device(case.backend, comm)
    room = min(comm.allgather(device.share or device.memory()[0] // device.sharing))
    sweeps = all(comm.allgather(device.sweeps))
    layout, why_layout = on_root(comm, _layout, case, device.kind, comm.size, room, sweeps)
    case = case.model_copy(update={"layout": layout})
    costs = comm.allgather(together(comm, _costs, case, device, comm.rank, comm.size))
    joined = None if costs[0] is None else np.concatenate(costs)
    slab = plane_costs.slabs(case, comm.size, joined)[comm.rank]

    on_host = device, case, slab, place[1]  # all ranks read what is free before any allocates
    together(comm, memory_plan.require_host, *on_host)
    with say.during("finding the solid cells and the links to walls"):
        geometry, own = together(comm, _geometry, case, slab)
    together(comm, memory_plan.require_host, *on_host, geometry.lists, geometry.around)
    cells, parts = sum(comm.allgather(int(geometry.fluid_cells.sum()))), comm.gather(own)
    on_root(comm, _require_geometry, case, cells, parts)
    if look:
        look(case, parts)

    with say.during("generating the text of the kernels"):
        program = on_root(comm, codegen.generate, case)
    roles = case.needs.roles
    roles |= {"import"} if restarts else set()
    roles |= {POINTS} if case.run.steps >= CHECK_EVERY else set()
    for turn in (True, False):  # one rank per node compiles into the cache, the others read it
        mine = (place[0] == 0) == turn
        with say.during(f"compiling the kernels with {device.compiler}"):
            together(comm, lambda mine: mine and device.compile(program, roles), mine)
    halo, why = case.halo.resolve(comm, device)
    for warning in warnings:
        say(f"warning: {warning}")
    with say.during("connecting the ranks"):
        exchanger = halo.open(slab, comm, device)
        exchanger.allgather = comm.allgather
    with say.during("preparing the boundary lists and the launches of the kernels"):
        solver = together(comm, Solver, case, slab, geometry, device, exchanger, program)
        if comm.size > 1 and all(comm.allgather(solver.faster is not None)):
            together(comm, solver.take_two_steps, solver.faster)
    facts = {
        "ranks": comm.size,
        "backend": backend.name,
        "device": device.description,
        "compiler": device.compiler,
        "layout": case.layout.name,
        "layout_why": why_layout,
        "expected_glups": expected_speed.of_run(case, device, cells, geometry.lists, comm),
        "bytes_per_update": solver.bytes_per_update,
        "halo": {"name": halo.name, "why": why},
    }
    return solver, facts


def _layout(case: Case, device: str, ranks: int, room: float, sweeps: bool) -> tuple[Layout, str]:
    """The layout of the run, and the reason, see layout_choice.choose.

    CaseError for a damaged mask: no rank opens a mask before rank 0 has verified all of them.
    """
    chosen = layout_choice.choose(case, device, ranks, room, sweeps)
    require_masks(case)
    return chosen


def _costs(case: Case, device: Device, rank: int, ranks: int) -> Ints | None:
    """The costs of the planes of a rank while slabs are of equal size; None if all are equal.

    CaseError if such a slab does not fit the device, or a force field cannot be used.
    """
    slab = plane_costs.slabs(case, ranks)[rank]
    memory_plan.require(device, case, slab)
    require_forces(case, slab.begin, slab.end)
    return plane_costs.plane_costs(case, slab.begin, slab.end) if ranks > 1 else None


def _require_geometry(case: Case, cells: int, parts: list[diagnose.Diagnosis]) -> None:
    """CaseError if the box has no fluid cells, or the slabs an invalid geometry."""
    build.require_fluid(case, cells)
    geometry_findings.refuse(case, parts)


def _geometry(case: Case, slab: Slab) -> tuple[build.Geometry, diagnose.Diagnosis]:
    """The geometry of a slab, and what is suspicious in it."""
    found: list[diagnose.Diagnosis] = []
    geometry = build.build(case, slab, lambda *seen: found.append(diagnose.find(*seen)))
    return geometry, found[0]


class Opened(NamedTuple):
    """The device of a rank.

    place     see local_rank
    warnings  of the devices of all ranks, for the user
    """

    backend: Backend
    device: Device
    place: tuple[int, int]
    warnings: list[str]


def open_device(backend: Backend, comm: Communicator) -> Opened:
    """Open the device of this rank, of the kind that all ranks have. Collective.

    Raises CaseError on all ranks if they found different kinds, or one cannot be opened.
    """
    place = local_rank(comm)

    def opened() -> tuple[Backend, Device]:
        found = backend.resolve()
        return found, found.open(*place)

    backend, device = together(comm, opened)
    every = comm.allgather((backend.name, device.identity, device.warning))
    kinds, identities, own = zip(*every, strict=True)
    users = backends.users(identities, comm.rank)
    backends.require_alike(kinds)
    warnings = [*backends.shared_devices(identities), *dict.fromkeys(filter(None, own))]
    together(comm, device.divide, users or device.sharing)
    return Opened(backend, device, place, warnings)
