"""The state before step 0: from the initial fields, and from steps at a fixed velocity.

Formulas of large boxes are evaluated by a kernel, other initial fields by NumPy, with the same bits
(see codegen/initial_values.py).

While the velocity is held fixed, the density relaxes to the one that belongs to it. The difference
travels as sound, damped at the rate at which the momentum is restored. A rate of 2 cs k damps the
longest wave in the box critically: three steps for each cell of its longest side are then enough.
The last step restores the momentum completely.
[Mei, Luo, Lallemand & d'Humières 2006, Comput. Fluids 35, 855]
"""

from math import inf, pi, prod, sqrt
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array, Launch
from mpilbm.case.case import Case, Fluid
from mpilbm.codegen import initial_values
from mpilbm.codegen.initial_values import Tables
from mpilbm.codegen.program import Program
from mpilbm.core.formulas.values import AXES
from mpilbm.core.units import tau_from_viscosity
from mpilbm.model.limits import LARGEST_DENSITY, LEAST_DENSITY
from mpilbm.physics.algebra import pairs
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.context import SlabContext
from mpilbm.solver.flow_state import FlowState
from mpilbm.solver.graph_replay import StepsAhead
from mpilbm.solver.passes import Pass
from mpilbm.solver.scalar_bounds import carrying

KERNEL_CELLS = 2**22  # of the box; the kernel is compiled in the time in which NumPy evaluates them


def damping(case: Case) -> float:
    """The rate 2 cs k of the longest wave, twice the box between walls; at most 1."""
    sides = zip(case.domain.size, case.domain.periodic, strict=True)
    longest = max(n if periodic else 2 * n for n, periodic in sides)
    return min(1.0, 2 * sqrt(case.lattice.cs2) * 2 * pi / longest)


class HostValues:
    """rho and u of a fluid at t = 0, evaluated by NumPy, in planes of the slab."""

    def __init__(self, context: SlabContext, fluid: Fluid):
        self.context, self.case, self.fluid = context, context.case, fluid
        self._uniform: dict[int, dict[str, Array]] = {}  # by the number of planes

    def planes(self, begin: int, end: int) -> dict[str, Array]:
        """The arguments of `initialise` for planes begin..end; raises CaseError."""
        slab, initial = self.context.slab, self.fluid.initial
        if initial.uniform and end - begin in self._uniform:
            return self._uniform[end - begin]
        planes = slab.begin + begin, slab.begin + end
        rho, u = initial.evaluate(slab.shape, *planes)
        fields = {"rho_initial": rho, "u_initial": u}
        if initial.non_equilibrium:
            fields["stress_initial"] = self._stress(rho, planes)
        found = {name: self.context.device.upload(values) for name, values in fields.items()}
        if initial.uniform:
            self._uniform[end - begin] = found
        return found

    def require(self) -> None:
        """Do nothing: `planes` has checked the values."""

    def _stress(self, rho: np.ndarray, planes: tuple[int, int]) -> np.ndarray:
        """sum_i c_i c_i (f_i - feq_i) = -2 rho cs2 tau S, with tau of the shear viscosity.

        rho is rho_0 for an equilibrium that has one; with a closure or a sponge tau is that of the
        cell.
        [Chapman & Enskog; paper: Ferrari et al. 2023]
        """
        lattice, fluid = self.case.lattice, self.fluid
        S = fluid.initial.strain(self.context.slab.shape, *planes)
        nu: Any = fluid.viscosity + self.case.added_viscosity(self._centres(planes))
        if closure := fluid.collision.closure:
            parts = zip(pairs(lattice.D), np.moveaxis(S, -1, 0), strict=True)
            nu = closure.viscosity(lattice, dict(parts), nu)
        tau = np.broadcast_to(tau_from_viscosity(nu, lattice.cs2), S.shape[:-1])[..., None]
        (inverse,) = fluid.collision.velocity([1.0], rho)
        mass = np.broadcast_to(1 / inverse, rho.shape)[..., None]
        return -2 * float(lattice.cs2) * tau * mass * S

    def _centres(self, planes: tuple[int, int]) -> dict[str, np.ndarray]:
        """The coordinates of the cell centres in planes of the box, arrays that broadcast."""
        rows, nx = self.context.slab.shape[1:]
        plane, row, k = np.ogrid[slice(*planes), :rows, :nx]
        across = {"y": plane} if self.case.dimensions == 2 else {"y": row, "z": plane}
        found = {"x": self.case.lattice.x(plane, row, k)} | across
        return {axis: each + 0.5 for axis, each in found.items()}


