"""The set-up of a simulation: device, geometry, kernels and the solver of this rank's slab."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm import backends, codegen
from mpilbm.case.velocity_bounds import require_forces
from mpilbm.codegen.program import POINTS, Program
from mpilbm.parallel.agree import on_root, together
from mpilbm.parallel.communicator import Communicator
from mpilbm.parallel.ranks import local_rank
from mpilbm.run.preflight import layout_choice
from mpilbm.run.progress import Say, printed
from mpilbm.run.steady import CHECK_EVERY
from mpilbm.solids import build, diagnose, geometry_findings, plane_costs
from mpilbm.solids.masks import require_masks
from mpilbm.solver import memory_plan
from mpilbm.solver.solver import Solver

if TYPE_CHECKING:
    from mpilbm.backends import Backend, Device
    from mpilbm.case.case import Case
    from mpilbm.parallel.slabs import Slab

Look = Callable[["Case", list[diagnose.Diagnosis] | None, Communicator], None]


def build_solver(
    case: "Case",
    comm: Communicator,
    look: Look | None = None,
    restarts: bool = False,
    say: Say | None = None,
) -> tuple[Solver, dict[str, Any]]:
    """The solver of this rank's slab, and facts for the summary; collective.

    `look(case, parts, comm)` is called on all ranks with the second result of build_geometry.
    `restarts`: whether a state is going to be imported. `say` gets lines for the user; by default
    they are printed.
    """
    slab = plane_costs.slabs(case, comm.size)[comm.rank]
    backend, device = open_device(case.backend, comm)
    case, why_layout = layout_choice.settled(case, comm, device)
    together(comm, memory_plan.require, device, case, slab)
    together(comm, require_forces, case, slab.begin, slab.end)
    on_root(comm, require_masks, case)
    slab = balanced(case, slab, comm)
    geometry, parts = build_geometry(case, slab, device, comm)
    if look:
        look(case, parts, comm)
    program = compiled(case, device, comm, restarts)
    halo, why = case.halo.resolve(comm, device)
    shared = backends.shared_devices(comm.allgather(device.identity))
    for warning in (*shared, *dict.fromkeys(filter(None, comm.allgather(device.warning)))):
        (say or printed(comm))(f"warning: {warning}")
    exchanger = halo.open(slab, comm, device)
    solver = together(comm, Solver, case, slab, geometry, device, exchanger, program)
    facts = {
        "ranks": comm.size,
        "backend": backend.name,
        "device": device.description,
        "compiler": device.compiler,
        "layout": case.layout.name,
        "layout_why": why_layout,
        "bytes_per_update": solver.bytes_per_update,
        "halo": {"name": halo.name, "why": why},
    }
    return solver, facts


def compiled(case: "Case", device: "Device", comm: Communicator, restarts: bool) -> Program:
    """The kernels of a case, compiled into the cache by one rank of each node. Collective."""
    text = on_root(comm, lambda: codegen.generate(case).to_json())
    program = Program.from_json(text)
    first = local_rank(comm)[0] == 0
    roles = case.needs.roles | ({"import"} if restarts else set())
    roles |= {POINTS} if case.run.steps >= CHECK_EVERY else set()
    for turn in (True, False):  # one rank per node compiles, the others read the cache
        together(comm, lambda mine: mine and device.compile(program, roles), first == turn)
    return program


def balanced(case: "Case", slab: "Slab", comm: Communicator) -> "Slab":
    """This rank's slab if the box is cut into slabs of equal cost.

    Each rank computes the costs of the planes of `slab`. Collective.
    """
    if comm.size == 1 or not case.bodies:
        return slab
    costs = comm.allgather(together(comm, plane_costs.plane_costs, case, slab.begin, slab.end))
    return plane_costs.slabs(case, comm.size, np.concatenate(costs))[comm.rank]


def build_geometry(
    case: "Case", slab: "Slab", device: "Device", comm: Communicator
) -> tuple[build.Geometry, list[diagnose.Diagnosis] | None]:
    """Solid cells and boundary lists of this rank's slab, and the diagnosis of all slabs.

    The diagnosis is None on all ranks but rank 0. Raises CaseError if the geometry is invalid.
    """
    diagnosed: list[diagnose.Diagnosis] = []

    def look(*arguments: Any) -> None:
        diagnosed.append(diagnose.find(*arguments))

    own = device, case, slab, local_rank(comm)[1]
    together(comm, memory_plan.require_host, *own)
    geometry = together(comm, build.build, case, slab, look)
    together(comm, memory_plan.require_host, *own, geometry.lists, geometry.around)
    cells = comm.allgather(int(geometry.fluid_cells.sum()))
    on_root(comm, build.require_fluid, case, sum(cells))
    parts = comm.gather(diagnosed[0])
    on_root(comm, geometry_findings.refuse, case, parts)
    return geometry, parts


def open_device(backend: "Backend", comm: Communicator) -> "tuple[Backend, Device]":
    """The backend on which all ranks agree, and the device of this rank."""
    backend = backends.agreed(comm, together(comm, backend.resolve))
    device = together(comm, backend.open, *local_rank(comm))
    users = backends.users(comm.allgather(device.identity), comm.rank)
    together(comm, device.divide, users or device.sharing)
    return backend, device
