"""The set-up of a simulation: device, geometry, kernels and the solver of this rank's slab."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpilbm import backends, codegen
from mpilbm.backends import Backend, Device
from mpilbm.case.case import Case
from mpilbm.case.velocity_bounds import require_forces
from mpilbm.codegen.program import POINTS
from mpilbm.core.registry import make
from mpilbm.parallel import Communicator, on_root, together
from mpilbm.parallel.ranks import local_rank
from mpilbm.parallel.slabs import Slab
from mpilbm.run.preflight import layout_choice
from mpilbm.run.preflight.expected_speed import COPIED, Estimate, links_to_bodies
from mpilbm.run.progress import Say
from mpilbm.run.steady import CHECK_EVERY
from mpilbm.solids import build, diagnose, geometry_findings, plane_costs
from mpilbm.solids.entry_list import EntryList
from mpilbm.solids.masks import require_masks
from mpilbm.solver import memory_plan
from mpilbm.solver.solver import Solver

Look = Callable[[Case, list[diagnose.Diagnosis] | None], None]


def build_solver(
    case: Case,
    comm: Communicator,
    look: Look | None = None,
    restarts: bool = False,
    say: Say | None = None,
) -> tuple[Solver, dict[str, Any]]:
    """The solver of this rank's slab, and facts for the summary; collective.

    `look(case, parts)` is called on all ranks with the diagnoses of all slabs, None on all ranks
    but rank 0. `restarts`: whether a state is going to be imported. `say` gets lines for the user;
    by default they are printed. Raises CaseError if the case does not fit the device or its
    geometry is invalid.
    """
    say = say or Say(comm)
    slabs = plane_costs.slabs(case, comm.size)
    with say.during("opening the device"):
        backend, device = open_device(case.backend, comm)
    place = local_rank(comm)
    room = min(comm.allgather(device.share or device.memory()[0] // device.sharing))
    largest = max(slabs, key=lambda slab: slab.planes)
    case, why_layout = _with_chosen_layout(case, comm, device, largest, room)
    slab = slabs[comm.rank]
    together(comm, _require, case, device, slab)
    if comm.size > 1 and case.bodies:  # slabs of equal cost, to which each rank adds its planes
        costs = comm.allgather(together(comm, plane_costs.plane_costs, case, slab.begin, slab.end))
        slab = plane_costs.slabs(case, comm.size, np.concatenate(costs))[comm.rank]

    diagnosed: list[diagnose.Diagnosis] = []

    def diagnosing(*arguments: Any) -> None:
        diagnosed.append(diagnose.find(*arguments))

    on_host = device, case, slab, place[1]
    together(comm, memory_plan.require_host, *on_host)
    with say.during("finding the solid cells and the links to walls"):
        geometry = together(comm, build.build, case, slab, diagnosing)
    together(comm, memory_plan.require_host, *on_host, geometry.lists, geometry.around)
    cells, parts = sum(comm.allgather(int(geometry.fluid_cells.sum()))), comm.gather(diagnosed[0])
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
    shared = backends.shared_devices(comm.allgather(device.identity))
    for warning in (*shared, *dict.fromkeys(filter(None, comm.allgather(device.warning)))):
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
        "expected_glups": _expected(case, device, cells, geometry.lists, comm),
        "bytes_per_update": solver.bytes_per_update,
        "halo": {"name": halo.name, "why": why},
    }
    return solver, facts


def _with_chosen_layout(
    case: Case, comm: Communicator, device: Device, largest: Slab, room: float
) -> tuple[Case, str]:
    """The case with the layout of the run, and the reason. Collective."""
    sweeps = all(comm.allgather(device.sweeps))

    def chosen() -> tuple[dict[str, Any], str]:  # as a table: classes of users may not be pickled
        layout, why = layout_choice.choose(case, device.kind, largest, room, sweeps)
        return layout.model_dump(), why

    table, why = on_root(comm, chosen)
    return layout_choice.with_layout(case, make("layouts", table)), why


def _expected(
    case: Case, device: Device, fluid: int, lists: Sequence[EntryList], comm: Communicator
) -> float | None:
    """The expected GLUPS of all ranks on NVIDIA GPUs; on other devices None. Collective."""
    if device.kind != "cuda":
        return None

    def of_slab() -> tuple[float, int]:
        return device.copy_bandwidth(most=COPIED), links_to_bodies(case, lists)

    own = together(comm, of_slab)
    copies, links = zip(*comm.allgather(own), strict=True)
    return Estimate(sum(copies), fluid, sum(links)).glups(case)


def _require(case: Case, device: Device, slab: Slab) -> None:
    """CaseError if a slab does not fit the device, or a force field or a mask cannot be used."""
    memory_plan.require(device, case, slab)
    require_forces(case, slab.begin, slab.end)
    if slab.rank == 0:
        require_masks(case)


def _require_geometry(case: Case, cells: int, parts: list[diagnose.Diagnosis]) -> None:
    """CaseError if the box has no fluid cells, or the slabs an invalid geometry."""
    build.require_fluid(case, cells)
    geometry_findings.refuse(case, parts)


def open_device(backend: Backend, comm: Communicator) -> tuple[Backend, Device]:
    """The backend on which all ranks agree, and the device of this rank."""
    backend = backends.agreed(comm, together(comm, backend.resolve))
    device = together(comm, backend.open, *local_rank(comm))
    users = backends.users(comm.allgather(device.identity), comm.rank)
    together(comm, device.divide, users or device.sharing)
    return backend, device