class KernelValues:
    """As HostValues, evaluated on the device by a kernel made from the formulas; the same bits."""

    def __init__(self, context: SlabContext, fluid: Fluid, tables: Tables, trees: dict, most: int):
        self.context, self.initial = context, fluid.initial
        device, lattice = context.device, context.case.lattice
        planes, (rows, nx) = context.slab.planes, context.slab.shape[1:]
        values, plane = tables.values(), rows * nx
        room = 8 * most * plane * (1 + lattice.D) + 4 * planes * nx
        room += sum(each.nbytes for each in values.values() if isinstance(each, np.ndarray))
        device.require(room, "the initial fields of a block of planes")
        self._arrays: dict[str, Array] = {
            "rho_initial": device.allocate(most * plane, "float64"),
            "u_initial": device.allocate(most * plane * lattice.D, "float64"),
        }
        self._refused = device.allocate(planes * nx, "int32")
        self._launch = self._bound(initial_values.generate(lattice, trees, tables), tables, values)

    def _bound(self, program: Program, tables: Tables, values: dict[str, Any]) -> Launch:
        context, device = self.context, self.context.device
        given = context.sizes() | self._arrays | {"refused": self._refused}
        given |= {"origin": 0, "largest_square": self.initial.max_speed**2}
        given |= {"least_density": LEAST_DENSITY, "largest_density": LARGEST_DENSITY}
        given |= {f"cells_{axis}": cells for axis, cells in tables.size.items()}
        for name, value in values.items():
            given[name] = device.upload(value) if isinstance(value, np.ndarray) else value
        wanted = (argument.name for argument in program.kernels[initial_values.NAME].arguments)
        compiled = device.compile(program)[initial_values.NAME]
        return compiled.bind(**{name: given[name] for name in wanted})

    def planes(self, begin: int, end: int) -> dict[str, Array]:
        """The arguments of `initialise` for planes begin..end, valid until the next call."""
        self._launch.set(origin=self.context.grid.ghost + begin)
        self.context.over_planes(self._launch, begin, end)
        return self._arrays

    def require(self) -> None:
        """CaseError that names a cell with a value that is not finite or out of range."""
        slab = self.context.slab
        refused = self.context.device.download(self._refused).reshape(slab.planes, -1)
        for plane in slab.begin + np.flatnonzero(refused.any(axis=1)):
            self.initial.evaluate(slab.shape, int(plane), int(plane) + 1)


def values_of(context: SlabContext, fluid: Fluid, most: int) -> HostValues | KernelValues:
    """The evaluation of the initial fields of a fluid in blocks of at most `most` planes.

    The choice depends on the case alone and does not change the bits.
    """
    case, initial = context.case, fluid.initial
    by_kernel = initial.formulas and not (initial.non_equilibrium or initial.uniform)
    if by_kernel and prod(case.shape) >= KERNEL_CELLS:
        tables = Tables(dict(zip(AXES, case.domain.size, strict=False)))
        trees = {name: tables.divided(tree) for name, tree in initial.trees.items()}
        if None not in trees.values():
            return KernelValues(context, fluid, tables, trees, most)
    return HostValues(context, fluid)


