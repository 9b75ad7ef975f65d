"""The state before step 0: from the initial fields, and from steps at a fixed velocity.

While the velocity is held fixed, the density relaxes to the one that belongs to this velocity. The
difference travels as sound, which is damped at the rate at which the momentum is restored. A rate
of 2 cs k damps the longest wave in the box critically: three steps for each cell of its longest
side are then enough. The last step restores the momentum completely.
[Mei, Luo, Lallemand & d'Humières 2006, Comput. Fluids 35, 855]
"""

from math import pi, sqrt

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case, Fluid
from mpilbm.physics.algebra import pairs
from mpilbm.solver.boundary_lists import BoundaryLists
from mpilbm.solver.graph_replay import StepsAhead
from mpilbm.solver.passes import Pass
from mpilbm.solver.populations import Populations
from mpilbm.solver.state import FlowState
from mpilbm.units import tau_from_viscosity


def damping(case: Case) -> float:
    """The rate 2 cs k of the longest wave, twice the box between walls; at most 1."""
    sides = zip(case.domain.size, case.domain.periodic, strict=True)
    longest = max(n if periodic else 2 * n for n, periodic in sides)
    return min(1.0, 2 * sqrt(case.lattice.cs2) * 2 * pi / longest)


class InitialState:
    """Fills the populations with the initial fields, and runs the steps at a fixed velocity.

    `iterate`: the number of these steps.
    """

    def __init__(self, state: FlowState):
        self.state, self.context, self.case = state, state.context, state.context.case
        self.iterate = max(fluid.initial.iterate for fluid in self.case.fluids)
        self.held: list[Array] = []  # the velocity of each fluid, while it is held

    def fill(self) -> None:
        """Set the outgoing populations of step -iterate - 1 from rho and u; not collective."""
        self.context.clock.steps = -self.iterate
        for each in self.state.fluids:
            if self.iterate:
                self.held.append(self._allocate())
            for begin, end in self.state.blocks():
                self._fill(each, begin, end)

    def _allocate(self) -> Array:
        context, count = self.context, self.context.slab.planes * self._values
        dtype = context.program.compute
        context.device.require(count * np.dtype(dtype).itemsize, "a velocity to hold")
        return context.device.allocate(count, dtype)

    def _fill(self, each: Populations, begin: int, end: int) -> None:
        """Planes begin..end of a fluid."""
        context, slab, initial = self.context, self.context.slab, each.fluid.initial
        planes = slab.begin + begin, slab.begin + end
        rho, u = initial.evaluate(slab.shape, *planes)
        fields = {"rho_initial": rho, "u_initial": u}
        if initial.non_equilibrium:
            fields["stress_initial"] = self._stress(each.fluid, rho, planes)
        arrays = {name: context.device.upload(values) for name, values in fields.items()}
        each.over_block("initialise", begin, end, **arrays)
        if self.iterate:
            part = context.device.upload(u.astype(context.program.compute))
            target = self.held[each.number][begin * self._values : end * self._values]
            context.device.copy(target, part)
            context.device.synchronize()

    @property
    def _values(self) -> int:
        """Components of the velocity in a plane."""
        rows, nx = self.context.slab.shape[1:]
        return self.case.lattice.D * rows * nx

    def _stress(self, fluid: Fluid, rho: np.ndarray, planes: tuple[int, int]) -> np.ndarray:
        """sum_i c_i c_i (f_i - feq_i) = -2 rho cs2 tau S, with tau of the shear viscosity.

        rho is rho_0 for an equilibrium that has one; with a closure tau is that of the cell.
        [Chapman & Enskog; paper: Ferrari et al. 2023]
        """
        lattice, closure = self.case.lattice, fluid.collision.closure
        S, nu = fluid.initial.strain(self.context.slab.shape, *planes), fluid.viscosity
        if closure:
            parts = zip(pairs(lattice.D), np.moveaxis(S, -1, 0), strict=True)
            nu = nu + closure.viscosity(lattice, dict(parts))[..., None]
        (inverse,) = fluid.collision.velocity([1.0], rho)
        mass = np.broadcast_to(1 / inverse, rho.shape)[..., None]
        return -2 * float(lattice.cs2) * tau_from_viscosity(nu, lattice.cs2) * mass * S

    def hold(
        self, lists: list[BoundaryLists], streaming: list[list[Pass]], ahead: StepsAhead
    ) -> None:
        """Run steps -iterate to -1 at the fixed velocity; collective.

        `streaming[k]`: the pass of each fluid in which it collides, for steps t % period = k. Their
        exchanges are used here, too: the kernels read and write the same.
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