class InitialState:
    """Fills the populations with the initial fields, and runs the steps at a fixed velocity.

    `iterate`: the number of these steps. `ranges`: the least and the largest initial value of each
    scalar in the cells of this slab that carry it, by label; after a restart those of the
    checkpoint.
    """

    def __init__(self, state: FlowState):
        self.state, self.context, self.case = state, state.context, state.context.case
        self._values = self.case.lattice.D * prod(self.context.slab.shape[1:])  # of u in a plane
        self.iterate = max(fluid.initial.iterate for fluid in self.case.fluids)
        self.ranges: dict[str, tuple[float, float]] = {}
        self.held: list[Array] = []  # the velocity of each fluid, while it is held

    def fill(self) -> None:
        """Set the outgoing populations of step -iterate - 1 from rho and u; not collective."""
        self.context.clock.steps = -self.iterate
        blocks = list(self.state.blocks())
        self._fill_scalars(blocks)
        for each in self.state.fluids:
            values = values_of(
                self.context, self.case.fluids[each.number], blocks[0][1] - blocks[0][0]
            )
            if self.iterate:
                self.held.append(self._allocate())
            for begin, end in blocks:
                arrays = values.planes(begin, end)
                each.over_block("initialise", begin, end, **arrays)
                if self.iterate:
                    self._hold(each.number, begin, end, arrays["u_initial"])
            values.require()

    def _fill_scalars(self, blocks: list[tuple[int, int]]) -> None:
        """Set the outgoing populations of the scalars, which the force on the fluid may need."""
        context, device = self.context, self.context.device
        (fluid, *_), shape = self.case.fluids, context.slab.shape
        for scalar, each in zip(self.case.scalars, self.state.fluids[0].carried, strict=True):
            for begin, end in blocks:
                planes = context.slab.begin + begin, context.slab.begin + end
                phi, _ = scalar.initial.evaluate(shape, *planes)
                within = phi[carrying(scalar, self.context.geometry.solid[begin:end])]
                if within.size:
                    low, high = self.ranges.get(scalar.label, (inf, -inf))
                    found = min(low, float(within.min())), max(high, float(within.max()))
                    self.ranges[scalar.label] = found
                _, u = fluid.initial.evaluate(shape, *planes)
                arrays = {"rho_initial": device.upload(phi), "u_initial": device.upload(u)}
                each.over_block("initialise", begin, end, **arrays)
        if "begin_scalars_0" in context.program.kernels:
            for begin, end in blocks:
                self.state.over_block("begin_scalars", begin, end)

    def _allocate(self) -> Array:
        context, count = self.context, self.context.slab.planes * self._values
        dtype = context.program.compute
        context.device.require(count * np.dtype(dtype).itemsize, "a velocity to hold")
        return context.device.allocate(count, dtype)

    def _hold(self, fluid: int, begin: int, end: int, u: Array) -> None:
        """Keep the velocity of planes begin..end of a fluid."""
        device = self.context.device
        values = device.download(u[: (end - begin) * self._values])
        part = device.upload(values.astype(self.context.program.compute))
        device.copy(self.held[fluid][begin * self._values : end * self._values], part)
        device.synchronize()

    def hold(
        self, lists: list[BoundaryLists], streaming: list[list[Pass]], ahead: StepsAhead
    ) -> None:
        """Run steps -iterate to -1 at the fixed velocity; collective.

        `streaming[k]`: the pass of each fluid in which it collides, for steps t % period = k, whose
        exchanges are used here, too.
        """
        context, period, rate = self.context, len(streaming), damping(self.case)
        passes = [self._passes(k, streaming[k], rate) for k in range(period)]
        k = -1 % period
        last = self._passes(k, streaming[k], 1.0)
        for step in range(-self.iterate, 0):
            for each in lists:
                each.run(step % period)
            for one in passes[step % period] if step < -1 else last:
                one.run()
            context.clock.steps += 1
            ahead.enqueued()
        context.device.synchronize()
        self.held = []

    def _passes(self, k: int, streaming: list[Pass], rate: float) -> list[Pass]:
        name, found = f"hold_{k % self.case.layout.parities}", []
        for fluid, one in zip(self.state.fluids, streaming, strict=True):
            more = {"origin": fluid.grid.ghost, "hold": rate, "u_held": self.held[fluid.number]}
            launch = fluid.bind(name, **more, **fluid.arrays(k))
            found.append(Pass(self.context, fluid.grid, launch, one.exchange))
        return found
